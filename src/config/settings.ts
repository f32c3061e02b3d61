import {
  boolean,
  corsOrigin,
  duration,
  durations,
  hostName,
  integer,
  key,
  type Kind,
  list,
  listenHost,
  network,
  oneOf,
  origin,
  rate,
  routePrefix,
  share,
  size,
  text,
  webUrl,
} from "./kinds.ts";
import { databaseUrl, serverUrl } from "./server-url.ts";

interface Setting {
  readonly kind: Kind<unknown>;
  /** The environment variable, which wins over the file. */
  readonly env?: string;
  /** Whether the file that `<env>_FILE` names may also provide the value. */
  readonly isSecret?: true;
  /** The default in the form of the file. Without a default the setting may be absent. */
  readonly default?: unknown;
  /** Whether a change takes a restart, because the process keeps what it opened with the value. */
  readonly isFixed?: true;
}

/** Limit in seconds: Node fires a timer at once when it is set further ahead. */
const longestTimer = 2_147_483;
const longestWait = 365 * 24 * 3600;

const timer = duration(0.001, longestTimer);

/** Algorithms with public keys only: with HMAC, the public key would be the secret. */
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

/** Every setting: key, variable, default, and kind of the value. */
export const settings = {
  dataDir: { kind: text("the path of a folder"), env: "SVC_DATA_DIR", default: "./data", isFixed: true },
  // Absent only with the embedded database, which keeps its key in `dataDir`.
  secretKey: { kind: key, env: "SVC_SECRET_KEY", isSecret: true, isFixed: true },
  previousSecretKeys: { kind: list(key, 0), env: "SVC_PREVIOUS_SECRET_KEYS", isSecret: true, isFixed: true },
  // Absent: the embedded database in `dataDir`.
  "database.url": { kind: databaseUrl(), env: "DATABASE_URL", isSecret: true, isFixed: true },
  // Default: true on the embedded database, else false.
  "database.autoMigrate": { kind: boolean, env: "SVC_AUTO_MIGRATE" },
  "database.poolSize": { kind: integer(1, 1000), default: 12, isFixed: true },
  // Absent: the in-process broker.
  "broker.url": { kind: serverUrl("amqp", "amqps"), env: "AMQP_URL", isSecret: true, isFixed: true },
  // Default: 127.0.0.1 on the embedded database, else 0.0.0.0.
  "http.host": { kind: listenHost, env: "SVC_HOST", isFixed: true },
  "http.port": { kind: integer(0, 65_535), env: "SVC_PORT", default: 8080, isFixed: true },
  "http.routePrefix": { kind: routePrefix, env: "SVC_ROUTE_PREFIX", default: "/svc-api" },
  // Absent: the origin comes from the request.
  "http.publicUrl": { kind: origin, env: "SVC_PUBLIC_URL" },
  // Hosts of absolute URLs; a request to another host gets the first. Empty: every host.
  "http.hosts": { kind: list(hostName, 1) },
  "http.trustedProxies": { kind: list(network, 0), isFixed: true },
  "http.bodyLimit": { kind: size(1024 ** 3), default: "1mb" },
  // Memory of requests and answers in flight. Absent: a share of the memory of the process.
  "http.memoryBudget": { kind: size(64 * 1024 ** 3), isFixed: true },
  "http.maxPerPage": { kind: integer(1, 100_000), default: 100 },
  "http.listTimeout": { kind: timer, default: 5, isFixed: true },
  "http.concurrency": { kind: integer(1, 100_000), default: 1000 },
  // Also counts the requests that wait for their turn.
  "http.concurrencyPerUser": { kind: integer(1, 100_000), default: 200 },
  "http.maxConnections": { kind: integer(1, 1_000_000), default: 5000, isFixed: true },
  // Behind a trusted proxy: requests in flight of one forwarded address.
  "http.maxConnectionsPerAddress": { kind: integer(1, 1_000_000), default: 1000, isFixed: true },
  "http.drainDelay": { kind: duration(0, 3600), default: 0 },
  // Per user. Absent: no limit.
  "http.rateLimit": { kind: rate },
  // Per client address.
  "http.authFailureLimit": { kind: rate, default: "600/60" },
  "http.corsOrigins": { kind: list(corsOrigin, 1) },
  // Access to `openapi.json` and the page over it.
  "http.openApi": { kind: oneOf("token", "public", "off"), default: "token" },
  "console.enabled": { kind: boolean, env: "SVC_CONSOLE", default: true },
  "console.path": { kind: routePrefix, env: "SVC_CONSOLE_PATH", default: "/console" },
  // Counts tokens that are neither revoked nor expired. Users with the admin flag have no limit.
  "auth.maxTokensPerUser": { kind: integer(1, 1_000_000), default: 100 },
  "auth.jwt.issuer": { kind: webUrl, env: "SVC_JWT_ISSUER" },
  "auth.jwt.audience": { kind: list(text("the name of this API at the issuer"), 1), env: "SVC_JWT_AUDIENCE" },
  // The client id of the console at the issuer, a public client. Absent: people sign in with tokens
  // only.
  "auth.jwt.clientId": { kind: text("the name of the console at the issuer"), env: "SVC_JWT_CLIENT_ID" },
  // Absent: taken from the issuer's discovery document.
  "auth.jwt.jwksUrl": { kind: webUrl, env: "SVC_JWT_JWKS_URL" },
  "auth.jwt.algorithms": {
    kind: list(oneOf(...jwtAlgorithms), 1),
    env: "SVC_JWT_ALGORITHMS",
    default: ["RS256", "PS256", "ES256", "EdDSA"],
  },
  "auth.jwt.userClaim": { kind: text("the name of a claim"), env: "SVC_JWT_USER_CLAIM", default: "sub" },
  "auth.jwt.nameClaim": { kind: text("the name of a claim"), env: "SVC_JWT_NAME_CLAIM", default: "name" },
  "auth.jwt.emailClaim": { kind: text("the name of a claim"), env: "SVC_JWT_EMAIL_CLAIM", default: "email" },
  "auth.jwt.adminClaim": { kind: text("the name of a claim"), env: "SVC_JWT_ADMIN_CLAIM" },
  "auth.jwt.adminValue": { kind: text("the value of the claim"), env: "SVC_JWT_ADMIN_VALUE" },
  // Whether the first request of an unknown user creates the user.
  "auth.jwt.provision": { kind: boolean, env: "SVC_JWT_PROVISION", default: true },
  // Networks that the issuer may be in, in addition to public addresses.
  "auth.jwt.allowedNetworks": { kind: list(network, 0), env: "SVC_JWT_ALLOWED_NETWORKS" },
  "log.level": {
    kind: oneOf("trace", "debug", "info", "warn", "error", "fatal", "silent"),
    env: "SVC_LOG_LEVEL",
    default: "info",
  },
  // Default: `http.host`.
  "metrics.host": { kind: listenHost, env: "SVC_METRICS_HOST", isFixed: true },
  "metrics.port": { kind: integer(0, 65_535), env: "SVC_METRICS_PORT", default: 9090, isFixed: true },
  "relay.pollInterval": { kind: timer, default: 0.1 },
  "relay.batchSize": { kind: integer(1, 10_000), default: 70 },
  "webhooks.timeout": { kind: timer, default: 30 },
  "webhooks.maxAttempts": { kind: integer(1, 1000), default: 10 },
  // The wait before attempt n+1 is item n-1; the last item repeats.
  "webhooks.backoff": {
    kind: durations(0, longestWait),
    default: [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400],
  },
  "webhooks.jitter": { kind: share, default: 0.2 },
  "webhooks.manualRetryLimit": { kind: integer(0, 1_000_000), default: 5 },
  // Users with the admin flag have no limit.
  "webhooks.maxPerUser": { kind: integer(1, 1_000_000), default: 50 },
  // Networks that webhooks may go to in addition to public addresses. Default: see `networksOf` in
  // load.ts.
  "webhooks.allowedNetworks": { kind: list(network, 0), env: "SVC_ALLOWED_NETWORKS" },
  "webhooks.concurrency": { kind: integer(1, 10_000), default: 64 },
  // Limit over all dispatchers. Absent: each dispatcher has a share, which depends on how quickly
  // the receiver answers.
  "webhooks.receiverConcurrency": { kind: integer(1, 10_000) },
  "webhooks.breaker": { kind: boolean, default: true },
  // A subscription with nothing but failures for this long is switched off.
  "webhooks.disableAfter": { kind: duration(1, longestWait), default: 432_000 },
  // How long a switched-off subscription still gets deliveries, which are held.
  "webhooks.holdFor": { kind: duration(1, longestWait), default: 604_800 },
  "webhooks.sweepInterval": { kind: timer, default: 1 },
  // A delivery whose message is older than this is published again.
  "webhooks.requeueAfter": { kind: timer, default: 60 },
  // 0: nothing is removed.
  "retention.days": { kind: integer(0, 36_500), default: 30 },
} as const satisfies Readonly<Record<string, Setting>>;

