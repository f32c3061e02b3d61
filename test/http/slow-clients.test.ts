import { expect } from "chai";
import type { ServerResponse } from "node:http";
import { connect } from "node:net";
import { createApp } from "../../src/http/app.ts";
import { startServer, type HttpServer } from "../../src/http/server.ts";
import { createRouter } from "../../src/http/state.ts";
import { asAda, createMemoryLog, readWithin } from "../support/http.ts";
import { answersIn, openRaw, type RawConnection } from "../support/raw.ts";
import { until } from "../support/wait.ts";

/** More than the kernel buffers for a client that reads nothing. */
const large = "x".repeat(32 * 1024 * 1024);

describe("startServer, to slow clients", () => {
  const { log, lines } = createMemoryLog();
  const servers: HttpServer[] = [];
  let finished = 0;
  let start: (changes: NonNullable<Parameters<typeof startServer>[1]["changes"]>) => Promise<HttpServer>;
  let open: () => Promise<RawConnection>;

  before(async () => {
    const router = createRouter("");
    router.post("/echo", async (ctx) => {
      ctx.body = { read: await readWithin(ctx, 1000) };
    });
    router.get("/large", (ctx) => {
      ctx.body = { large };
      ctx.res.once("close", () => (finished += 1));
    });
    const app = createApp({
      log,
      routePrefix: "",
      authenticate: asAda,
      router,
      isUnavailable: () => false,
    });
    start = async (changes) => {
      const server = await startServer(app.callback(), { host: "127.0.0.1", port: 0, log, changes });
      servers.push(server);
      return server;
    };
    const limits = {
      headersTimeout: 300,
      requestTimeout: 600,
      connectionsCheckingInterval: 50,
      keepAliveTimeout: 300,
    };
    const { port } = await start(limits);
    open = () => openRaw(port);
  });

  after(() => Promise.all(servers.map((server) => server.close())));

  it("cuts a client that connects and sends nothing", async () => {
    const connection = await open();

    expect(answersIn(await connection.untilClosed()).map(({ status }) => status)).to.deep.equal([408]);
  });

  for (const [what, begin, more] of [
    ["headers", "GET /echo HTTP/1.1\r\nHost: x\r\n", "X-More: 1\r\n"],
    [
      "a body",
      'POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"a":"',
      "x",
    ],
    [
      "a body in chunks",
      'POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n{"a":"\r\n',
      "1\r\nx\r\n",
    ],
  ] as const) {
    it(`answers 408 to a client that sends ${what} slowly, and cuts it`, async () => {
      const connection = await open();
      connection.send(begin);
      const drip = setInterval(() => connection.send(more), 40);

      const received = await connection.untilClosed().finally(() => clearInterval(drip));

      const [answer, ...others] = answersIn(received);
      expect(answer?.status).to.equal(408);
      expect(answer?.json).to.deep.equal({
        message: "The request took too long to arrive.",
        code: "request.timeout",
      });
      expect(answer?.headers).to.include({ connection: "close", "x-content-type-options": "nosniff" });
      expect(others).to.deep.equal([]);
      const events = what === "headers" ? ["request.refused"] : ["request.refused", "request"];
      const id = answer?.headers["x-request-id"];
      const logged = (): readonly (typeof lines)[number][] =>
        lines.filter((line) => line["requestId"] === id);
      // The client may see the end of the connection before the server does.
      await until(() => logged().length >= events.length, { what: "the lines of the log" });
      expect(logged().map(({ event, status }) => [event, status])).to.deep.equal(
        events.map((event) => [event, 408]),
      );
    });
  }

  it("closes an idle keep-alive connection", async () => {
    const connection = await open();
    connection.send("GET /none HTTP/1.1\r\nHost: x\r\n\r\n");
    await connection.untilAnswers(1);

    expect(answersIn(await connection.untilClosed()).map(({ status }) => status)).to.deep.equal([404]);
  });

  it("cuts a client that never reads its answer", async () => {
    const before = finished;
    const { port } = await start({ stallTimeout: 500 });
    const connection = await openRaw(port);
    connection.socket.pause();
    connection.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");

    await until(() => finished === before + 1, { what: "the server to let go of it" });

    connection.socket.destroy();
  });

  it("cuts a client that reads its answer slowly, at the limit of an exchange", async () => {
    const before = finished;
    const { port } = await start({ exchangeTimeout: 1500 });
    const one = { buffer: Buffer.alloc(1024), callback: () => false };
    const socket = connect({ port, host: "127.0.0.1", onread: one }).on("error", () => undefined);
    socket.write("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    const sip = setInterval(() => socket.resume(), 20);

    await until(() => finished === before + 1, { what: "the server to let go of it" });

    clearInterval(sip);
    expect(socket.bytesRead).to.be.within(1024, 1_000_000);
    socket.destroy();
  });

  it("cuts a client whose answer is never written", async () => {
    let held: ServerResponse | undefined;
    const server = await startServer((_request, response) => (held = response), {
      host: "127.0.0.1",
      port: 0,
      changes: { exchangeTimeout: 100 },
    });
    servers.push(server);
    const connection = await openRaw(server.port);
    connection.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");

    expect(await connection.untilClosed()).to.equal("");
    expect(held?.destroyed).to.equal(true);
  });
});
