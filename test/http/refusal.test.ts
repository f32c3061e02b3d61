import { expect } from "chai";
import { setImmediate } from "node:timers/promises";
import { createApp } from "../../src/http/app.ts";
import { startServer, type HttpServer } from "../../src/http/server.ts";
import { createRouter } from "../../src/http/state.ts";
import { asAda, createMemoryLog, readWithin } from "../support/http.ts";
import { answersIn, exchange, openRaw } from "../support/raw.ts";
import { until } from "../support/wait.ts";

const limitBytes = 1000;
const head = "Host: x\r\nContent-Type: application/json\r\n";
const get = (path: string, more = ""): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`;
const expecting = (path: string, length: number): string =>
  `POST ${path} HTTP/1.1\r\n${head}Expect: 100-continue\r\nContent-Length: ${length}\r\n\r\n`;

describe("startServer, to what is not quite HTTP", () => {
  const { log, lines } = createMemoryLog();
  const counted: number[] = [];
  let server: HttpServer;
  let release: (() => void) | undefined;

  before(async () => {
    const router = createRouter("");
    router.get("/here", (ctx) => {
      ctx.body = { path: ctx.path };
    });
    router.get("/held", async (ctx) => {
      await new Promise<void>((resolve) => (release = resolve));
      ctx.body = {};
    });
    router.post("/echo", async (ctx) => {
      ctx.body = { read: await readWithin(ctx, limitBytes) };
    });
    router.post("/refused", (ctx) => {
      ctx.status = 403;
      ctx.body = {};
    });
    const app = createApp({
      log,
      routePrefix: "",
      authenticate: asAda,
      router,
      isUnavailable: () => false,
    });
    server = await startServer(app.callback(), {
      host: "127.0.0.1",
      port: 0,
      log,
      countRefused: (status) => counted.push(status),
    });
  });

  after(() => server.close());

  for (const [what, bytes, status, message] of [
    ["another protocol", "\u0016\u0003\u0001\u0002\u0000\u0001", 400, /^The request is not valid HTTP\.$/],
    ["no host", "GET /here HTTP/1.1\r\nConnection: close\r\n\r\n", 400, /^The request has no Host header\.$/],
    [
      "two hosts",
      "GET /here HTTP/1.1\r\nHost: x\r\nHost: y\r\nConnection: close\r\n\r\n",
      400,
      /^The request has more than one Host header\.$/,
    ],
    ["a space in a header's name", "GET /here HTTP/1.1\r\nHost: x\r\nA b: c\r\n\r\n", 400, /not valid HTTP/],
    ["a folded header", "GET /here HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", 400, /not valid HTTP/],
    ["bare line feeds", "GET /here HTTP/1.1\nHost: x\n\n", 400, /not valid HTTP/],
    ["an unknown method", "BREW /here HTTP/1.1\r\nHost: x\r\n\r\n", 400, /not valid HTTP/],
    ["HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, /not valid HTTP/],
    ["a NUL in a header", "GET /here HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n", 400, /not valid HTTP/],
    [
      "a length and chunks",
      `POST /echo HTTP/1.1\r\n${head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
      /not valid HTTP/,
    ],
    [
      "chunks and a length",
      `POST /echo HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n`,
      400,
      /not valid HTTP/,
    ],
    [
      "two lengths",
      `POST /echo HTTP/1.1\r\n${head}Content-Length: 1\r\nContent-Length: 2\r\n\r\nx`,
      400,
      /not valid HTTP/,
    ],
    ["an odd length", `POST /echo HTTP/1.1\r\n${head}Content-Length: 0x10\r\n\r\n`, 400, /not valid HTTP/],
    [
      "an encoding besides chunks",
      `POST /echo HTTP/1.1\r\n${head}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n`,
      400,
      /not valid HTTP/,
    ],
    [
      "a broken chunk",
      `POST /echo HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
      400,
      /not valid HTTP/,
    ],
    [
      "extensions of chunks without end",
      `POST /echo HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\n2;${"x".repeat(20_000)}\r\n{}\r\n0\r\n\r\n`,
      413,
      /chunk extensions/,
    ],
    [
      "a long target",
      `GET /here?${"x".repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
      414,
      /^The request target must not be larger than 16384 bytes\.$/,
    ],
    [
      "a long header",
      `GET /here HTTP/1.1\r\nHost: x\r\nA: ${"x".repeat(20_000)}\r\n\r\n`,
      431,
      /^The request's headers must not be larger than 16384 bytes\.$/,
    ],
    [
      "long trailers",
      `POST /echo HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\n0\r\nA: ${"x".repeat(20_000)}\r\n\r\n`,
      431,
      /headers/,
    ],
    [
      "many headers",
      `GET /here HTTP/1.1\r\nHost: x\r\n${"a: b\r\n".repeat(200)}Connection: close\r\n\r\n`,
      431,
      /^The request must not have more than 200 headers\.$/,
    ],
  ] as const) {
    it(`answers ${status} to ${what}`, async () => {
      const [answer, ...others] = await exchange(server.port, bytes);

      expect(answer?.status).to.equal(status);
      expect(others).to.deep.equal([]);
      expect(answer?.json).to.have.property("message").that.matches(message);
      expect(answer?.headers).to.include({
        "content-type": "application/json; charset=utf-8",
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
      });
      expect(answer?.headers["x-request-id"]).to.match(/^[0-9a-f-]{36}$/);
      expect(answer?.headers).to.have.property("date");
    });
  }

  it("logs the reason of a refusal, and nothing of the request", async () => {
    const [answer] = await exchange(
      server.port,
      "GET /here?token=hunter2 HTTP/1.1\r\nBad header: hunter2\r\n\r\n",
    );

    const line = lines.find(({ requestId }) => requestId === answer?.headers["x-request-id"]);
    expect(line).to.include({ msg: "request refused", status: 400, reason: "HPE_INVALID_HEADER_TOKEN" });
    expect(line).to.include({ client: "127.0.0.1" });
    expect(JSON.stringify(line)).not.to.include("hunter2");
  });

  it("counts a refusal, unless the application has begun the request", async () => {
    counted.length = 0;

    await exchange(server.port, "rubbish\r\n\r\n");
    await exchange(server.port, `GET /${"x".repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await exchange(server.port, `POST /echo HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n`);

    expect(counted).to.deep.equal([400, 414]);
  });

  it("gives a client that is still sending time to read the refusal", async () => {
    const connection = await openRaw(server.port);
    connection.socket.pause();
    const before = lines.length;
    connection.send(`GET /here HTTP/1.1\r\nHost: x\r\nA: ${"x".repeat(20_000)}`);
    const refused = await until(() => lines.slice(before).find(({ msg }) => msg === "request refused"), {
      what: "the refusal",
    });
    // All of it is read: a cut connection would fail here, before the answer is read.
    for (let i = 0; i < 20; i += 1) {
      await new Promise((resolve) => connection.socket.write("x".repeat(20_000), resolve));
      // Lets the server run.
      await setImmediate();
    }
    connection.socket.resume();

    const answers = answersIn(await connection.untilClosed());

    expect(answers.map(({ status, headers }) => [status, headers["x-request-id"]])).to.deep.equal([
      [431, refused["requestId"]],
    ]);
    expect(lines.slice(before).filter(({ msg }) => msg === "request refused")).to.have.length(1);
  });

  it("cuts a connection whose client reads the refusal and does not close", async () => {
    const connection = await openRaw(server.port, { allowHalfOpen: true });
    connection.send("rubbish\r\n\r\n");
    await connection.untilAnswers(1);

    // One direction is still open; bytes sent to a closed socket are answered by a reset.
    await until(() => connection.send("x") ?? connection.isClosed(), { what: "the end of the connection" });
  });

  it("answers a request before those behind it", async () => {
    const connection = await openRaw(server.port);
    connection.send("GET /held HTTP/1.1\r\nHost: x\r\n\r\n");
    await until(() => release, { what: "the request" });
    connection.send("rubbish\r\n\r\n");

    expect(await connection.untilClosed()).to.equal("");
    release?.();
  });

  it("survives clients that leave at any point", async () => {
    const whole = `POST /echo HTTP/1.1\r\n${head}Content-Length: 9\r\n\r\n{"a":"b"}`;
    for (const length of [0, 1, 10, 40, whole.length - 9, whole.length - 1, whole.length]) {
      for (const leave of ["end", "resetAndDestroy"] as const) {
        const connection = await openRaw(server.port);
        if (length > 0) connection.send(whole.slice(0, length));
        connection.socket[leave]();
        await connection.untilClosed();
      }
    }

    const [answer] = await exchange(
      server.port,
      "GET /here HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    );
    expect(answer?.status).to.equal(200);
  });

  it("answers pipelined requests in their order", async () => {
    const answers = await exchange(
      server.port,
      get("/here") + get("/none") + get("/here", "Connection: close\r\n"),
    );

    expect(answers.map(({ status }) => status)).to.deep.equal([200, 404, 200]);
  });

  for (const [what, bytes, status] of [
    ["HTTP/1.0", "GET /here HTTP/1.0\r\n\r\n", 200],
    [
      "an absolute target",
      "GET http://elsewhere.example/here HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
      200,
    ],
    [
      "an offer to upgrade",
      "GET /here HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\n\r\n",
      200,
    ],
    [
      "an unknown expectation",
      "GET /here HTTP/1.1\r\nHost: x\r\nExpect: tea\r\nConnection: close\r\n\r\n",
      200,
    ],
    ["TRACE", "TRACE /here HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 405],
    [
      "a compressed body",
      `POST /echo HTTP/1.1\r\n${head}Content-Encoding: gzip\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}`,
      415,
    ],
  ] as const) {
    it(`answers ${status} to ${what}`, async () => {
      const answers = await exchange(server.port, bytes);

      expect(answers.map((answer) => answer.status)).to.deep.equal([status]);
    });
  }

  it("closes the connection of a CONNECT: it is no proxy", async () => {
    const connection = await openRaw(server.port);
    connection.send("CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n");

    expect(await connection.untilClosed()).to.equal("");
  });

  describe("Expect: 100-continue", () => {
    it("is answered when the body is needed, and the connection is kept", async () => {
      const connection = await openRaw(server.port);
      connection.send(expecting("/echo", 7));
      await connection.untilAnswers(1);
      connection.send('{"a":1}');
      const [asked, answer] = await connection.untilAnswers(2);
      connection.send("GET /here HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");

      expect(asked?.status).to.equal(100);
      expect(answer?.json).to.deep.equal({ read: { a: 1 } });
      expect(await connection.untilAnswers(3)).to.have.nested.property("[2].status", 200);
      await connection.untilClosed();
    });

    for (const [what, path, length, status] of [
      ["too large", "/echo", limitBytes + 1, 413],
      ["refused before it is read", "/refused", 7, 403],
      ["sent to nowhere", "/none", 7, 404],
    ] as const) {
      it(`is not requested when it is ${what}`, async () => {
        const answers = await exchange(server.port, expecting(path, length));

        expect(answers.map((answer) => answer.status)).to.deep.equal([status]);
        expect(answers[0]?.headers).to.include({ connection: "close" });
      });
    }
  });
});
