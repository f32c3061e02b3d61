import ipaddr from "ipaddr.js";
import { isHost } from "../kit/host.ts";

/** How the value of a setting is read, from YAML or from text (the environment). */
export interface Kind<T> {
  /** Completes "expected ...". */
  readonly expected: string;
  /** Undefined when the value is not of this kind. */
  read(value: unknown): T | undefined;
  /** What each item of a list is. */
  readonly item?: Kind<unknown>;
}

interface Setting {
  readonly kind: Kind<unknown>;
  /** The environment variable that wins over the file. */
  readonly env?: string;
  /** Also taken from the file that `<env>_FILE` names. */
  readonly isSecret?: true;
  /** As it would stand in the file. Without one the setting may be left out. */
  readonly default?: unknown;
}

/** A timer of Node that is set further ahead fires at once. */
const longestTimer = 2_147_483;
const longestWait = 365 * 24 * 3600;

const timer = duration(0.001, longestTimer);

/** Of public keys only. With a secret in the place of a key, the public key would be the secret. */
const jwtAlgorithms = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
] as const;

/** Every setting: the one place for its key, its variable, its default and what it may be (contract, section 2). */
export const settings = {
  dataDir: { kind: text("the path of a folder"), env: "SVC_DATA_DIR", default: "./data" },
  secretKey: { kind: key(), env: "SVC_SECRET_KEY", isSecret: true },
  previousSecretKeys: { kind: list(key(), 0), env: "SVC_PREVIOUS_SECRET_KEYS", isSecret: true },
  "database.url": {
    kind: serverUrl("postgresql", "postgres"),
    env: "DATABASE_URL",
    isSecret: true,
  },
  "database.autoMigrate": { kind: boolean(), env: "SVC_AUTO_MIGRATE" },
  "database.poolSize": { kind: integer(1, 1000), default: 10 },
  "broker.url": { kind: serverUrl("amqp", "amqps"), env: "AMQP_URL", isSecret: true },
  "http.host": { kind: text("an address or a host name"), env: "SVC_HOST" },
  "http.port": { kind: integer(0, 65_535), env: "SVC_PORT", default: 8080 },
  "http.routePrefix": { kind: routePrefix(), env: "SVC_ROUTE_PREFIX", default: "/svc-api" },
  "http.publicUrl": { kind: origin(), env: "SVC_PUBLIC_URL" },
  "http.hosts": { kind: list(hostName(), 1) },
  "http.trustedProxies": { kind: list(network(), 0) },
  "http.bodyLimit": { kind: size(1024 ** 3), default: "1mb" },
  "http.memoryBudget": { kind: size(64 * 1024 ** 3) },
  "http.maxPerPage": { kind: integer(1, 100_000), default: 100 },
  "http.listTimeout": { kind: timer, default: 5 },
  "http.concurrency": { kind: integer(1, 100_000), default: 1000 },
  "http.concurrencyPerUser": { kind: integer(1, 100_000), default: 200 },
  "http.maxConnections": { kind: integer(1, 1_000_000), default: 5000 },
  "http.maxConnectionsPerAddress": { kind: integer(1, 1_000_000), default: 1000 },
  "http.drainDelay": { kind: duration(0, 3600), default: 0 },
  "http.rateLimit": { kind: rate() },
  "http.authFailureLimit": { kind: rate(), default: "600/60" },
  "http.corsOrigins": { kind: list(corsOrigin(), 1) },
  "auth.jwt.issuer": { kind: webUrl() },
  "auth.jwt.audience": { kind: list(text("the name of this API at the issuer"), 1) },
  "auth.jwt.jwksUrl": { kind: webUrl() },
  "auth.jwt.algorithms": {
    kind: list(oneOf(...jwtAlgorithms), 1),
    default: ["RS256", "PS256", "ES256", "EdDSA"],
  },
  "auth.jwt.userClaim": { kind: text("the name of a claim"), default: "sub" },
  "auth.jwt.nameClaim": { kind: text("the name of a claim"), default: "name" },
  "auth.jwt.emailClaim": { kind: text("the name of a claim"), default: "email" },
  "auth.jwt.adminClaim": { kind: text("the name of a claim") },
  "auth.jwt.adminValue": { kind: text("the value of the claim") },
  "auth.jwt.provision": { kind: boolean(), default: true },
  "auth.jwt.allowedNetworks": { kind: list(network(), 0) },
  "log.level": {
    kind: oneOf("trace", "debug", "info", "warn", "error", "fatal", "silent"),
    env: "SVC_LOG_LEVEL",
    default: "info",
  },
  "metrics.host": { kind: text("an address or a host name"), env: "SVC_METRICS_HOST" },
  "metrics.port": { kind: integer(0, 65_535), env: "SVC_METRICS_PORT", default: 9090 },
  "relay.pollInterval": { kind: timer, default: 0.1 },
  "relay.batchSize": { kind: integer(1, 10_000), default: 200 },
  "webhooks.timeout": { kind: timer, default: 30 },
  "webhooks.maxAttempts": { kind: integer(1, 1000), default: 10 },
  "webhooks.backoff": {
    kind: list(duration(0, longestWait), 1),
    default: [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400],
  },
  "webhooks.jitter": { kind: share(), default: 0.2 },
  "webhooks.manualRetryLimit": { kind: integer(0, 1_000_000), default: 5 },
  "webhooks.maxPerUser": { kind: integer(1, 1_000_000), default: 50 },
  "webhooks.allowedNetworks": { kind: list(network(), 0), env: "SVC_ALLOWED_NETWORKS" },
  "webhooks.concurrency": { kind: integer(1, 10_000), default: 64 },
  "webhooks.receiverConcurrency": { kind: integer(1, 10_000) },
  "webhooks.breaker": { kind: boolean(), default: true },
  "webhooks.sweepInterval": { kind: timer, default: 1 },
  "webhooks.requeueAfter": { kind: timer, default: 60 },
} as const satisfies Readonly<Record<string, Setting>>;

