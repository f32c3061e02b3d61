import { existsSync, readFileSync, statSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { contradictions, type ProgramName } from "./contradictions.ts";
import { hint } from "../kit/did-you-mean.ts";
import { OperatorError } from "../kit/errors.ts";
import { jwtSettingsOf, type JwtSettings } from "./jwt-settings.ts";
import { isLoopback, loopbackNetworks } from "../kit/host.ts";
import {
  isNothing,
  settings,
  type Kind,
  type Rate,
  type SettingKey,
  type SettingValues,
} from "./settings.ts";
import { readTracingSettings, type TracingSettings } from "../telemetry/tracing-settings.ts";
import { fillIn } from "./variables.ts";
import {
  compareFaults,
  faultText,
  readYamlFile,
  type Fault,
  type YamlPath,
  type YamlSource,
} from "./yaml-source.ts";

/** The settings of one process, checked and with every default filled in (contract, section 2). Durations in ms. */
export interface Config {
  /** Absolute. */
  readonly configDir: string;
  /** Absolute. */
  readonly dataDir: string;
  readonly database: {
    /** Undefined: the embedded database in `dataDir`. */
    readonly url: string | undefined;
    readonly autoMigrate: boolean;
    /** Most connections of one process. */
    readonly poolSize: number;
  };
  readonly broker: {
    /** Undefined: the in-process broker. */
    readonly url: string | undefined;
  };
  readonly http: {
    readonly host: string;
    readonly port: number;
    /** Begins with a slash and ends without one; empty for none. */
    readonly routePrefix: string;
    /** Origin, without a trailing slash. Undefined: from the request. */
    readonly publicUrl: string | undefined;
    /** Hosts that absolute URLs may begin with, lower case; the first is used for a request to any other. Empty: every host. */
    readonly hosts: readonly string[];
    /** CIDRs of proxies whose `X-Forwarded-For` is believed. */
    readonly trustedProxies: readonly string[];
    readonly bodyLimitBytes: number;
    /** Bytes of requests and answers in flight. Undefined: a share of the process's memory. */
    readonly memoryBudgetBytes: number | undefined;
    readonly maxPerPage: number;
    /** Of the statements of one list. */
    readonly listTimeoutMs: number;
    /** Requests at work at one time. */
    readonly concurrency: number;
    /** Requests of one user at one time, those that wait for their turn included. */
    readonly concurrencyPerUser: number;
    readonly maxConnections: number;
    /** Open connections of one client address; of a trusted proxy, requests at work of one forwarded address. */
    readonly maxConnectionsPerAddress: number;
    /** How long the API goes on serving, not ready, after it was told to stop. */
    readonly drainDelayMs: number;
    /** Of one token. Undefined: none. */
    readonly rateLimit: Rate | undefined;
    /** Failed authentications of one client address. */
    readonly authFailureLimit: Rate;
    /** Whose pages may call the API; `*` for all. Empty: nobody's. */
    readonly corsOrigins: readonly string[];
  };
  readonly auth: {
    /** Undefined: off. */
    readonly jwt: JwtSettings | undefined;
  };
  /** 32 bytes. Undefined only with the embedded database: it is then kept in `dataDir`. */
  readonly secretKey: Buffer | undefined;
  /** 32 bytes each: they open what was encrypted before the last change of the key. */
  readonly previousSecretKeys: readonly Buffer[];
  readonly log: { readonly level: string };
  readonly metrics: { readonly host: string; readonly port: number };
  /** Undefined: off. */
  readonly tracing: TracingSettings | undefined;
  readonly relay: {
    /** How often changes made by other programs are looked for. */
    readonly pollIntervalMs: number;
    /** Most events of one turn. */
    readonly batchSize: number;
  };
  readonly webhooks: {
    readonly timeoutMs: number;
    readonly maxAttempts: number;
    /** Wait before attempt n+1 is item n-1; the last one repeats. */
    readonly backoffMs: readonly number[];
    /** Share, 0 to 1. */
    readonly jitter: number;
    readonly manualRetryLimit: number;
    /** Webhooks of one user. Those with the admin flag may have any number. */
    readonly maxPerUser: number;
    /** CIDRs that receivers may live in besides public addresses. */
    readonly allowedNetworks: readonly string[];
    /** More of them, for the webhooks of users with the admin flag only. */
    readonly adminNetworks: readonly string[];
    readonly concurrency: number;
    /** Most attempts in flight to one receiver. Undefined: a share that depends on how quickly it answers. */
    readonly receiverConcurrency: number | undefined;
    /** Whether receivers that do not answer are left alone for a while. */
    readonly breaker: boolean;
    /** How often due retries and stranded deliveries are looked for. */
    readonly sweepIntervalMs: number;
    /** How long a message is believed to be in the broker before its delivery is published again. */
    readonly requeueAfterMs: number;
  };
}

interface Surroundings {
  readonly env: NodeJS.ProcessEnv;
  /** Relative paths start here. */
  readonly cwd: string;
}

/** The folder of `service.yaml` and `resources/`, absolute; whether it is there is not looked at. */
export function configDirOf({ env, cwd }: Surroundings): string {
  return resolve(cwd, env["SVC_CONFIG_DIR"] || "config");
}

/**
 * Reads the settings: the environment wins over `service.yaml`, which wins over the defaults. A variable that is set to
 * nothing counts as not set. No message shows a value, for it may be a secret.
 *
 * @throws OperatorError that lists every fault.
 */
export function loadConfig({ env, cwd, program }: Surroundings & { readonly program: ProgramName }): Config {
  const configDir = configDirOf({ env, cwd });
  const isFolder = statSync(configDir, { throwIfNoEntry: false })?.isDirectory() === true;
  const faults =
    env["SVC_CONFIG_DIR"] && !isFolder
      ? [`SVC_CONFIG_DIR: expected the path of a folder; ${configDir} is none`]
      : [];

  const inFile = readSettingsFile({ configDir, env, cwd });
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

    const fromEnvironment = inEnvironment.get(key);
    if (fromEnvironment !== undefined) {
      const value = setting.kind.read(fromEnvironment.text);
      if (value === undefined) faults.push(`${fromEnvironment.variable}: expected ${setting.kind.expected}`);
      found.set(key, value);
    }
  }

  // Only a setting that has a default or none at all can be undefined here, or one with a fault: then this throws.
  const values = Object.fromEntries(
    settingKeys.map((key) => [key, found.get(key)]),
  ) as unknown as SettingValues;
  const isGiven = (key: SettingKey): boolean => inFile.given.has(key) || inEnvironment.has(key);
  for (const { keys, message, inFileMessage } of contradictions({ values, isGiven, program })) {
    const standing = keys.find((key) => inFile.given.has(key) && !inEnvironment.has(key));
    const inFileOnly = standing === undefined ? undefined : inFile.given.get(standing);
    if (inFileOnly === undefined) faults.push(message);
    else inFile.faults.push(inFileOnly.fault([], inFileMessage));
  }
  // A command of an operator must not fail for it.
  const tracing = program === "admin" ? undefined : readTracingSettings({ env, program, faults });
  const all = [...inFile.faults.toSorted(compareFaults).map(faultText), ...faults];
  if (all.length > 0) {
    const count = all.length === 1 ? "1 fault" : `${all.length} faults`;
    throw new OperatorError(`${count} in the settings:\n${all.map((line) => `  ${line}`).join("\n")}`, {
      faults: all,
    });
  }
  return toConfig({ values, tracing, configDir, cwd });
}