type Settings = typeof settings;
/** The key of a setting: `http.port`. */
export type SettingKey = keyof Settings;
/** The key of every setting, in the order of the table. */
export const settingKeys = Object.keys(settings) as readonly SettingKey[];

/** The settings whose change takes a restart. */
export const fixedSettings: readonly SettingKey[] = settingKeys.filter((name) => "isFixed" in settings[name]);

type ValueOf<S extends Setting> = S["kind"] extends Kind<infer T> ? T : never;

/** The values by key: durations in ms, sizes in bytes. An omitted list is empty. */
export type SettingValues = {
  readonly [K in SettingKey]: Settings[K] extends { readonly default: unknown }
    ? ValueOf<Settings[K]>
    : ValueOf<Settings[K]> extends readonly unknown[]
      ? ValueOf<Settings[K]>
      : ValueOf<Settings[K]> | undefined;
};

type UnitOf<K extends SettingKey> = Settings[K]["kind"] extends { readonly unit: infer Unit extends string }
  ? Unit
  : "";
type GroupOf<K extends string> = K extends `auth.jwt.${string}`
  ? "auth.jwt"
  : K extends `${infer Group}.${string}`
    ? Group
    : never;

/**
 * The values in the groups of the file, each under its name and its unit: `http.bodyLimitBytes`.
 */
