import { Client } from "pg";
import { OperatorError } from "../kit/errors.ts";

/**
 * Longest wait for the second session. A pooler in session mode does not answer while all its
 * sessions are in use.
 */
const answerTimeoutMs = 2000;

/**
 * Refuses a pooler that may give each transaction of a connection another session of the server.
 * Settings and prepared statements belong to a session. The service would fail now and then, and
 * still look ready.
 *
 * Compares the sessions of two connections. Connections to PostgreSQL have one session each, and
 * keep it. A pooler in transaction mode lends the session of an idle connection to the other, or
 * changes it. A server that fails meanwhile is not refused, because the next statement reports the
 * failure.
 *
 * @throws OperatorError for a pooler in transaction or statement mode.
 */
export async function refuseTransactionPooling(url: string): Promise<void> {
  const clients = [openClient(url), openClient(url)] as const;
  try {
    await Promise.all(clients.map((client) => client.connect()));
    // Every connection of the service begins with a SET, for which a proxy may then keep the
    // session.
    for (const client of clients) await client.query("SET jit = off");
    const known = [await sessionOf(clients[0]), await sessionOf(clients[1])];
    // Asks one connection twice in a row: otherwise two sessions lent in turn look like one for
    // each connection.
    for (const asked of [0, 0, 1, 0, 1] as const) {
      if (known[0] === known[1] || known[asked] !== (await sessionOf(clients[asked])))
        throw new OperatorError(
          "The database is behind a pooler in transaction or statement mode, which does not keep the settings and " +
            "prepared statements of a connection. Set its pool mode to session (PgBouncer: pool_mode = session), or " +
            "connect to PostgreSQL directly",
        );
    }
  } catch (error) {
    if (error instanceof OperatorError) throw error;
  } finally {
    // The answer is known; a connection that fails while it ends changes nothing.
    await Promise.all(clients.map((client) => client.end().catch(() => undefined)));
  }
}

function openClient(url: string): Client {
  const client = new Client({
    connectionString: url,
    connectionTimeoutMillis: answerTimeoutMs,
    query_timeout: answerTimeoutMs,
  });
  client.on("error", () => undefined);
  return client;
}

async function sessionOf(client: Client): Promise<number> {
  const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  return rows[0]?.pid ?? 0;
}