const settingKeys = Object.keys(settings) as SettingKey[];

/** A setting in the file. */
interface Given {
  readonly value: unknown;
  /** A fault at the value, or at a part of it. */
  readonly fault: (part: YamlPath, message: string) => Fault;
}

interface SettingsFile {
  readonly faults: Fault[];
  readonly given: Map<SettingKey, Given>;
}

/** One for each bad item of a list; one for anything else. */
function valueFaults({ expected, item }: Kind<unknown>, { value, fault }: Given): readonly Fault[] {
  const items: readonly unknown[] = item !== undefined && Array.isArray(value) ? value : [];
  const bad = [...items.entries()].filter(([, one]) => !isNothing(one) && item?.read(one) === undefined);
  if (bad.length === 0) return [fault([], `expected ${expected}`)];
  return bad.map(([index]) => fault([index], `expected ${item?.expected}`));
}

function readSettingsFile({
  configDir,
  env,
  cwd,
}: Surroundings & { readonly configDir: string }): SettingsFile {
  const path = join(configDir, "service.yaml");
  const file: SettingsFile = { faults: [], given: new Map() };
  if (!existsSync(path)) return file;
  const source = readYamlFile(path, relative(cwd, path));
  file.faults.push(...source.faults);
  if (source.faults.length === 0) readGroup({ value: source.value, path: [], source, env, file });
  return file;
}

/** Walks the groups down to the settings. Null is a key that was left without a value: its default. */
function readGroup({
  value,
  path,
  source,
  env,
  file,
}: {
  readonly value: unknown;
  readonly path: YamlPath;
  readonly source: YamlSource;
  readonly env: NodeJS.ProcessEnv;
  readonly file: SettingsFile;
}): void {
  if (value === null) return;
  if (typeof value !== "object" || Array.isArray(value)) {
    file.faults.push(source.faultAt(path, "expected keys and values"));
    return;
  }
  const known = childrenOf(path);
  for (const [name, child] of Object.entries(value)) {
    const childPath = [...path, name];
    const key = settingKeys.find((candidate) => candidate === childPath.join("."));
    if (!known.has(name)) {
      file.faults.push(source.faultAt(childPath, `unknown key${hint(name, known)}`, "key"));
    } else if (key === undefined) {
      readGroup({ value: child, path: childPath, source, env, file });
    } else {
      const filled = fillIn(child, env);
      file.faults.push(...filled.faults.map((message) => source.faultAt(childPath, message)));
      const isLeftOut = filled.value === null || filled.value === undefined || filled.faults.length > 0;
      if (!isLeftOut) {
        file.given.set(key, {
          value: filled.value,
          fault: (part, message) => source.faultAt([...childPath, ...part], message),
        });
      }
    }
  }
}

