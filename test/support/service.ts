import { randomBytes } from "node:crypto";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { serviceActor } from "../../src/kit/actor.ts";
import { loadConfig, type Config } from "../../src/config/load.ts";
import { openEmbedded } from "../../src/embedded/embedded.ts";
import { openConfiguration, readConfiguration } from "../../src/app/configuration.ts";
import { openInfrastructure, type Infrastructure } from "../../src/app/infrastructure.ts";
import { createReadiness } from "../../src/app/readiness.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { startProgram, type Program } from "../../src/app/generations.ts";
import { loadHandMigrations } from "../../src/migration/hand-migrations.ts";
import { loadDefinitions } from "../../src/mapping/load.ts";
import { fillDataDir } from "./embedded.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";
import { memoryFolder } from "./private-process.ts";
import { purgeQueues } from "./queues.ts";
import { amqpUrl } from "./services.ts";
import { createCoreClient } from "./core-client.ts";
import { createCoreDatabase } from "./core-database.ts";
import { ofSuite } from "./of-suite.ts";
import type { PrismaClient } from "./generated/client.ts";

/** Kinds of database and broker: the defaults of `npm start`, or a real PostgreSQL and RabbitMQ. */
export const modes = ["embedded", "servers"] as const;
export type Mode = (typeof modes)[number];

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed JSON; undefined when the body is empty. */
  // oxlint-disable-next-line typescript/no-explicit-any -- Tests look into answers of many shapes; chai checks them.
  readonly body: any;
}

export interface TestUser {
  readonly id: number;
  readonly email: string;
  readonly token: string;
  /** Requests `path` below the route prefix with the user's token. */
  request(method: string, path: string, body?: unknown): Promise<Answer>;
}

export interface TestService {
  readonly infrastructure: Infrastructure;
  /** Client of the service's tables. */
  readonly prisma: PrismaClient;
  readonly api: Program & { readonly port: number };
  readonly config: Config;
  /** Origin and route prefix. */
  readonly baseUrl: string;
  createUser(options?: { readonly isAdmin?: boolean; readonly name?: string }): Promise<TestUser>;
  stop(): Promise<void>;
}

export interface ServiceOptions {
  readonly mode: Mode;
  /** Mapping files (and code modules) by name; default: the samples of config/resources. */
  readonly resources?: Readonly<Record<string, string>>;
  /** Migrations by hand, by name. */
  readonly migrations?: Readonly<Record<string, string>>;
  /** SQL to run before the service starts, for tables that are not managed. */
  readonly prepare?: (url: string) => Promise<void>;
  readonly http?: Partial<Config["http"]>;
  readonly webhooks?: Partial<Config["webhooks"]>;
  readonly auth?: Config["auth"];
  /**
   * Variables that take precedence over those of the mode. The database of a `DATABASE_URL` remains
   * afterwards.
   */
  readonly env?: Readonly<Record<string, string>>;
}

/** Short times, so that a journey through retries takes less than a second and little CPU. */
const quick: Partial<Config["webhooks"]> = {
  timeoutMs: 2_000,
  backoffMs: [50],
  jitter: 0,
  sweepIntervalMs: 50,
  requeueAfterMs: 2_000,
  allowedNetworks: ["127.0.0.0/8", "::1/128"],
};

