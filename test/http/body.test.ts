import type { Socket } from "node:net";
import { deflateSync, gzipSync } from "node:zlib";
import { expect } from "chai";
import { createApp } from "../../src/http/app.ts";
import { createMemoryBudget } from "../../src/http/memory-budget.ts";
import { startServer, type HttpServer } from "../../src/http/server.ts";
import { createRouter } from "../../src/http/state.ts";
import { createUserTurns } from "../../src/http/user-turns.ts";
import { asAda, call, createMemoryLog, readWithin } from "../support/http.ts";
import { answersIn, exchange, openRaw } from "../support/raw.ts";
import { until } from "../support/wait.ts";

const limitBytes = 1000;
const json = { "Content-Type": "application/json" };

const nested = (depth: number): string => '{"a":'.repeat(depth) + "1" + "}".repeat(depth);

describe("readJsonBody", () => {
  let server: HttpServer;
  let turnOfLoop = 0;
  /** Large bodies in the order in which they were parsed. */
  const parsed: { readonly user: number; readonly turn: number }[] = [];
  const sockets: Socket[] = [];

  before(async () => {
    const router = createRouter("");
    router.post("/echo", async (ctx) => {
      ctx.body = { read: await readWithin(ctx, limitBytes) };
    });
    router.post("/large", async (ctx) => {
      sockets.push(ctx.req.socket);
      await readWithin(ctx, 1_000_000);
      parsed.push({ user: ctx.state.caller.id, turn: turnOfLoop });
      ctx.body = {};
    });
    const app = createApp({
      log: createMemoryLog().log,
      routePrefix: "",
      authenticate: (ctx, next) =>
        asAda(ctx, () => {
          ctx.state.caller = { ...ctx.state.caller, id: Number(ctx.get("X-User") || 7) };
          return next();
        }),
      router,
      isUnavailable: () => false,
    });
    server = await startServer(app.callback(), { host: "127.0.0.1", port: 0 });
  });

  after(() => server.close());

  const post = (body: string | Buffer | undefined, headers: Record<string, string> = json) =>
    call(server.port, "/echo", { method: "POST", headers, ...(body === undefined ? {} : { body }) });

  for (const [what, body, headers, read] of [
    ["an object", '{"a":[1,"ü"]}', json, { a: [1, "ü"] }],
    ["no body", undefined, {}, {}],
    ["an empty body", "", {}, {}],
    ["a charset", '{"a":1}', { "Content-Type": "application/json; charset=UTF-8" }, { a: 1 }],
    ["the identity encoding", '{"a":1}', { ...json, "Content-Encoding": "identity" }, { a: 1 }],
    ["a byte order mark", '\uFEFF{"a":1}', json, { a: 1 }],
    ["a replacement character that was sent as such", '{"a":"\uFFFD"}', json, { a: "\uFFFD" }],
    ["an empty chunked body", "", { ...json, "Transfer-Encoding": "chunked" }, {}],
    ["an empty chunked body without a type", "", { "Transfer-Encoding": "chunked" }, {}],
    ["__proto__ as plain data", '{"__proto__":{"isAdmin":true}}', json, { ["__proto__"]: { isAdmin: true } }],
    [
      "constructor as plain data",
      '{"constructor":{"prototype":{"x":1}}}',
      json,
      { constructor: { prototype: { x: 1 } } },
    ],
  ] as const) {
    it(`reads ${what}`, async () => {
      const answer = await post(body, headers);

      expect(answer.status).to.equal(200);
      expect(answer.json).to.deep.equal({ read });
      expect(({} as Record<string, unknown>)["isAdmin"] ?? ({} as Record<string, unknown>)["x"]).to.equal(
        undefined,
      );
    });
  }

  /** Sends a large body of each user; all end at the same time. */
  async function endTogether(users: readonly number[]): Promise<void> {
    [sockets.length, parsed.length] = [0, 0];
    const large = `{"list":[${"[],".repeat(50_000)}[]]}`;
    const head = `POST /large HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${large.length}\r\n`;
    const clients = await Promise.all(users.map(() => openRaw(server.port)));
    for (const [index, client] of clients.entries())
      client.send(`${head}X-User: ${users[index]}\r\n\r\n${large.slice(0, -1)}`);
    const bytes = `${head}X-User: 7\r\n\r\n${large}`.length - 1;
    await until(() => sockets.filter(({ bytesRead }) => bytesRead === bytes).length === clients.length, {
      what: "the bodies",
    });
    for (const client of clients) client.send("}");
    await Promise.all(clients.map((client) => client.untilAnswers(1)));
    for (const { socket } of clients) socket.destroy();
  }

  it("parses large bodies that end at the same time in different turns of the event loop", async () => {
    let isDone = false;
    const next = (): void => {
      turnOfLoop += 1;
      if (!isDone) setImmediate(next);
    };
    next();
    await endTogether(Array<number>(8).fill(7));
    isDone = true;

    expect(new Set(parsed.map(({ turn }) => turn)).size).to.be.above(4);
  });

  it("parses a large body of one user after at most one of another, who sends many", async () => {
    await endTogether([...Array<number>(8).fill(7), 8]);

    expect(parsed.findIndex(({ user }) => user === 8)).to.be.below(4);
  });

  it("reads a body of 64 levels", async () => {
    expect((await post(nested(64))).status).to.equal(200);
  });

  for (const [what, body, headers, status, message] of [
    ["a broken document", '{"a":', json, 400, /^The request body is not valid JSON: .+\.$/],
    ["whitespace only", "  ", json, 400, /not valid JSON/],
    ["a list", "[1]", json, 400, /^The request body must be a JSON object\.$/],
    ["a string", '""', json, 400, /must be a JSON object/],
    ["null", "null", json, 400, /must be a JSON object/],
    ["a number", "5", json, 400, /must be a JSON object/],
    [
      "invalid UTF-8",
      Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xff, 0x22, 0x7d]),
      json,
      400,
      /UTF-8/,
    ],
    ["65 levels", nested(65), json, 400, /^The request body must not be nested deeper than 64 levels\.$/],
    [
      "a body over the limit",
      `{"a":"${"x".repeat(limitBytes)}"}`,
      json,
      413,
      /^The request body must not be larger than 1000 bytes\.$/,
    ],
    [
      "a chunked body over the limit",
      `{"a":"${"x".repeat(limitBytes)}"}`,
      { ...json, "Transfer-Encoding": "chunked" },
      413,
      /larger than 1000/,
    ],
    [
      "a form",
      "a=1",
      { "Content-Type": "application/x-www-form-urlencoded" },
      415,
      /^The request body must be sent as application\/json\.$/,
    ],
    ["no content type", '{"a":1}', {}, 415, /application\/json/],
    ["a chunked body without a type", "{}", { "Transfer-Encoding": "chunked" }, 415, /application\/json/],
    ["a patch document", "[]", { "Content-Type": "application/json-patch+json" }, 415, /application\/json/],
    [
      "gzip",
      gzipSync('{"a":1}'),
      { ...json, "Content-Encoding": "gzip" },
      415,
      /^The content encoding gzip is not supported\.$/,
    ],
    ["deflate", deflateSync('{"a":1}'), { ...json, "Content-Encoding": "deflate" }, 415, /encoding deflate/],
  ] as const) {
    it(`refuses ${what} with ${status}`, async () => {
      const answer = await post(body, headers);

      expect(answer.status).to.equal(status);
      expect(answer.json).to.have.property("message").that.matches(message);
    });
  }

  it("refuses a million brackets without a crash", async () => {
    const wide = createRouter("");
    wide.post("/echo", async (ctx) => {
      ctx.body = { read: await readWithin(ctx, 2_000_000) };
    });
    const app = createApp({
      log: createMemoryLog().log,
      routePrefix: "",
      authenticate: asAda,
      router: wide,
      isUnavailable: () => false,
    });
    const other = await startServer(app.callback(), { host: "127.0.0.1", port: 0 });

    const deep = '{"a":' + "[".repeat(500_000) + "]".repeat(500_000) + "}";
    const answer = await call(other.port, "/echo", { method: "POST", headers: json, body: deep });

    expect(answer.status).to.equal(400);
    await other.close();
  });

  describe("of a body over the limit", () => {
    const head = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n";
    const large = `"${"a".repeat(300_000)}"`;

    for (const [what, bytes] of [
      ["of a known length", `${head}Content-Length: ${large.length}\r\n\r\n${large}`],
      [
        "in chunks",
        `${head}Transfer-Encoding: chunked\r\n\r\n${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`,
      ],
    ] as const) {
      it(`reads the rest when it is ${what}, answers, and closes the connection`, async () => {
        const [answer, ...more] = await exchange(server.port, bytes);

        expect([answer?.status, answer?.headers["connection"]]).to.deep.equal([413, "close"]);
        expect(more).to.deep.equal([]);
      });
    }

    it("reads no more than 16 MB of it", async () => {
      const connection = await openRaw(server.port);
      connection.send(`${head}Content-Length: ${10 ** 9}\r\n\r\n`);
      let sent = 0;
      const chunk = Buffer.alloc(1024 * 1024, "a");
      while (!connection.isClosed() && sent < 100) {
        connection.socket.write(chunk);
        await until(() => connection.isClosed() || !connection.socket.writableNeedDrain, {
          what: "room for more",
        });
        sent += 1;
      }

      await connection.untilClosed();
      expect(sent).to.be.within(15, 40);
    });

    it("does not wait for a body that its client sends only on request", async () => {
      const connection = await openRaw(server.port);
      connection.send(`${head}Content-Length: 300000\r\nExpect: 100-continue\r\n\r\n`);

      const [answer] = answersIn(await connection.untilClosed());
      expect([answer?.status, answer?.headers["connection"]]).to.deep.equal([413, "close"]);
    });
  });

  describe("with a memory budget", () => {
    const budgetBytes = 24_000_000;
    let bounded: HttpServer;
    let [held, end] = [(): void => undefined, (): void => undefined];
    const isHeld = new Promise<void>((resolve) => (held = resolve));
    const over = new Promise<void>((resolve) => (end = resolve));

    before(async () => {
      const router = createRouter("");
      router.post("/echo", async (ctx) => {
        ctx.body = { length: JSON.stringify(await readWithin(ctx, 1_000_000)).length };
      });
      router.post("/short", async (ctx) => {
        ctx.body = await readWithin(ctx, 1000);
      });
      router.post("/answered", async (ctx) => {
        ctx.state.memory.hold(budgetBytes);
        held();
        await over;
        ctx.body = {};
      });
      const app = createApp({
        log: createMemoryLog().log,
        routePrefix: "",
        authenticate: asAda,
        router,
        isUnavailable: () => false,
        memoryBudget: createMemoryBudget({ limitBytes: budgetBytes }),
        userTurns: createUserTurns({ atWork: 3 })(3),
      });
      bounded = await startServer(app.callback(), { host: "127.0.0.1", port: 0 });
    });
    after(() => bounded.close());

    const head = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n";

    it("reads a body only when there is room for it, and answers 503 after a wait", async () => {
      const slow = await openRaw(bounded.port);
      slow.send(`${head}Content-Length: 990000\r\n\r\n{`);
      const [answer] = await exchange(
        bounded.port,
        `${head}Content-Length: 100000\r\n\r\n{"a":1}${" ".repeat(99_993)}`,
      );

      expect([answer?.status, answer?.headers["retry-after"], answer?.headers["connection"]]).to.deep.equal([
        503,
        "1",
        "close",
      ]);
      slow.socket.destroy();
      const body = JSON.stringify({ a: "a".repeat(900_000) });
      await until(
        async () =>
          (await call(bounded.port, "/echo", { method: "POST", headers: json, body })).status === 200,
        { what: "the memory of the request that left" },
      );
    });

    for (const [what, bytes] of [
      [
        "still on its way",
        `Transfer-Encoding: chunked\r\n\r\n${(60_000).toString(16)}\r\n${" ".repeat(60_000)}`,
      ],
      ["complete", `Content-Length: 60009\r\n\r\n{"a":[${"0,".repeat(30_000)}0]}`],
    ] as const) {
      it(`forgets a client that leaves while its body, ${what}, waits for memory`, async () => {
        const slow = await openRaw(bounded.port);
        // Leaves memory for the first reservation of the others, but not for their second.
        slow.send(`${head}Content-Length: 900000\r\n\r\n{`);
        // Within the two seconds for a slow client, in which it would still hold its place.
        const turn = () =>
          until(async () => (await call(bounded.port, "/none")).status === 404, {
            what: "a turn of the server",
            timeoutMs: 1500,
          });
        for (let i = 0; i < 3; i++) {
          const waiting = await openRaw(bounded.port);
          waiting.send(`${head}${bytes}`);
          await turn();
          waiting.socket.destroy();
          await turn();
        }
        slow.socket.destroy();

        const body = JSON.stringify({ a: "a".repeat(900_000) });
        await until(
          async () =>
            (await call(bounded.port, "/echo", { method: "POST", headers: json, body })).status === 200,
          { what: "the memory and the places of all" },
        );
      });
    }

    for (const [what, values] of [
      ["objects", "{},".repeat(100_000)],
      ["lists of lists", "[[]],".repeat(50_000)],
      ["numbers", "0,".repeat(300_000)],
    ] as const) {
      it(`refuses a body of too many ${what} with 413, before it is parsed`, async () => {
        const body = `{"a":[${values}0]}`;
        const answer = await call(bounded.port, "/echo", { method: "POST", headers: json, body });

        expect([answer.status, answer.json]).to.deep.equal([
          413,
          {
            message: "The request body holds too many values for http.memoryBudget.",
            code: "request.too_large",
          },
        ]);
      });
    }

    it("refuses one over the limit for its size, with any content", async () => {
      const body = "[".repeat(100_000);
      const headers = { ...json, "Transfer-Encoding": "chunked" };
      const answer = await call(bounded.port, "/short", { method: "POST", headers, body });

      expect(answer.json)
        .to.have.property("message")
        .that.matches(/larger than 1000 bytes/);
    });

    it("refuses one that arrived while the answers to writes used the user's memory", async () => {
      const late = await openRaw(bounded.port);
      late.send(`${head}Content-Length: 7\r\n\r\n{`);
      const write = call(bounded.port, "/answered", { method: "POST" });
      await isHeld;
      late.send('"a":1}');

      expect((await late.untilAnswers(1))[0]?.status).to.equal(503);
      end();
      expect((await write).status).to.equal(200);
    });

    it("treats brackets in texts as text", async () => {
      const body = JSON.stringify({ a: '{},[]"\\'.repeat(40_000) });
      const answer = await call(bounded.port, "/echo", { method: "POST", headers: json, body });

      expect(answer.json).to.deep.equal({ length: body.length });
    });

    it("reads a body in chunks, of unknown length, as far as there is room", async () => {
      const body = JSON.stringify({ a: "a".repeat(900_000) });
      const answer = await call(bounded.port, "/echo", {
        method: "POST",
        headers: { ...json, "Transfer-Encoding": "chunked" },
        body,
      });

      expect(answer.json).to.deep.equal({ length: body.length });
    });
  });
});
