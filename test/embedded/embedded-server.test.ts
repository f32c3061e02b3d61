import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { PGlite } from "@electric-sql/pglite";
import { expect } from "chai";
import { Client } from "pg";
import { type EmbeddedServer, listenEmbedded } from "../../src/embedded/embedded-server.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { until } from "../support/wait.ts";

describe("listenEmbedded", function () {
  this.timeout(60_000);
  let folder: string;
  let socketPath: string;
  let db: PGlite;
  let server: EmbeddedServer;

  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "svc-server-"));
    socketPath = path.join(folder, ".s.PGSQL.5432");
    db = await PGlite.create();
  });

  beforeEach(async () => {
    server = await listenEmbedded({
      socketPath,
      log: createLog({ level: "silent" }),
      maxIdleInTransactionMs: 200,
    });
  });

  afterEach(() => server.close());

  after(async () => {
    await db.close();
    await rm(folder, { recursive: true, force: true });
  });

  it("lets early connections wait for the database", async () => {
    const client = newClient();
    const answer = client.connect().then(() => client.query("SELECT 1"));

    server.serve(db);

    expect((await answer).rowCount).to.equal(1);
    await client.end();
  });

  it("cuts a connection that leaves its transaction idle, with the reason, and rolls it back", async () => {
    server.serve(db);
    const idle = newClient();
    const reason = once(idle, "error") as Promise<[Error]>;
    const other = newClient();
    await idle.connect();
    await other.connect();
    await idle.query("CREATE TABLE forgotten (n int)");
    await idle.query("BEGIN; INSERT INTO forgotten VALUES (1)");

    const { rows } = await other.query("SELECT * FROM forgotten");

    expect(rows).to.deep.equal([]);
    expect((await reason)[0]).to.have.property("code", "25P03");
    await other.end();
  });

  it("parses messages that arrive byte by byte", async () => {
    server.serve(db);
    const socket = connect(socketPath);
    let received = "";
    socket.on("data", (data: Buffer) => (received += data.toString("latin1")));

    await trickle(socket, startup("user\0postgres\0database\0postgres\0\0"));
    await trickle(socket, Buffer.from("Q\0\0\0\x13SELECT 'whole'\0", "latin1"));

    await until(() => received.includes("whole"), { what: "the answer" });
    socket.destroy();
  });

  it("answers requests for TLS with a no, and closes on cancel requests and other protocols", async () => {
    server.serve(db);
    const tls = connect(socketPath);
    tls.write(Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]));
    expect(String((await once(tls, "data"))[0])).to.equal("N");
    tls.destroy();

    for (const bytes of [
      Buffer.from([0, 0, 0, 16, 4, 210, 22, 46, 0, 0, 0, 0, 0, 0, 0, 0]),
      Buffer.from("GET / HTTP/1.1\r\n\r\n"),
      Buffer.from([0, 0, 0, 0]),
    ]) {
      const socket = connect(socketPath);
      socket.resume();
      socket.write(bytes);
      await once(socket, "close");
    }
  });

  function newClient(): Client {
    const client = new Client({ host: folder, user: "postgres", database: "postgres" });
    client.on("error", () => undefined);
    return client;
  }
});

async function trickle(socket: Socket, bytes: Buffer): Promise<void> {
  for (const byte of bytes) {
    socket.write(Buffer.from([byte]));
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function startup(parameters: string): Buffer {
  const head = Buffer.alloc(8);
  head.writeInt32BE(8 + parameters.length, 0);
  head.writeInt32BE(3 << 16, 4);
  return Buffer.concat([head, Buffer.from(parameters, "latin1")]);
}
