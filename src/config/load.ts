import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { contradictions } from "./contradictions.ts";
import { counted } from "../kit/counted.ts";
import { codeOf, OperatorError } from "../kit/errors.ts";
import { isLoopback, loopbackNetworks } from "../kit/host.ts";
import { isNothing, type Kind } from "./kinds.ts";
import type { ProgramName } from "./programs.ts";
import {
  groupSettings,
  placeOf,
  settingKeys,
  settings,
  type JwtSettings,
  type SettingKey,
  type SettingValues,
} from "./settings.ts";
import { readSettingsFile, type GivenValue } from "./settings-file.ts";
import { readTracingSettings, type TracingSettings } from "../telemetry/tracing-settings.ts";
import { compareFaults, faultText, type Fault } from "./yaml-source.ts";

/**
 * The settings of one process, checked and with every default filled in. Durations in ms, sizes in
 * bytes.
 */
export type Config = ReturnType<typeof toConfig>;

/** Sources of the settings of a program. */
export interface Environment {
  readonly env: NodeJS.ProcessEnv;
  /** Folder to which relative paths refer. */
  readonly cwd: string;
}

/**
 * Returns the absolute path of the folder of `service.yaml` and `resources/`. Does not check that
 * it exists.
 */
export function configDirOf({ env, cwd }: Environment): string {
  return resolve(cwd, env["SVC_CONFIG_DIR"] || "config");
}

/**
 * Reads the settings. The environment wins over `service.yaml`, which wins over the defaults. An
 * empty variable counts as not set. Messages never show a value, since it may be a secret.
 *
 * @throws OperatorError that lists every fault.
 */
export function loadConfig({ env, cwd, program }: Environment & { readonly program: ProgramName }): Config {
  const configDir = configDirOf({ env, cwd });
  // Only a folder exists under a name that ends with a slash. Never throws.
  const isFolder = existsSync(`${configDir}/`);
  const faults =
    env["SVC_CONFIG_DIR"] && !isFolder
      ? [`SVC_CONFIG_DIR: expected the path of a folder; ${configDir} is none`]
      : [];

  const inFile = readSettingsFile(configDir, env, cwd);
  const inEnvironment = readEnvironment(env, faults);
  const found = new Map<SettingKey, unknown>();
  for (const key of settingKeys) {
    const setting = settings[key];
    const fromFile = inFile.given.get(key);
    if (fromFile !== undefined) {
      const value = setting.kind.read(fromFile.value);
      if (value === undefined) inFile.faults.push(...valueFaults(setting.kind, fromFile));
      found.set(key, value);
    } else if ("default" in setting) found.set(key, setting.kind.read(setting.default));
    else if ("item" in setting.kind) found.set(key, []);

    const fromEnvironment = inEnvironment.get(key);
    if (fromEnvironment !== undefined) {
      const value = setting.kind.read(fromEnvironment.text);
      if (value === undefined)
        faults.push(`${fromEnvironment.variable}: ${refusal(setting.kind, fromEnvironment.text)}`);
      found.set(key, value);
    }
  }

  // A setting without a default may be undefined. A setting with a fault is undefined too, but then
  // this function throws.
  const values = Object.fromEntries(
    settingKeys.map((key) => [key, found.get(key)]),
  ) as unknown as SettingValues;
  const isGiven = (key: SettingKey): boolean => inFile.given.has(key) || inEnvironment.has(key);
  for (const { keys, message, inFileMessage } of contradictions(values, isGiven, program)) {
    const standing = keys.find((key) => inFile.given.has(key) && !inEnvironment.has(key));
    const inFileOnly = standing === undefined ? undefined : inFile.given.get(standing);
    if (inFileOnly === undefined) faults.push(message);
    else inFile.faults.push(inFileOnly.fault([], inFileMessage));
  }
  // Skips tracing for commands of `svc-admin`, which must not fail because of a tracing variable.
  const tracing = program === "admin" ? undefined : readTracingSettings({ env, program, faults });
  const all = [...inFile.faults.toSorted(compareFaults).map(faultText), ...faults];
  if (all.length > 0) {
    throw new OperatorError(
      `${counted(all.length, "fault")} in the settings:\n${all.map((line) => `  ${line}`).join("\n")}`,
      { faults: all },
    );
  }
  return toConfig({ values, isGiven, tracing, configDir, cwd });
}

/**
 * Returns the address of the metrics port of a service with these settings. Reads nothing else,
 * because the service continues without a file that a reload refused.
 *
 * @returns Also the faults of the file: with one, the address may be wrong.
 * @throws OperatorError for a variable with a fault.
 */