type Settings = typeof settings;
export type SettingKey = keyof Settings;
type ValueOf<S extends Setting> = S["kind"] extends Kind<infer T> ? T : never;

/** What has been read, by key; durations in ms, sizes in bytes. */
export type SettingValues = {
  readonly [K in SettingKey]: Settings[K] extends { readonly default: unknown }
    ? ValueOf<Settings[K]>
    : ValueOf<Settings[K]> | undefined;
};

function text(expected: string): Kind<string> {
  return {
    expected,
    read: (value) => (typeof value === "string" && value.trim() !== "" ? value : undefined),
  };
}

function boolean(): Kind<boolean> {
  const words: ReadonlyMap<unknown, boolean> = new Map<unknown, boolean>([
    [true, true],
    ["true", true],
    [false, false],
    ["false", false],
  ]);
  return { expected: "true or false", read: (value) => words.get(value) };
}

function oneOf<const T extends string>(...words: readonly T[]): Kind<T> {
  return { expected: `one of ${words.join(", ")}`, read: (value) => words.find((word) => word === value) };
}

function numberOf(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  return typeof value === "string" && /^-?\d+(\.\d+)?$/.test(value.trim()) ? Number(value) : undefined;
}

function number(expected: string, isFine: (value: number) => boolean): Kind<number> {
  return {
    expected,
    read(value) {
      const given = numberOf(value);
      return given !== undefined && isFine(given) ? given : undefined;
    },
  };
}

function integer(least: number, most: number): Kind<number> {
  return number(
    `a whole number from ${least} to ${most}`,
    (value) => Number.isInteger(value) && value >= least && value <= most,
  );
}

function share(): Kind<number> {
  return number("a number from 0 to 1", (value) => value >= 0 && value <= 1);
}

/** Seconds in the file, milliseconds here. */
function duration(least: number, most: number): Kind<number> {
  const seconds = number(`seconds, from ${least} to ${most}`, (value) => value >= least && value <= most);
  return {
    expected: seconds.expected,
    read(value) {
      const given = seconds.read(value);
      return given === undefined ? undefined : Math.round(given * 1000);
    },
  };
}

/** Bytes. */
function size(most: number): Kind<number> {
  const units: Readonly<Record<string, number>> = { b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 };
  return {
    expected: `a size such as 1mb, 512kb or 1048576, at least 1 byte and at most ${most / 1024 ** 3}gb`,
    read(value) {
      const [, amount, unit = "b"] = /^(\d+(?:\.\d+)?) ?(b|kb|mb|gb)?$/i.exec(String(value).trim()) ?? [];
      const bytes = Math.floor(Number(amount) * (units[unit.toLowerCase()] ?? NaN));
      return bytes >= 1 && bytes <= most ? bytes : undefined;
    },
  };
}