type GroupedValues = {
  readonly [K in Exclude<SettingKey, `${string}.${string}`>]: SettingValues[K];
} & {
  readonly [G in GroupOf<SettingKey>]: {
    readonly [
      K in SettingKey as GroupOf<K> extends G
        ? K extends `${G}.${infer Name}`
          ? `${Name}${UnitOf<K>}`
          : never
        : never
    ]: SettingValues[K];
  };
};

/** The settings of JWTs. Without an issuer there are none. */
export type JwtSettings = GroupedValues["auth.jwt"] & { readonly issuer: string };

/**
 * Returns the group of a setting (undefined at the top level) and its name there, with the unit.
 */
export function placeOf(settingKey: SettingKey): {
  readonly group: string | undefined;
  readonly name: string;
} {
  const { kind } = settings[settingKey];
  const unit = "unit" in kind ? kind.unit : "";
  const dot = settingKey.lastIndexOf(".");
  const name = `${settingKey.slice(dot + 1)}${unit}`;
  return { group: dot === -1 ? undefined : settingKey.slice(0, dot), name };
}

/** Sorts values into the groups of the file. */
export function groupSettings(values: SettingValues): GroupedValues {
  const groups: Record<string, unknown> = {};
  for (const settingKey of settingKeys) {
    const { group, name } = placeOf(settingKey);
    if (group === undefined) groups[name] = values[settingKey];
    else groups[group] = { ...(groups[group] as object | undefined), [name]: values[settingKey] };
  }
  return groups as GroupedValues;
}
