import { Client } from "pg";
import type { Fault } from "./schedule.ts";
import { ownApplication, type System } from "./system.ts";

/** Exceeds the connections that the server accepts. */
const mostConnections = 400;

/**
 * Creates the fault in which others hold all connections of PostgreSQL, except those of the run
 * itself. The service has lost its own at the beginning.
 */
export function useUpConnections({ postgres }: Pick<System, "postgres">): Fault {
  const held: Client[] = [];
  const holdAll = async (): Promise<void> => {
    while (held.length < mostConnections) {
      const client = new Client({ connectionString: postgres.url, application_name: ownApplication });
      client.on("error", () => undefined);
      try {
        await client.connect();
      } catch {
        return;
      }
      held.push(client);
    }
  };
  return {
    async begin() {
      await holdAll();
      await held[0]?.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE backend_type = 'client backend' AND application_name <> $1`,
        [ownApplication],
      );
      await holdAll();
    },
    heal: () => Promise.all(held.splice(0).map((client) => client.end().catch(() => undefined))),
  };
}