/** A YAML list, or text with commas or line breaks. */
function list<T>(item: Kind<T>, least: number): Kind<readonly T[]> {
  return {
    expected: `a list of ${least > 0 ? "at least one of " : ""}(${item.expected})`,
    item,
    read(value) {
      const given: readonly unknown[] | undefined =
        typeof value === "string"
          ? value.split(/[,\n]/).map((part) => part.trim())
          : Array.isArray(value)
            ? value
            : undefined;
      const read = given?.filter((part) => !isNothing(part)).map((part) => item.read(part));
      const items = read?.filter((part) => part !== undefined);
      return items !== undefined && items.length === read?.length && items.length >= least
        ? items
        : undefined;
    },
  };
}

/** What is left of a variable that is empty. */
export function isNothing(item: unknown): boolean {
  return item === "" || item === undefined;
}

function network(): Kind<string> {
  return {
    expected: "a network such as 10.0.0.0/8 or fd00::/8",
    read: (value) =>
      typeof value === "string" && ipaddr.isValidCIDR(value.trim()) ? value.trim() : undefined,
  };
}

function key(): Kind<Buffer> {
  return {
    expected: "32 random bytes in base64, as `openssl rand -base64 32` gives them",
    read(value) {
      if (typeof value !== "string" || !/^[A-Za-z0-9+/]{43}=?$/.test(value.trim())) return undefined;
      return Buffer.from(value, "base64");
    },
  };
}

function serverUrl(...protocols: readonly string[]): Kind<string> {
  return {
    expected: `a URL that begins with ${protocols.map((protocol) => `${protocol}://`).join(" or ")} (special characters in a password are percent-encoded)`,
    read(value) {
      if (typeof value !== "string" || !URL.canParse(value.trim())) return undefined;
      const isFine = protocols.some((protocol) => value.trim().startsWith(`${protocol}://`));
      return isFine ? value.trim() : undefined;
    },
  };
}

function origin(): Kind<string> {
  return {
    expected: "an origin such as https://api.example.com, without a path",
    read(value) {
      if (typeof value !== "string" || !URL.canParse(value)) return undefined;
      const url = new URL(value);
      const isWeb = url.protocol === "https:" || url.protocol === "http:";
      // Equal only when there is no user, path, query or fragment.
      return isWeb && url.href === `${url.origin}/` ? url.origin : undefined;
    },
  };
}

/** As it is written: an issuer is compared to the letter. */
function webUrl(): Kind<string> {
  return {
    expected: "a URL such as https://login.example.com/realms/shop, without user name and query",
    read(value) {
      const isUrl = typeof value === "string" && /^https?:\/\/[^\s?#@]+$/.test(value) && URL.canParse(value);
      return isUrl ? value : undefined;
    },
  };
}

/** As a `Host` header has it: without a port it holds for every port. */
function hostName(): Kind<string> {
  return {
    expected: "a host such as api.example.com or api.example.com:8443",
    read(value) {
      const isFine =
        typeof value === "string" && isHost(value.trim()) && URL.canParse(`http://${value.trim()}`);
      return isFine ? value.trim().toLowerCase() : undefined;
    },
  };
}

/** How many of something are allowed in how long a time. */
export interface Rate {
  readonly count: number;
  readonly windowMs: number;
}

function rate(): Kind<Rate> {
  const [count, seconds] = [integer(1, 1_000_000_000), integer(1, 24 * 3600)];
  return {
    expected: "requests per seconds such as 600/60, at most a day",
    read(value) {
      const [, amount, window] = /^(\d+) ?\/ ?(\d+)$/.exec(String(value).trim()) ?? [];
      const [given, inSeconds] = [count.read(amount), seconds.read(window)];
      return given === undefined || inSeconds === undefined
        ? undefined
        : { count: given, windowMs: inSeconds * 1000 };
    },
  };
}

function corsOrigin(): Kind<string> {
  const one = origin();
  return {
    expected: "* or an origin such as https://app.example.com, without a path",
    read: (value) => (value === "*" ? value : one.read(value)),
  };
}

/** Segments of unreserved characters only: others mean something to the router. */
function routePrefix(): Kind<string> {
  return {
    expected: "a path such as /svc-api, or / for none",
    read(value) {
      if (value === "" || value === "/") return "";
      const isPath = typeof value === "string" && /^(\/(?!\.{1,2}(\/|$))[\w.~-]+)+\/?$/.test(value);
      return isPath ? value.replace(/\/$/, "") : undefined;
    },
  };
}
