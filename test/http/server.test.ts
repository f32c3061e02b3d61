import { request, Agent, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect } from "chai";
import { OperatorError } from "../../src/kit/errors.ts";
import { startServer } from "../../src/http/server.ts";
import { call, createMemoryLog } from "../support/http.ts";
import { openRaw } from "../support/raw.ts";
import { until } from "../support/wait.ts";

const address = { host: "127.0.0.1", port: 0 };

/** Returns the number of turns of the event loop that serve 64 clients which connect at once. */
async function turnsToServe(port: number): Promise<number> {
  let turns = 0;
  const count = (): void => {
    turns += 1;
    counting = setImmediate(count);
  };
  let counting = setImmediate(count);
  const clients = Array.from({ length: 64 }, () => connect(port, "127.0.0.1"));
  for (const client of clients) client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await Promise.all(clients.map((client) => once(client, "data")));
  clearImmediate(counting);
  for (const client of clients) client.destroy();
  return turns;
}

for (const acceptors of [1, 8])
  describe(`startServer, with ${acceptors} acceptors`, () => {
    const local = { ...address, acceptors };

    it("serves new connections in as many turns as it can accept them", async () => {
      const server = await startServer((_request, response) => void response.end("served"), local);

      const turns = await turnsToServe(server.port);

      expect(turns).to.be.within(64 / acceptors, 64 / acceptors + 12);
      await server.close();
    });

    it("refuses a port that is in use with a message for the operator", async () => {
      const first = await startServer((_request, response) => void response.end(), local);

      let refusal: unknown;
      try {
        await startServer(() => undefined, {
          ...local,
          port: first.port,
          settings: { host: "SVC_HOST", port: "SVC_PORT" },
        });
      } catch (error) {
        refusal = error;
      }

      await first.close();
      expect(refusal).to.be.instanceOf(OperatorError);
      expect((refusal as OperatorError).message).to.match(
        /^Cannot listen on 127\.0\.0\.1:\d+ \(SVC_PORT\): another program listens there$/,
      );
    });

    for (const host of ["999.1.1.1", "192.0.2.1"])
      it(`names the setting of the host for ${host}, which is no address of this machine`, async () => {
        const settings = { host: "SVC_HOST", port: "SVC_PORT" };

        const refusal: unknown = await startServer(() => undefined, { ...local, host, settings }).catch(
          (error: unknown) => error,
        );

        expect(refusal).to.be.instanceOf(OperatorError);
        const { message } = refusal as OperatorError;
        expect(message).to.match(/^Cannot listen on [\d.]+:0 \(SVC_HOST\): /);
      });

    it("answers 431 to headers over 16 KiB", async () => {
      const server = await startServer((_request, response) => void response.end(), local);

      const answer = await call(server.port, "/", { headers: { "X-Long": "a".repeat(17_000) } });

      expect(answer.status).to.equal(431);
      await server.close();
    });

    it("closes connections of one address beyond its limit, logs that once, and serves other addresses", async () => {
      const { log, lines } = createMemoryLog();
      const server = await startServer((_request, response) => void response.end("served"), {
        ...local,
        log,
        maxConnectionsPerAddress: 2,
      });
      const open = (localAddress: string): Socket =>
        connect({ port: server.port, host: "127.0.0.1", localAddress }).on("error", () => undefined);
      const silent = [open("127.0.0.2"), open("127.0.0.2")];
      await Promise.all(silent.map((socket) => once(socket, "connect")));
      const refused = [open("127.0.0.2"), open("127.0.0.2")];
      await Promise.all(refused.map((socket) => once(socket, "close")));

      expect((await call(server.port, "/")).text).to.equal("served");
      await until(() => lines.length > 0, { what: "the line" });
      expect(lines).to.have.length(1);
      expect(lines[0]).to.include({ level: 40, event: "connections.refused", client: "127.0.0.2", limit: 2 });

      silent[0]?.destroy();
      await until(
        async () => {
          const socket = open("127.0.0.2").end("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
          return (await socket.toArray()).join("").includes("served");
        },
        { what: "the place of the one that left" },
      );
      for (const socket of silent) socket.destroy();
      await server.close();
    });

    it("refuses an address whose body comes in tiny chunks, logs that, and serves other addresses", async () => {
      const { log, lines } = createMemoryLog();
      const server = await startServer(
        (_request, response) => void setTimeout(() => response.end(), 60_000),
        {
          ...local,
          log,
        },
      );
      const open = (localAddress: string): Socket =>
        connect({ port: server.port, host: "127.0.0.1", localAddress }).on("error", () => undefined);
      const [other, silent, flood] = [open("127.0.0.3"), open("127.0.0.2"), open("127.0.0.2")];
      await Promise.all([other, silent, flood].map((socket) => once(socket, "connect")));
      const head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
      flood.write(head + "1\r\na\r\n".repeat(4_200));
      await Promise.all([silent, flood].map((socket) => once(socket, "close")));
      await once(open("127.0.0.2"), "close");

      expect(other.destroyed).to.equal(false);
      expect(lines).to.have.length(1);
      expect(lines[0]).to.include({ event: "connections.shut_out", client: "127.0.0.2", seconds: 60 });
      other.destroy();
      await server.close();
    });

    it("closes for a trusted proxy only the connection on which a body comes in tiny chunks", async () => {
      const server = await startServer(
        ({ method }, response) =>
          method === "GET" ? void response.end("served") : void setTimeout(() => response.end(), 60_000),
        { ...local, trustedProxies: ["127.0.0.0/8"] },
      );
      const [flood, other] = [await openRaw(server.port), await openRaw(server.port)];
      flood.send(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + "1\r\na\r\n".repeat(4_200),
      );
      await flood.untilClosed();
      other.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");

      expect(await other.untilClosed()).to.include("served");
      expect((await call(server.port, "/")).text).to.equal("served");
      await server.close();
    });

    it("closes the connection of an answered request whose chunked body continues", async () => {
      const server = await startServer((_request, response) => void response.end("served"), local);
      const connection = await openRaw(server.port);
      connection.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");

      expect(await connection.untilClosed()).to.include("served");
      await server.close();
    });

    it("lets a trusted proxy open any number of connections", async () => {
      const server = await startServer((_request, response) => void response.end("served"), {
        ...local,
        maxConnectionsPerAddress: 1,
        trustedProxies: ["127.0.0.0/8"],
      });

      const silent = [await openRaw(server.port), await openRaw(server.port)];
      expect((await call(server.port, "/")).text).to.equal("served");
      for (const { socket } of silent) socket.destroy();
      await server.close();
    });

    it("finishes the running request before it closes a keep-alive connection", async () => {
      let held: ServerResponse | undefined;
      let arrived: () => void;
      const isHere = new Promise<void>((resolve) => (arrived = resolve));
      const server = await startServer((_request, response) => {
        held = response;
        arrived();
      }, local);
      const agent = new Agent({ keepAlive: true });
      const sent = request({ host: "127.0.0.1", port: server.port, agent }).end();
      await isHere;

      const closing = server.close();
      held?.end("done");
      const [answer] = (await once(sent, "response")) as [IncomingMessage];

      expect((await answer.toArray()).join("")).to.equal("done");
      await closing;
      agent.destroy();
    });

    it("closes idle connections at once and stuck ones at the limit", async () => {
      const server = await startServer(() => undefined, local);
      const idle = connect(server.port, "127.0.0.1");
      const stuck = connect(server.port, "127.0.0.1");
      idle.on("error", () => undefined);
      stuck.on("error", () => undefined);
      await Promise.all([once(idle, "connect"), once(stuck, "connect")]);
      stuck.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
      const ends = [idle, stuck].map((socket) => new Promise((resolve) => socket.once("close", resolve)));

      await server.close({ limitMs: 100 });

      await Promise.all(ends);
    });

    it("does not wait for connections on which no request has ever come", async () => {
      const server = await startServer(() => undefined, local);
      const unused = connect(server.port, "127.0.0.1");
      await once(unused, "connect");
      const closed = once(unused, "close");

      // Longer than the time limit of a test.
      await server.close({ limitMs: 600_000 });
      await closed;
    });

    it("closes connections beyond the limit at once, logs that, and accepts new ones when others end", async () => {
      const { log, lines } = createMemoryLog();
      const server = await startServer((_request, response) => void response.end(), {
        ...local,
        log,
        maxConnections: 2,
      });
      const kept = [await openRaw(server.port), await openRaw(server.port)];
      for (const connection of kept) {
        connection.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        await connection.untilAnswers(1);
      }

      const refused = await openRaw(server.port);

      expect(await refused.untilClosed()).to.equal("");
      const line = await until(() => lines[0], { what: "a line" });
      expect(line).to.include({ level: 40, dropped: 1, maxConnections: 2 });
      kept[0]?.socket.destroy();
      await until(async () => (await call(server.port, "/")).status === 200, { what: "a new connection" });
      kept[1]?.socket.destroy();
      await server.close();
    });
  });

describe("startServer, where no process can be started", () => {
  const { execPath } = process;

  afterEach(() => {
    process.execPath = execPath;
  });

  it("serves with one acceptor, and logs the consequence", async () => {
    const { log, lines } = createMemoryLog();
    process.execPath = "/nowhere/node";

    const server = await startServer((_request, response) => void response.end("served"), {
      ...address,
      log,
      acceptors: 8,
    });

    expect((await call(server.port, "/")).text).to.equal("served");
    expect(lines).to.have.length(1);
    expect(lines[0]).to.include({ level: 40, event: "acceptors.failed" });
    expect(lines[0]?.["err"]).to.include("ENOENT");
    await server.close();
  });
});
