import { randomBytes } from "node:crypto";
import { createTestDatabase } from "./database.ts";
import { notesYaml } from "./notes.ts";
import { startPrivatePostgres } from "./postgres.ts";
import { memoryFolder, type PrivateServer } from "./private-process.ts";
import { writeConfiguration, type Configuration } from "./program.ts";
import { purgeQueues } from "./queues.ts";
import { startPrivateRabbitMq, type PrivateRabbitMq } from "./rabbitmq.ts";
import { amqpUrl } from "./services.ts";

/** A private PostgreSQL and RabbitMQ, and a configuration of programs on them. */
export interface PrivateServers {
  readonly postgres: PrivateServer;
  readonly rabbitMq: PrivateRabbitMq;
  readonly configuration: Configuration;
  /** Environment of programs and of `svc-admin`. */
  readonly env: Readonly<Record<string, string>>;
  dispose(): Promise<void>;
}

/**
 * Starts both, with the notes of notes.ts as the only resource. Does not migrate.
 *
 * @param service Text of `service.yaml`.
 * @param fsync Whether commits survive an immediate shutdown of PostgreSQL.
 */
export async function startPrivateServers({
  service,
  fsync = false,
}: {
  readonly service: string;
  readonly fsync?: boolean;
}): Promise<PrivateServers> {
  const [postgres, rabbitMq] = await Promise.all([
    startPrivatePostgres({ fsync }),
    startPrivateRabbitMq({ parent: memoryFolder }),
  ]);
  const { configuration, env } = configure(service, { databaseUrl: postgres.url, amqpUrl: rabbitMq.url });
  return {
    postgres,
    rabbitMq,
    configuration,
    env,
    async dispose() {
      configuration.dispose();
      await Promise.all([postgres.dispose(), rabbitMq.dispose()]);
    },
  };
}

/** A separate database and empty queues, and a configuration of programs on them. */
export interface OwnDatabase extends Pick<PrivateServers, "configuration" | "env" | "dispose"> {
  readonly url: string;
}

/**
 * Does the same as `startPrivateServers` on the servers of all tests: private ones take 6 s of CPU.
 *
 * @param service Text of `service.yaml`.
 */
export async function createOwnDatabase({ service }: { readonly service: string }): Promise<OwnDatabase> {
  const [database, broker] = await Promise.all([createTestDatabase(), amqpUrl()]);
  await purgeQueues(broker);
  const { configuration, env } = configure(service, { databaseUrl: database.url, amqpUrl: broker });
  return {
    url: database.url,
    configuration,
    env,
    async dispose() {
      configuration.dispose();
      await database.drop();
    },
  };
}

function configure(
  service: string,
  urls: { readonly databaseUrl: string; readonly amqpUrl: string },
): Pick<PrivateServers, "configuration" | "env"> {
  const configuration = writeConfiguration({ service, resources: { "notes.yaml": notesYaml } });
  const env = {
    ...configuration.env,
    DATABASE_URL: urls.databaseUrl,
    AMQP_URL: urls.amqpUrl,
    SVC_SECRET_KEY: randomBytes(32).toString("base64"),
  };
  return { configuration, env };
}
