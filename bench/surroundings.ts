import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Pool } from "pg";
import { startPrivatePostgres } from "../test/support/postgres.ts";
import { makeFolder, removeFolder } from "../test/support/private-process.ts";
import { startPrivateRabbitMq } from "../test/support/rabbitmq.ts";
import { mappingFiles, seedTexts, serviceSettings } from "./mapping-files.ts";

/**
 * Private servers of the benchmark, and a database with one user and the records, as a template.
 */
export interface Surroundings {
  /** Environment of every program of the service, in addition to the options of its start. */
  readonly env: NodeJS.ProcessEnv;
  readonly token: string;
  readonly userId: number;
  readonly postgresPid: number;
  readonly rabbitMqPid: number;
  readonly amqpUrl: string;
  readonly versions: Readonly<Record<string, string>>;
  /** Copies the database, and returns the URL of the copy. */
  copyDatabase(name: string): Promise<string>;
  /**
   * Returns the same URL for the dispatcher's own role, which separates its statements from those
   * of `svc api`.
   */
  urlOfDispatcher(databaseUrl: string): string;
  /** Connects under the benchmark's own role, which separates its statements from the service's. */
  connect(databaseUrl: string): Pool;
}

/** Page links are the same on both sides, so that answers can be compared byte by byte. */
export const publicUrl = "http://localhost";
/** Default of the setting `database.poolSize`, for both sides. */
export const poolSize = 12;

const template = "svc_bench";
const run = promisify(execFile);

/**
 * @param records Number of the user's records.
 * @param atEnd Takes a function to call at the end, in reverse order.
 */
export async function prepareSurroundings({
  records,
  atEnd,
}: {
  readonly records: number;
  readonly atEnd: (release: () => Promise<void> | void) => void;
}): Promise<Surroundings> {
  const folder = makeFolder("bench");
  atEnd(() => removeFolder(folder));
  const postgres = await startPrivatePostgres({
    fsync: true,
    settings: { shared_preload_libraries: "pg_stat_statements" },
  });
  atEnd(() => postgres.dispose());
  const rabbitMq = await startPrivateRabbitMq();
  atEnd(() => rabbitMq.dispose());

  const pools: Pool[] = [];
  atEnd(async () => {
    for (const pool of pools) if (!pool.ending) await pool.end();
  });
  const benchPassword = randomBytes(12).toString("hex");
  const urlFor = (role: string, databaseUrl: string): string => {
    const url = new URL(databaseUrl);
    url.username = role;
    url.password = benchPassword;
    return url.href;
  };
  const connect = (databaseUrl: string, max = 10): Pool => {
    const pool = new Pool({ connectionString: urlFor("bench", databaseUrl), max });
    // The server is killed at the end, and when a run is interrupted.
    pool.on("error", () => undefined);
    pools.push(pool);
    return pool;
  };
  const owner = new Pool({ connectionString: postgres.url, max: 1 });
  owner.on("error", () => undefined);
  pools.push(owner);
  for (const role of ["bench", "dispatcher"])
    await owner.query(`CREATE ROLE ${role} SUPERUSER LOGIN PASSWORD '${benchPassword}'`);
  await owner.query(`CREATE DATABASE ${template}`);
  const urlOf = (database: string): string => new URL(`/${database}`, postgres.url).href;

  const configDir = join(folder, "config");
  mkdirSync(join(configDir, "resources"), { recursive: true });
  for (const [name, text] of Object.entries(mappingFiles))
    writeFileSync(join(configDir, "resources", name), text);
  writeFileSync(join(configDir, "service.yaml"), serviceSettings);
  const env: NodeJS.ProcessEnv = {
    PATH: process.env["PATH"],
    NODE_ENV: "production",
    AMQP_URL: rabbitMq.url,
    SVC_CONFIG_DIR: configDir,
    SVC_DATA_DIR: join(folder, "data"),
    SVC_SECRET_KEY: randomBytes(32).toString("base64"),
    SVC_PUBLIC_URL: publicUrl,
    SVC_HOST: "127.0.0.1",
  };

  const admin = async (...args: readonly string[]): Promise<string> => {
    const { stdout } = await run(process.execPath, ["dist/bin/svc-admin.js", ...args], {
      env: { ...env, DATABASE_URL: urlOf(template) },
    });
    return stdout;
  };
  await admin("migrate");
  const user = JSON.parse(
    await admin("create-user", "--name", "Ada", "--email", "ada@example.com", "--json"),
  ) as { readonly id: number; readonly token: string };
  await seed({ pool: connect(urlOf(template), 1), userId: user.id, records });

  return {
    env,
    token: user.token,
    userId: user.id,
    postgresPid: Number(
      readFileSync(join(await show(owner, "data_directory"), "postmaster.pid"), "utf8").split("\n")[0],
    ),
    rabbitMqPid: Number(JSON.parse(await rabbitMq.ctl("eval", "os:getpid()."))),
    amqpUrl: rabbitMq.url,
    versions: {
      postgresql: await show(owner, "server_version"),
      rabbitmq: (await rabbitMq.ctl("version")).trim(),
    },
    async copyDatabase(name) {
      await owner.query(`CREATE DATABASE ${name} TEMPLATE ${template}`);
      return urlOf(name);
    },
    urlOfDispatcher: (databaseUrl) => urlFor("dispatcher", databaseUrl),
    connect,
  };
}

async function seed({
  pool,
  userId,
  records,
}: {
  readonly pool: Pool;
  readonly userId: number;
  readonly records: number;
}): Promise<void> {
  await pool.query("CREATE EXTENSION pg_stat_statements");
  // The records existed before the benchmark, so they make no events.
  await pool.query("SET session_replication_role = replica");
  for (const text of seedTexts) await pool.query(text, [userId, records]);
  await pool.query("VACUUM ANALYZE");
  // A database in use cannot be copied.
  await pool.end();
}

/** Inserts records past the API, in one statement. */
export async function insertNotes(
  pool: Pool,
  { userId, count }: { readonly userId: number; readonly count: number },
): Promise<void> {
  const text = `INSERT INTO notes (title, body, user_id)
    SELECT 'Note ' || number, repeat('Lorem ipsum dolor. ', 10), $1 FROM generate_series(1, $2::int) AS number`;
  await pool.query(text, [userId, count]);
}

async function show(pool: Pool, setting: string): Promise<string> {
  const { rows } = await pool.query<{ readonly value: string }>("SELECT current_setting($1) AS value", [
    setting,
  ]);
  return rows[0]?.value ?? "";
}
