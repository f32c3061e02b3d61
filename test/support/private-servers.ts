import { randomBytes } from "node:crypto";
import { notesYaml } from "./ledger.ts";
import { startPrivatePostgres } from "./postgres.ts";
import type { PrivateServer } from "./private-process.ts";
import { writeConfiguration, type Configuration } from "./program.ts";
import { startPrivateRabbitMq, type PrivateRabbitMq } from "./rabbitmq.ts";

/** A PostgreSQL and a RabbitMQ to stop and to kill, and a configuration of programs on them. */
export interface PrivateServers {
  readonly postgres: PrivateServer;
  readonly rabbitMq: PrivateRabbitMq;
  readonly configuration: Configuration;
  /** Of programs and of `svc-admin`. */
  readonly env: Readonly<Record<string, string>>;
  dispose(): Promise<void>;
}

/**
 * Starts both, with the notes of ledger.ts as the only resource. Migrates nothing.
 *
 * @param service The text of `service.yaml`.
 * @param fsync Whether commits outlive an immediate shutdown of PostgreSQL.
 */
export async function startPrivateServers({
  service,
  fsync = false,
}: {
  readonly service: string;
  readonly fsync?: boolean;
}): Promise<PrivateServers> {
  const [postgres, rabbitMq] = await Promise.all([startPrivatePostgres({ fsync }), startPrivateRabbitMq()]);
  const configuration = writeConfiguration({ service, resources: { "notes.yaml": notesYaml } });
  const env = {
    ...configuration.env,
    DATABASE_URL: postgres.url,
    AMQP_URL: rabbitMq.url,
    SVC_SECRET_KEY: randomBytes(32).toString("base64"),
  };
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