/** Requests a URL with a token, or without one when it is undefined. */
export async function request({
  url,
  method,
  token,
  body,
  headers = {},
}: {
  readonly url: string;
  readonly method: string;
  readonly token?: string | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}): Promise<Answer> {
  const response = await fetch(url, {
    method,
    redirect: "manual",
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: text === "" ? undefined : JSON.parse(text),
  };
}

/**
 * Starts API, relay and dispatcher in this process, on a separate database and folder. The
 * service's tables exist already, unless `prepare` is given; the service creates those of its
 * resources.
 */
export async function startService(options: ServiceOptions): Promise<TestService> {
  const folder = await mkdtemp(join(memoryFolder, "svc-service-"));
  const configDir = join(folder, "config");
  if (options.resources === undefined) await cp("config", configDir, { recursive: true });
  else {
    await mkdir(join(configDir, "resources"), { recursive: true });
    for (const [name, text] of Object.entries(options.resources))
      await writeFile(join(configDir, "resources", name), text);
  }
  for (const [name, text] of Object.entries(options.migrations ?? {})) {
    await mkdir(join(configDir, "migrations"), { recursive: true });
    await writeFile(join(configDir, "migrations", name), text);
  }
  const log = createLog({ level: process.env["SVC_TEST_LOG"] ?? "silent", destination: 2 });
  let database: TestDatabase | undefined;
  // `prepare` may expect an empty database.
  const isMigrated = options.prepare === undefined;
  const env: Record<string, string> = {
    SVC_CONFIG_DIR: configDir,
    SVC_DATA_DIR: join(folder, "data"),
    SVC_AUTO_MIGRATE: "true",
  };
  if (options.mode === "servers") {
    if (options.env?.["DATABASE_URL"] === undefined)
      database = await (isMigrated ? createCoreDatabase() : createTestDatabase());
    const url = options.env?.["DATABASE_URL"] ?? database?.url ?? "";
    env["DATABASE_URL"] = url;
    env["AMQP_URL"] = await amqpUrl();
    env["SVC_SECRET_KEY"] = randomBytes(32).toString("base64");
    await options.prepare?.(url);
  } else {
    const dataDir = join(folder, "data");
    await fillDataDir(dataDir, { isMigrated });
    if (options.prepare !== undefined) {
      const embedded = await openEmbedded({ dataDir, log });
      try {
        await options.prepare(embedded.url);
      } finally {
        await embedded.close();
      }
    }
  }
  const loaded = loadConfig({ env: { ...env, ...options.env }, cwd: process.cwd(), program: "all" });
  const config: Config = {
    ...loaded,
    http: { ...loaded.http, host: "127.0.0.1", port: 0, ...options.http },
    webhooks: { ...loaded.webhooks, ...quick, ...options.webhooks },
    auth: options.auth ?? loaded.auth,
    relay: { ...loaded.relay, pollIntervalMs: 50 },
  };
  const checked = {
    config,
    definitions: await loadDefinitions(config.configDir),
    byHand: await loadHandMigrations(config.configDir),
    hash: "test",
  };
  const infrastructure = await openInfrastructure({
    checked,
    program: "all",
    log,
    readiness: createReadiness(),
    actor: serviceActor("all"),
    signal: new AbortController().signal,
  });
  // The queues belong to the server, and an earlier test may have left messages in them.
  if (config.broker.url !== undefined) await purgeQueues(config.broker.url);
  const configuration = await openConfiguration(checked, infrastructure);
  const program = await startProgram({
    name: "all",
    infrastructure,
    configuration,
    source: {
      read: () => readConfiguration({ env: { ...env, ...options.env }, cwd: folder, program: "all" }),
      cwd: folder,
    },
  });
  const api = { ...program, port: program.port as number };
  const baseUrl = `http://127.0.0.1:${api.port}${config.http.routePrefix}`;

  const prisma = createCoreClient(infrastructure.database.pool, infrastructure);
  return {
    infrastructure,
    prisma,
    api,
    config,
    baseUrl,
    async createUser({ isAdmin = false, name = "Ada" } = {}) {
      const email = `${randomBytes(6).toString("hex")}@example.com`;
      const { id } = await prisma.user.create({ data: { name, email, isAdmin } });
      const { token } = await api.tokens.issue({ userId: id, name: "test" });
      return {
        id,
        email,
        token,
        request: (method, path, body) => request({ url: baseUrl + path, method, token, body }),
      };
    },
    async stop() {
      await api.stop();
      await infrastructure.close();
      await database?.drop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Starts a service before the tests of a suite, and stops it after them. */
export function serviceOfSuite(options: ServiceOptions): TestService {
  return ofSuite(
    () => startService(options),
    (service) => service.stop(),
  );
}
