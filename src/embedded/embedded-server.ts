import { createServer, type Socket } from "node:net";
import type { PGlite } from "@electric-sql/pglite";
import { messageOf } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import { errorResponse, readMessages, type Message } from "./wire.ts";

/** The socket of an embedded database. */
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
  /** Messages of the extended protocol, up to the message that requests an answer. */
  batch: Buffer[];
}

/** Bytes of one connection that must run without another connection in between. */
interface Turn {
  readonly connection: Connection;
  readonly bytes: Uint8Array;
  /**
   * Whether the batch is complete; false after a Flush, when the Sync that ends the batch is still
   * to come.
   */
  readonly isWhole: boolean;
}

interface State {
  readonly log: Log;
  readonly maxIdleInTransactionMs: number;
  readonly connections: Set<Connection>;
  waiting: Turn[];
  /** Undefined until `serve`. */
  database: PGlite | undefined;
  /** The connection in a transaction, or between Flush and Sync. Only its turns run. */
  holder: Connection | undefined;
  idleTimer: NodeJS.Timeout | undefined;
  running: Promise<void> | undefined;
}

const rollback = Buffer.concat([Buffer.from("S\0\0\0\x04"), Buffer.from("Q\0\0\0\x0dROLLBACK\0")]);

/**
 * Serves one PGlite to many connections of the PostgreSQL protocol on a Unix socket.
 *
 * PGlite is one backend with one unnamed statement and one transaction. A connection therefore
 * holds the database from Parse to Sync, and from BEGIN to the end of the transaction. All
 * connections share settings (`SET`) and names of prepared statements.
 * `@electric-sql/pglite-socket` 0.2.17 is not used. It passes single messages, so connections with
 * parameters above 64 KB run each other's statements.
 *
 * @param maxIdleInTransactionMs A connection that holds the database longer without a statement is
 *   closed, because all others wait for it.
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
  const state: State = {
    log,
    maxIdleInTransactionMs,
    connections: new Set(),
    waiting: [],
    database: undefined,
    holder: undefined,
    idleTimer: undefined,
    running: undefined,
  };
  const server = createServer((socket) => accept(state, socket));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(socketPath, resolve);
  });
  return {
    serve(db) {
      state.database = db;
      work(state);
    },
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const { socket } of state.connections) socket.destroy();
      await closed;
      while (state.running !== undefined) await state.running;
      clearTimeout(state.idleTimer);
    },
  };
}

function accept(state: State, socket: Socket): void {
  const connection: Connection = { socket, received: Buffer.alloc(0), isStarted: false, batch: [] };
  state.connections.add(connection);
  socket.on("data", (data) => receive(state, connection, data));
  // The client has disconnected; `close` follows.
  socket.on("error", () => undefined);
  socket.on("close", () => leave(state, connection));
}

function receive(state: State, connection: Connection, data: Buffer): void {
  const { socket } = connection;
  const { messages, rest } = readMessages(
    connection.received.length === 0 ? data : Buffer.concat([connection.received, data]),
    connection.isStarted,
  );
  connection.received = rest;
  for (const message of messages) {
    if (!socket.writable) return;
    handle(state, connection, message);
  }
}

function handle(state: State, connection: Connection, { kind, bytes }: Message): void {
  switch (kind) {
    case "encryption":
      connection.socket.write("N");
      return;
    case "startup":
      connection.isStarted = true;
      enqueue(state, { connection, bytes, isWhole: true });
      return;
    case "part":
      connection.batch.push(bytes);
      return;
    case "flush":
    case "end":
      enqueue(state, {
        connection,
        bytes: Buffer.concat([...connection.batch, bytes]),
        isWhole: kind === "end",
      });
      connection.batch = [];
      return;
    case "terminate":
    case "unreadable":
      connection.socket.end();
      connection.socket.destroySoon();
  }
}

function leave(state: State, connection: Connection): void {
  state.connections.delete(connection);
  state.waiting = state.waiting.filter((turn) => turn.connection !== connection);
  if (state.holder === connection) enqueue(state, { connection, bytes: rollback, isWhole: true });
}

function enqueue(state: State, turn: Turn): void {
  state.waiting.push(turn);
  work(state);
}

function work(state: State): void {
  const { database } = state;
  if (database === undefined) return;
  state.running ??= runTurns(state, database).finally(() => (state.running = undefined));
}

async function runTurns(state: State, db: PGlite): Promise<void> {
  for (let turn = nextTurn(state); turn !== undefined; turn = nextTurn(state)) {
    await runTurn(state, db, turn);
    // Lets sockets and timers run between turns, because PGlite blocks the thread while it works.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function nextTurn({ holder, waiting }: State): Turn | undefined {
  const index = holder === undefined ? 0 : waiting.findIndex(({ connection }) => connection === holder);
  return index === -1 ? undefined : waiting.splice(index, 1)[0];
}

async function runTurn(state: State, db: PGlite, { connection, bytes, isWhole }: Turn): Promise<void> {
  const { socket } = connection;
  clearTimeout(state.idleTimer);
  socket.cork();
  try {
    await db.execProtocolRawStream(bytes, {
      syncToFs: false,
      // The bytes are a view of PGlite's memory, which the next statement overwrites.
      onRawData: (data) => socket.writable && socket.write(Buffer.from(data)),
    });
  } catch (error) {
    state.log.error({ reason: messageOf(error) }, "the embedded database failed on a statement");
    socket.destroy();
  }
  process.nextTick(() => socket.uncork());
  state.holder = db.isInTransaction() || !isWhole ? connection : undefined;
  if (state.holder !== undefined) state.idleTimer = closeWhenIdle(state.holder, state.maxIdleInTransactionMs);
}

function closeWhenIdle({ socket }: Connection, limitMs: number): NodeJS.Timeout {
  const timer = setTimeout(() => {
    socket.end(errorResponse("25P03", "the transaction was idle for too long"));
    socket.destroySoon();
  }, limitMs);
  return timer.unref();
}