function childrenOf(path: YamlPath): ReadonlySet<string> {
  const inGroup = settingKeys
    .map((key) => key.split("."))
    .filter((steps) => path.every((step, i) => steps[i] === step));
  return new Set(inGroup.flatMap((steps) => steps.slice(path.length, path.length + 1)));
}

/** Reads the variables, and the files that `<NAME>_FILE` names; what is wrong is added to `faults`. */
function readEnvironment(
  env: NodeJS.ProcessEnv,
  faults: string[],
): Map<SettingKey, { readonly text: string; readonly variable: string }> {
  const given = new Map<SettingKey, { readonly text: string; readonly variable: string }>();
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
      const code = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
      faults.push(`${fileVariable}: expected the path of a file that can be read (${code})`);
    }
  }
  return given;
}

function toConfig({
  values,
  tracing,
  configDir,
  cwd,
}: {
  readonly values: SettingValues;
  readonly tracing: TracingSettings | undefined;
  readonly configDir: string;
  readonly cwd: string;
}): Config {
  const isEmbedded = values["database.url"] === undefined;
  // The embedded database comes with a first user and receivers on this machine: it is for trying the service out.
  const host = values["http.host"] ?? (isEmbedded ? "127.0.0.1" : "0.0.0.0");
  return {
    configDir,
    dataDir: resolve(cwd, values.dataDir),
    database: {
      url: values["database.url"],
      autoMigrate: values["database.autoMigrate"] ?? isEmbedded,
      poolSize: values["database.poolSize"],
    },
    broker: { url: values["broker.url"] },
    http: {
      host,
      port: values["http.port"],
      routePrefix: values["http.routePrefix"],
      publicUrl: values["http.publicUrl"],
      hosts: values["http.hosts"] ?? [],
      trustedProxies: values["http.trustedProxies"] ?? [],
      bodyLimitBytes: values["http.bodyLimit"],
      memoryBudgetBytes: values["http.memoryBudget"],
      maxPerPage: values["http.maxPerPage"],
      listTimeoutMs: values["http.listTimeout"],
      concurrency: values["http.concurrency"],
      concurrencyPerUser: values["http.concurrencyPerUser"],
      maxConnections: values["http.maxConnections"],
      maxConnectionsPerAddress: values["http.maxConnectionsPerAddress"],
      drainDelayMs: values["http.drainDelay"],
      rateLimit: values["http.rateLimit"],
      authFailureLimit: values["http.authFailureLimit"],
      corsOrigins: values["http.corsOrigins"] ?? [],
    },
    auth: { jwt: jwtSettingsOf(values) },
    secretKey: values.secretKey,
    previousSecretKeys: values.previousSecretKeys ?? [],
    log: { level: values["log.level"] },
    metrics: { host: values["metrics.host"] ?? host, port: values["metrics.port"] },
    tracing,
    relay: { pollIntervalMs: values["relay.pollInterval"], batchSize: values["relay.batchSize"] },
    webhooks: {
      timeoutMs: values["webhooks.timeout"],
      maxAttempts: values["webhooks.maxAttempts"],
      backoffMs: values["webhooks.backoff"],
      jitter: values["webhooks.jitter"],
      manualRetryLimit: values["webhooks.manualRetryLimit"],
      maxPerUser: values["webhooks.maxPerUser"],
      ...networksOf({ given: values["webhooks.allowedNetworks"], isEmbedded, host }),
      concurrency: values["webhooks.concurrency"],
      receiverConcurrency: values["webhooks.receiverConcurrency"],
      breaker: values["webhooks.breaker"],
      sweepIntervalMs: values["webhooks.sweepInterval"],
      requeueAfterMs: values["webhooks.requeueAfter"],
    },
  };
}

/**
 * Where webhooks may go. On the embedded database a receiver on the same machine is the rule; once other machines reach the API, only
 * admins may name one: any user could otherwise read the services that listen on loopback because they have no authentication.
 */
function networksOf({
  given,
  isEmbedded,
  host,
}: {
  readonly given: readonly string[] | undefined;
  readonly isEmbedded: boolean;
  readonly host: string;
}): Pick<Config["webhooks"], "allowedNetworks" | "adminNetworks"> {
  if (given !== undefined || !isEmbedded) return { allowedNetworks: given ?? [], adminNetworks: [] };
  return isLoopback(host)
    ? { allowedNetworks: loopbackNetworks, adminNetworks: [] }
    : { allowedNetworks: [], adminNetworks: loopbackNetworks };
}
