import { randomBytes } from "node:crypto";
import { Pool } from "pg";
import { startPrivatePostgres } from "../../test/support/postgres.ts";
import { startPrivateRabbitMq } from "../../test/support/rabbitmq.ts";
import type { AtEnd } from "../run-to-end.ts";

/** An empty database and an empty virtual host of the broker, for one hold-up. */
export interface Place {
  readonly databaseUrl: string;
  /**
   * URL of the same database for the bench's own role, which separates its statements from the
   * service's.
   */
  readonly ownUrl: string;
  readonly amqpUrl: string;
}

/** Starts PostgreSQL and RabbitMQ, and returns a function that makes a place on them. */
export async function startServers(atEnd: AtEnd): Promise<(name: string) => Promise<Place>> {
  const postgres = await startPrivatePostgres({
    fsync: true,
    settings: { shared_preload_libraries: "pg_stat_statements" },
  });
  atEnd(() => postgres.dispose());
  const rabbitMq = await startPrivateRabbitMq();
  atEnd(() => rabbitMq.dispose());
  const pool = new Pool({ connectionString: postgres.url, max: 1 });
  pool.on("error", () => undefined);
  atEnd(() => pool.end());
  const password = randomBytes(12).toString("hex");
  await pool.query(`CREATE ROLE bench SUPERUSER LOGIN PASSWORD '${password}'`);

  return async (name) => {
    await pool.query(`CREATE DATABASE ${name}`);
    await rabbitMq.ctl("add_vhost", name);
    await rabbitMq.ctl("set_permissions", "-p", name, "svc", ".*", ".*", ".*");
    const databaseUrl = new URL(`/${name}`, postgres.url);
    const ownUrl = new URL(databaseUrl);
    ownUrl.username = "bench";
    ownUrl.password = password;
    return { databaseUrl: databaseUrl.href, ownUrl: ownUrl.href, amqpUrl: `${rabbitMq.url}/${name}` };
  };
}
