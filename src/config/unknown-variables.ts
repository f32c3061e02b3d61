import { readFileSync } from "node:fs";
import { join } from "node:path";
import { configDirOf, type Environment } from "./load.ts";
import { questionOf } from "../kit/did-you-mean.ts";
import { settings } from "./settings.ts";

/** Variables of the service that are not settings. */
const others = ["SVC_CONFIG_DIR"];

/** Variables that Kubernetes sets in every container for a Service named svc-something. */
const ofKubernetes = /_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_(TCP|UDP)(_|$)/;

/**
 * Returns a sentence for each variable that starts with `SVC_` and is unknown. A mistyped setting
 * would otherwise keep its default without notice. Leaves out variables that `service.yaml` uses as
 * `${NAME}`.
 */
export function unknownVariables({ env, cwd }: Environment): readonly string[] {
  const known = Object.values(settings).flatMap((setting) => {
    if (!("env" in setting)) return [];
    return "isSecret" in setting ? [setting.env, `${setting.env}_FILE`] : [setting.env];
  });
  const all = [...known, ...others];
  const file = textOf(join(configDirOf({ env, cwd }), "service.yaml"));
  return Object.entries(env)
    .filter(([name, value]) => name.startsWith("SVC_") && !all.includes(name) && !isOfKubernetes(name, value))
    .filter(([name]) => ![":-", "}"].some((end) => file.includes(`\${${name}${end}`)))
    .map(([name]) => `${name} is not a variable of svc, and is ignored${questionOf(name, all, "")}`);
}

/** Returns the text of a file; empty for an unreadable file, whose reason `loadConfig` reports. */
function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function isOfKubernetes(name: string, value: string | undefined): boolean {
  return ofKubernetes.test(name) || /^(tcp|udp):\/\//.test(value ?? "");
}
