import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/** A pooler that shares one session among all connections, statement by statement. */
export interface TransactionPooler {
  readonly url: string;
  close(): void;
}

const terminate = "X";
/** AuthenticationOk and ReadyForQuery of PostgreSQL's protocol. */
const welcome = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49]);

/**
 * Imitates PgBouncer in transaction mode with `default_pool_size = 1`, for connections that send
 * one statement at a time. The first one signs in to the server for all.
 */
export async function startTransactionPooler(target: string): Promise<TransactionPooler> {
  const { hostname, port } = new URL(target);
  const session = connect(Number(port), hostname);
  let asking: Socket | undefined;
  let isFirst = true;
  session.on("data", (answer) => asking?.write(answer)).on("error", () => undefined);

  const server = createServer((client) => {
    const forward = (message: Buffer): void => {
      if (message.toString("latin1", 0, 1) === terminate) return;
      asking = client;
      session.write(message);
    };
    client.on("error", () => undefined);
    if (isFirst) client.on("data", forward);
    else
      client.once("data", () => {
        client.write(welcome);
        client.on("data", forward);
      });
    isFirst = false;
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");

  const url = new URL(target);
  url.hostname = "127.0.0.1";
  url.port = String(address.port);
  return {
    url: url.href,
    close() {
      session.destroy();
      server.close();
    },
  };
}
