import { lstatSync } from "node:fs";
import { join } from "node:path";
import { hint } from "../kit/did-you-mean.ts";
import { isObject } from "../kit/is-object.ts";
import { shownPath } from "../kit/shown-path.ts";
import { settingKeys, type SettingKey } from "./settings.ts";
import { fillIn } from "./variables.ts";
import { readYamlFile, type Fault, type YamlPath, type YamlSource } from "./yaml-source.ts";

export interface GivenValue {
  readonly value: unknown;
  /** Creates a fault at the value, or at a part of it. */
  readonly fault: (part: YamlPath, message: string) => Fault;
}

/** The values and the faults of `service.yaml`. */
interface SettingsFile {
  readonly faults: Fault[];
  readonly given: Map<SettingKey, GivenValue>;
}

/**
 * Reads `service.yaml`; a missing file sets nothing. Fills in `${NAME}` from `env`.
 *
 * @param cwd Folder to which the file's path in faults is relative.
 */
export function readSettingsFile(configDir: string, env: NodeJS.ProcessEnv, cwd: string): SettingsFile {
  const path = join(configDir, "service.yaml");
  const file: SettingsFile = { faults: [], given: new Map() };
  const shown = shownPath(path, cwd);
  if (!isThere(path)) {
    // Mapping files may have this ending, and all settings would be the defaults.
    const place = { file: shown.replace(/yaml$/, "yml"), line: 1, column: 1, key: "" };
    if (isThere(path.replace(/yaml$/, "yml")))
      file.faults.push({ ...place, message: "expected the name service.yaml" });
    return file;
  }
  const source = readYamlFile(path, shown);
  file.faults.push(...source.faults);
  if (source.faults.length === 0) readGroup({ value: source.value, path: [], source, env, file });
  return file;
}

/**
 * Returns whether the path exists. That includes a broken link, and a path without permission: the
 * read reports the reason.
 */
function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

/** Descends through the groups to the settings. A key with null has its default. */
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
  if (!isObject(value)) {
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
