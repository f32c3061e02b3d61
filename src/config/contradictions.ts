import { leastBudgetOf, memoryPerBodyByte } from "../kit/memory-weights.ts";
import type { ProgramName } from "./programs.ts";
import { settings, type SettingKey, type SettingValues } from "./settings.ts";

/** A fault of several settings together. */
interface Contradiction {
  /** The settings involved that may be in the file; the fault points at the first one. */
  readonly keys: readonly SettingKey[];
  /** Message of a fault that points at one of the settings. */
  readonly inFileMessage: string;
  /** Message when none of the settings is in the file. */
  readonly message: string;
}

/** Finds settings that are valid alone, but not together or not for this program. */
export function contradictions(
  values: SettingValues,
  isGiven: (key: SettingKey) => boolean,
  program: ProgramName,
): readonly Contradiction[] {
  const found: Contradiction[] = [];
  // Port 0 means any free port.
  if (values["http.port"] > 0 && values["http.port"] === values["metrics.port"]) {
    const ports = "http.port (SVC_PORT), metrics.port (SVC_METRICS_PORT)";
    found.push({
      keys: ["metrics.port", "http.port"],
      inFileMessage: `expected two different ports for ${ports}`,
      message: `${ports}: expected two different ports`,
    });
  }
  if ((program === "api" || program === "dispatcher") && !isGiven("broker.url")) {
    const message = `broker.url (AMQP_URL): expected the URL of a RabbitMQ server; only "svc all" runs without one`;
    found.push({ keys: [], inFileMessage: message, message });
  }
  const [budget, body] = [values["http.memoryBudget"], values["http.bodyLimit"]];
  if (budget !== undefined && budget < leastBudgetOf(body)) {
    const message = `expected at least ${leastBudgetOf(body)} bytes, ${memoryPerBodyByte * 2} times http.bodyLimit, so that two of the largest bodies have room`;
    found.push({ ...fault("http.memoryBudget", message), keys: ["http.memoryBudget", "http.bodyLimit"] });
  }
  const clash = consoleClash(values);
  if (clash !== undefined) found.push(fault("console.path", clash, "console.path (SVC_CONSOLE_PATH)"));
  found.push(...jwtContradictions(values, isGiven));
  // Without the setting, API and dispatcher would each open their own embedded database.
  if ((program === "api" || program === "dispatcher") && !isGiven("database.url")) {
    const message = `database.url (DATABASE_URL): expected ${settings["database.url"].kind.expected}; only "svc all" runs on the embedded database`;
    found.push({ keys: ["broker.url"], inFileMessage: `needs ${message}`, message });
  }
  // Exempts `svc-admin`: its commands decrypt no secret, and a migration job has only the database.
  if (program !== "admin" && isGiven("database.url") && !isGiven("secretKey")) {
    const message = `secretKey (SVC_SECRET_KEY): expected ${settings.secretKey.kind.expected}; only the embedded database runs without one`;
    found.push({ keys: ["database.url"], inFileMessage: `needs ${message}`, message });
  }
  return found;
}

/** First segments of the paths of the API, which the console must not cover. */
export const apiSections = [
  "audit",
  "configuration",
  "dead-letters",
  "docs",
  "events",
  "openapi.json",
  "resources",
  "stats",
  "tokens",
  "users",
  "webhook-deliveries",
  "webhook-replays",
  "webhooks",
  "whoami",
];

/** Returns why the console cannot have its path; undefined when it can. */
function consoleClash(values: SettingValues): string | undefined {
  const isOn = values["console.enabled"];
  // A setting with a fault of its own is undefined.
  const { "console.path": path, "http.routePrefix": prefix } = values as Partial<SettingValues>;
  if (!isOn || path === undefined || prefix === undefined) return undefined;
  if (path === "") return "expected a path such as /console";
  const below = `${path}/`;
  const taken = prefix === "" ? apiSections.map((name) => `/${name}`) : [prefix];
  return taken.some((one) => below.startsWith(`${one}/`) || one.startsWith(below))
    ? "expected a path that holds no path of the API, and is in none"
    : undefined;
}

const unusedWithoutIssuer = [
  "auth.jwt.audience",
  "auth.jwt.clientId",
  "auth.jwt.jwksUrl",
  "auth.jwt.adminClaim",
  "auth.jwt.adminValue",
  "auth.jwt.allowedNetworks",
] as const;

function fault(key: SettingKey, message: string, name: string = key): Contradiction {
  return { keys: [key], inFileMessage: message, message: `${name}: ${message}` };
}

/** Returns the faults of the settings of `auth.jwt` in combination. */
function jwtContradictions(
  values: SettingValues,
  isGiven: (key: SettingKey) => boolean,
): readonly Contradiction[] {
  const issuer = values["auth.jwt.issuer"];
  if (issuer === undefined) {
    const unused = isGiven("auth.jwt.issuer") ? undefined : unusedWithoutIssuer.find(isGiven);
    return unused === undefined ? [] : [fault(unused, "needs auth.jwt.issuer")];
  }
  const found: Contradiction[] = [];
  // The service must not accept tokens that the issuer made for other services.
  if (!isGiven("auth.jwt.audience"))
    found.push(fault("auth.jwt.issuer", "needs auth.jwt.audience, the name of this API at the issuer"));
  const [first, second] = (["auth.jwt.adminClaim", "auth.jwt.adminValue"] as const).filter(isGiven);
  if (first !== undefined && second === undefined)
    found.push(fault(first, "expected auth.jwt.adminClaim and auth.jwt.adminValue together"));
  const isPlain = [issuer, values["auth.jwt.jwksUrl"]].some((url) => url?.startsWith("http:") === true);
  if (isPlain && (values["auth.jwt.allowedNetworks"] ?? []).length === 0)
    found.push(fault("auth.jwt.issuer", "expected https; http is for an issuer in auth.jwt.allowedNetworks"));
  return found;
}