export function loadMetricsAddress({ env, cwd }: Environment): {
  readonly host: string;
  readonly port: number;
  readonly faults: readonly string[];
} {
  const { given, faults } = readSettingsFile(configDirOf({ env, cwd }), env, cwd);
  const inEnvironment = readEnvironment(env, []);
  const find = <T>(key: SettingKey, kind: Kind<T>): T | undefined => {
    const fromEnvironment = inEnvironment.get(key);
    if (fromEnvironment === undefined) return kind.read(given.get(key)?.value);
    const { text, variable } = fromEnvironment;
    const value = kind.read(text);
    if (value === undefined) throw new OperatorError(`${variable}: ${refusal(kind, text)}`);
    return value;
  };
  const { "http.host": host, "metrics.host": metricsHost, "metrics.port": port } = settings;
  return {
    // Both defaults of `http.host` can be reached at 127.0.0.1.
    host: find("metrics.host", metricsHost.kind) ?? find("http.host", host.kind) ?? "127.0.0.1",
    port: find("metrics.port", port.kind) ?? port.default,
    faults: faults.map(faultText),
  };
}

/** Returns the end of a fault that begins with the name of a setting. */
function refusal({ expected, problemOf }: Kind<unknown>, value: unknown): string {
  const problem = problemOf?.(value);
  return problem === undefined ? `expected ${expected}` : `expected ${expected}; ${problem}`;
}

/** Returns one fault for each bad item of a list, or one for the whole value. */
function valueFaults(kind: Kind<unknown>, { value, fault }: GivenValue): readonly Fault[] {
  const { item } = kind;
  const items: readonly unknown[] = item !== undefined && Array.isArray(value) ? value : [];
  const bad = [...items.entries()].filter(([, one]) => !isNothing(one) && item?.read(one) === undefined);
  if (bad.length === 0) return [fault([], refusal(kind, value))];
  return bad.map(([index]) => fault([index], `expected ${item?.expected}`));
}

/** Reads the variables, and the files that `<NAME>_FILE` names. Adds their problems to `faults`. */
function readEnvironment(
  env: NodeJS.ProcessEnv,
  faults: string[],
): ReadonlyMap<SettingKey, { readonly text: string; readonly variable: string }> {
  const given = new Map<SettingKey, { text: string; variable: string }>();
  for (const key of settingKeys) {
    const setting = settings[key];
    if (!("env" in setting)) continue;
    const variable = setting.env;
    const text = env[variable];
    if (text) given.set(key, { text, variable });

    const fileVariable = `${variable}_FILE`;
    const path = "isSecret" in setting ? env[fileVariable] : undefined;
    if (!path) continue;
    if (text) {
      faults.push(`${variable}, ${fileVariable}: expected one of the two`);
      continue;
    }
    try {
      given.set(key, { text: readFileSync(path, "utf8").trim(), variable: fileVariable });
    } catch (error) {
      const code = codeOf(error) ?? "unknown error";
      faults.push(`${fileVariable}: expected the path of a file that can be read (${code})`);
    }
  }
  return given;
}

interface ConfigSources {
  readonly values: SettingValues;
  readonly isGiven: (key: SettingKey) => boolean;
  /** Undefined when tracing is off. */
  readonly tracing: TracingSettings | undefined;
  readonly configDir: string;
  readonly cwd: string;
}

/** Groups the values, and fills in the defaults that depend on other settings. */
function toConfig({ values, isGiven, tracing, configDir, cwd }: ConfigSources) {
  const groups = groupSettings(values);
  const { auth, "auth.jwt": jwt, dataDir, database, http, metrics, webhooks, ...rest } = groups;
  const isEmbedded = database.url === undefined;
  // The embedded database is for trials: its first user and its receivers are on this machine.
  const host = http.host ?? (isEmbedded ? "127.0.0.1" : "0.0.0.0");
  const given = isGiven("webhooks.allowedNetworks") ? webhooks.allowedNetworks : undefined;
  return {
    ...rest,
    /** Absolute. */
    configDir,
    /** Absolute. */
    dataDir: resolve(cwd, dataDir),
    database: { ...database, autoMigrate: database.autoMigrate ?? isEmbedded },
    http: { ...http, host },
    metrics: { ...metrics, host: metrics.host ?? host },
    auth: { ...auth, jwt: jwt.issuer === undefined ? undefined : { ...jwt, issuer: jwt.issuer } },
    tracing,
    webhooks: { ...webhooks, ...networksOf(given, isEmbedded, host) },
  } as const;
}

export function settingIn(config: Config, key: SettingKey): unknown {
  const { group, name } = placeOf(key);
  if (group === "auth.jwt") return config.auth.jwt?.[name as keyof JwtSettings];
  const values: unknown = group === undefined ? config : config[group as keyof Config];
  return (values as Readonly<Record<string, unknown>>)[name];
}

/**
 * Returns the networks that webhooks may go to in addition to public addresses.
 *
 * On the embedded database the default is loopback, since receivers run on the same machine. Once
 * other machines reach the API, only admins may name loopback. Any user could otherwise read
 * services there that have no authentication.
 */
function networksOf(
  given: readonly string[] | undefined,
  isEmbedded: boolean,
  host: string,
): {
  readonly allowedNetworks: readonly string[];
  /** More networks, for the webhooks of users with the admin flag only. */
  readonly adminNetworks: readonly string[];
} {
  if (given !== undefined || !isEmbedded) return { allowedNetworks: given ?? [], adminNetworks: [] };
  return isLoopback(host)
    ? { allowedNetworks: loopbackNetworks, adminNetworks: [] }
    : { allowedNetworks: [], adminNetworks: loopbackNetworks };
}
