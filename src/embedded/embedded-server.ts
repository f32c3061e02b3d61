import { createServer, type Socket } from "node:net";
import type { PGlite } from "@electric-sql/pglite";
import { messageOf } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import { errorResponse, readMessages, type Message } from "./wire.ts";

export interface EmbeddedServer {
  /** Starts to answer. Connections made earlier wait for it. */
  serve(db: PGlite): void;
  /** Ends every connection, rolls back open transactions, and removes the socket. */
  close(): Promise<void>;
}

interface Connection {
  readonly socket: Socket;
  received: Buffer;
  isStarted: boolean;
  /** Messages of the extended protocol, up to the one that asks for an answer. */
  batch: Buffer[];
}

/** Bytes of one connection that must run without another connection in between. */
interface Turn {
  readonly connection: Connection;
  readonly bytes: Uint8Array;
  /** False after a Flush: the Sync that ends the batch is still to come. */
  readonly isWhole: boolean;
}

const rollback = Buffer.concat([Buffer.from("S\0\0\0\x04"), Buffer.from("Q\0\0\0\x0dROLLBACK\0")]);

/**
 * Serves one PGlite to many connections of the PostgreSQL protocol on a Unix socket.
 *
 * PGlite is one backend with one unnamed statement and one transaction. A connection therefore
 * holds it from Parse to Sync, and from BEGIN to the end of the transaction. All connections share
 * settings (`SET`) and names of prepared statements. Not `@electric-sql/pglite-socket` 0.2.17: it
 * passes single messages, so connections with parameters above 64 KB run each other's statements.
 *
 * @param maxIdleInTransactionMs A connection that holds the database longer without a statement is
 *   closed, since all others wait for it.
 */
export async function listenEmbedded({
  socketPath,
  log,
  maxIdleInTransactionMs = 60_000,
}: {
  readonly socketPath: string;
  readonly log: Log;
  readonly maxIdleInTransactionMs?: number;
}): Promise<EmbeddedServer> {
  const connections = new Set<Connection>();
  let database: PGlite | undefined;
  let waiting: Turn[] = [];
  /** The connection in a transaction, or between Flush and Sync: only its turns run. */
  let holder: Connection | undefined;
  let idleTimer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;

  function nextTurn(): Turn | undefined {
    const index = holder === undefined ? 0 : waiting.findIndex(({ connection }) => connection === holder);
    return index === -1 ? undefined : waiting.splice(index, 1)[0];
  }

  async function run(db: PGlite): Promise<void> {
    for (let turn = nextTurn(); turn !== undefined; turn = nextTurn()) {
      await take(db, turn);
      // PGlite blocks the thread while it works: let sockets and timers run in between.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  function work(): void {
    if (database === undefined) return;
    running ??= run(database).finally(() => (running = undefined));
  }

  async function take(db: PGlite, { connection, bytes, isWhole }: Turn): Promise<void> {
    const { socket } = connection;
    clearTimeout(idleTimer);
    socket.cork();
    try {
      await db.execProtocolRawStream(bytes, {
        syncToFs: false,
        // The bytes are a view of PGlite's memory, which the next statement overwrites.
        onRawData: (data) => socket.writable && socket.write(Buffer.from(data)),
      });
    } catch (error) {
      log.error({ reason: messageOf(error) }, "the embedded database failed on a statement");
      socket.destroy();
    }
    process.nextTick(() => socket.uncork());
    holder = db.isInTransaction() || !isWhole ? connection : undefined;
    if (holder !== undefined) watch(holder);
  }

  function watch({ socket }: Connection): void {
    idleTimer = setTimeout(() => {
      socket.end(errorResponse({ code: "25P03", message: "the transaction was idle for too long" }));
      socket.destroySoon();
    }, maxIdleInTransactionMs);
    idleTimer.unref();
  }

  function enqueue(turn: Turn): void {
    waiting.push(turn);
    work();
  }

  function receive(connection: Connection, data: Buffer): void {
    const { socket } = connection;
    const { messages, rest } = readMessages(
      connection.received.length === 0 ? data : Buffer.concat([connection.received, data]),
      connection.isStarted,
    );
    connection.received = rest;
    for (const message of messages) {
      if (!socket.writable) return;
      handle(connection, message);
    }
  }

  function handle(connection: Connection, { kind, bytes }: Message): void {
    switch (kind) {
      case "encryption":
        connection.socket.write("N");
        return;
      case "startup":
        connection.isStarted = true;
        enqueue({ connection, bytes, isWhole: true });
        return;
      case "part":
        connection.batch.push(bytes);
        return;
      case "flush":
      case "end":
        enqueue({ connection, bytes: Buffer.concat([...connection.batch, bytes]), isWhole: kind === "end" });
        connection.batch = [];
        return;
      case "terminate":
      case "unreadable":
        connection.socket.end();
        connection.socket.destroySoon();
    }
  }

  function leave(connection: Connection): void {
    connections.delete(connection);
    waiting = waiting.filter((turn) => turn.connection !== connection);
    if (holder === connection) enqueue({ connection, bytes: rollback, isWhole: true });
  }

  const server = createServer((socket) => {
    const connection: Connection = { socket, received: Buffer.alloc(0), isStarted: false, batch: [] };
    connections.add(connection);
    socket.on("data", (data) => receive(connection, data));
    // The client went away; `close` follows.
    socket.on("error", () => undefined);
    socket.on("close", () => leave(connection));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(socketPath, resolve);
  });

  return {
    serve(db) {
      database = db;
      work();
    },
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const { socket } of connections) socket.destroy();
      await closed;
      while (running !== undefined) await running;
      clearTimeout(idleTimer);
    },
  };
}
