import { setImmediate } from "node:timers/promises";
import { makeCaller } from "../support/callers.ts";
import { expect } from "chai";
import { Registry } from "prom-client";
import { createApp } from "../../src/http/app.ts";
import { AppError, validationError } from "../../src/kit/errors.ts";
import { createMemoryBudget } from "../../src/http/memory-budget.ts";
import { startServer, type HttpServer } from "../../src/http/server.ts";
import { createRouter, type ApiContext, type ApiMiddleware } from "../../src/http/state.ts";
import { createPresence } from "../../src/http/presence.ts";
import { createUserTurns } from "../../src/http/user-turns.ts";
import { createHttpMetrics } from "../../src/telemetry/metrics/http.ts";
import { call, createMemoryLog, type Answer, readWithin } from "../support/http.ts";
import { openRaw, type RawConnection } from "../support/raw.ts";
import { until } from "../support/wait.ts";
import { pause } from "../../src/kit/worker.ts";

const never = new AbortController().signal;

/** Users whose tokens are revoked. */
const revoked = new Set<number>();

/** The token is the id of its user. */
const authenticate: ApiMiddleware = (ctx, next) => {
  const id = Number(ctx.get("Authorization"));
  ctx.state.identifiedAt = performance.now();
  ctx.state.identifyAgain = async () => {
    if (revoked.has(id)) throw new AppError("token.revoked", "Unauthenticated.");
  };
  ctx.state.caller = makeCaller({ id, name: "Ada", email: "ada@example.com", isAdmin: false });
  return next();
};

describe("createUserTurns", () => {
  let server: HttpServer;
  let registry: Registry;
  let held: (() => void)[];
  /** Users, in the order of the starts of their requests. */
  let started: number[];
  /** Number of bodies that the service has begun to read. */
  let read = 0;

  const start = async (alone?: number, memoryBudgetBytes?: number, limit = 4): Promise<void> => {
    registry = new Registry();
    held = [];
    started = [];
    read = 0;
    const router = createRouter("");
    router.get("/held", async (ctx) => {
      if (memoryBudgetBytes !== undefined) await ctx.state.memory.reserve(memoryBudgetBytes);
      started.push(ctx.state.caller.id);
      await new Promise<void>((resolve) => held.push(resolve));
      ctx.body = {};
    });
    router.get("/large", (ctx) => {
      ctx.body = { text: "a".repeat(1_000_000) };
    });
    router.get("/refused", () => {
      throw validationError({ text: ["a".repeat(1_000_000)] });
    });
    router.post("/echo", async (ctx) => {
      read += 1;
      ctx.body = await readWithin(ctx, 1000);
    });
    const app = createApp({
      log: createMemoryLog().log,
      routePrefix: "",
      authenticate,
      router,
      isUnavailable: () => false,
      metrics: createHttpMetrics(registry),
      memoryBudget: createMemoryBudget({ limitBytes: memoryBudgetBytes ?? Infinity }),
      userTurns: createUserTurns({ atWork: 2, ...(alone === undefined ? {} : { alone }) })(limit),
    });
    server = await startServer(app.callback(), { host: "127.0.0.1", port: 0 });
  };
  beforeEach(() => start());
  afterEach(async () => {
    const closing = server.close();
    while (held.length > 0) held.pop()?.();
    await closing;
  });

  const get = (user: number): Promise<Answer> =>
    call(server.port, "/held", { headers: { Authorization: String(user) } });

  it("runs two requests of a user, lets the next wait, and runs those of another user meanwhile", async () => {
    const asked = [get(1), get(1), get(1)];
    await until(() => held.length === 2, { what: "two requests at work" });
    asked.push(get(2));
    await until(() => held.length === 3, { what: "the other user's request" });

    held.shift()?.();
    await until(() => held.length === 3, { what: "the request that waited" });
    while (held.length > 0) held.shift()?.();
    expect((await Promise.all(asked)).map(({ status }) => status)).to.deep.equal([200, 200, 200, 200]);
  });

  it("runs three requests of a lone user, and two when another user is active", async () => {
    await server.close();
    await start(3);
    const asked = [get(1), get(1), get(1), get(1)];
    await until(() => held.length === 3, { what: "three requests at work" });

    asked.push(get(2));
    await until(() => held.length === 4, { what: "the other user's request" });
    held.shift()?.();
    await pause(100, never);
    expect(started).to.deep.equal([1, 1, 1, 2]);
    held.shift()?.();
    await until(() => started.length === 5, { what: "the request that waited" });
    while (held.length > 0) held.shift()?.();

    expect((await Promise.all(asked)).map(({ status }) => status)).to.deep.equal([200, 200, 200, 200, 200]);
  });

  it("refuses a request whose token was revoked while it waited, and frees its slot", async () => {
    const asked = [get(1), get(1)];
    await until(() => held.length === 2, { what: "two requests at work" });
    const waiting = get(1);
    await pause(1_100, never);

    revoked.add(1);
    held.shift()?.();

    expect((await waiting).status).to.equal(401);
    revoked.delete(1);
    const next = get(1);
    await until(() => held.length === 2, { what: "the next request" });
    while (held.length > 0) held.shift()?.();
    for (const { status } of await Promise.all([...asked, next])) expect(status).to.equal(200);
  });

  it("answers 503 with Retry-After at once to a fifth open request, and not to another user", async () => {
    const asked = [get(1), get(1), get(1), get(1)];
    await until(() => held.length === 2, { what: "two requests at work" });
    const refused = await get(1);
    const kept = await openRaw(server.port);
    kept.send("GET /held HTTP/1.1\r\nHost: a\r\nAuthorization: 1\r\n\r\n");
    // Further bytes on it are not read.
    expect(await kept.untilClosed()).to.match(/^HTTP\/1\.1 503 /);
    const other = get(2);
    await until(() => held.length === 3, { what: "the other user's request" });

    expect([refused.status, refused.headers["retry-after"]]).to.deep.equal([503, "1"]);
    expect(await registry.metrics()).to.match(/^svc_http_requests_over_limit_total 2$/m);
    const answers = Promise.all([...asked, other]);
    const release = setInterval(() => held.pop()?.(), 1);
    expect((await answers).map(({ status }) => status)).to.deep.equal([200, 200, 200, 200, 200]);
    clearInterval(release);
  });

  it("takes no slot for a body that is still arriving", async () => {
    const head =
      "POST /echo HTTP/1.1\r\nHost: a\r\nAuthorization: 1\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n";
    const slow = [await openRaw(server.port), await openRaw(server.port)];
    for (const connection of slow) connection.send(`${head}{"a"`);

    const third = get(1);
    await until(() => held.length === 1, { what: "the request beside the slow ones" });
    held.shift()?.();
    expect((await third).status).to.equal(200);
    for (const connection of slow) connection.send(":1}");
    for (const connection of slow)
      await until(() => connection.received().includes('{"a":1}'), { what: "its answer" });
  });

  /** Expects a request of user 1 to wait while one of user 2 passes it, and both to be served. */
  const expectHeld = async (): Promise<void> => {
    const waiting = get(1);
    const other = get(2);
    await until(() => started.length > 0, { what: "the other user's request" });
    expect(started).to.deep.equal([2]);

    await until(() => started.length === 2, { what: "the request that waited" });
    while (held.length > 0) held.pop()?.();
    expect([(await waiting).status, (await other).status]).to.deep.equal([200, 200]);
  };

  it("holds the slots of large requests for a while when other users are active, and runs theirs", async () => {
    const large = (user: number): Promise<Answer> =>
      call(server.port, "/large", { headers: { Authorization: String(user) } });
    await call(server.port, "/large", { headers: { Authorization: "2" } });
    await Promise.all([large(1), large(1)]);

    await expectHeld();
  });

  it("also holds those of refusals with many errors", async () => {
    const refused = (user: number): Promise<Answer> =>
      call(server.port, "/refused", { headers: { Authorization: String(user) } });
    await call(server.port, "/large", { headers: { Authorization: "2" } });
    const answers = await Promise.all([refused(1), refused(1)]);

    expect(answers.map(({ status }) => status)).to.deep.equal([422, 422]);
    await expectHeld();
  });

  it("holds them by the bytes that arrived of a body without a length", async () => {
    await call(server.port, "/large", { headers: { Authorization: "2" } });
    const size = 500_000;
    const sent = await Promise.all([1, 2].map(() => openRaw(server.port)));
    for (const connection of sent)
      connection.send(
        `POST /echo HTTP/1.1\r\nHost: a\r\nAuthorization: 1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${size.toString(16)}\r\n${"a".repeat(size)}\r\n0\r\n\r\n`,
      );
    for (const connection of sent) await connection.untilAnswers(1);

    await expectHeld();
  });

  it("also holds the slot of a request whose large answer has no memory", async () => {
    await server.close();
    await start(undefined, 1_000_000);
    const other = get(2);
    const first = get(1);
    await until(() => held.length === 2, { what: "two requests at work" });

    const refused = await call(server.port, "/large", { headers: { Authorization: "1" } });
    expect(refused.status).to.equal(503);
    const waiting = call(server.port, "/large", { headers: { Authorization: "1" } });
    const isHeld = await Promise.race([waiting.then(() => false), pause(200, never).then(() => true)]);
    expect(isHeld).to.equal(true);

    while (held.length > 0) held.pop()?.();
    await Promise.all([first, other, waiting]);
  });

  /** Sends the head of a body that is too large, and `sent` bytes of it. */
  const sendLarge = async (user: number, sent: number): Promise<RawConnection> => {
    const connection = await openRaw(server.port);
    connection.send(
      `POST /echo HTTP/1.1\r\nHost: a\r\nAuthorization: ${user}\r\nContent-Type: application/json\r\nContent-Length: 500000\r\n\r\n`,
    );
    connection.send("a".repeat(sent));
    return connection;
  };

  it("reads the rest of four refused bodies of a user at a time, and another user's meanwhile", async () => {
    await server.close();
    await start(undefined, undefined, 10);
    const stuck = await Promise.all([1, 2, 3, 4].map(() => sendLarge(1, 1000)));
    const [fifth, other] = [await sendLarge(1, 500_000), await sendLarge(2, 500_000)];

    await other.untilAnswers(1);
    expect(fifth.received()).to.equal("");
    for (const { socket } of stuck) socket.destroy();
    const [answer] = await fifth.untilAnswers(1);
    expect(answer?.status).to.equal(413);
  });

  it("holds no slot for a body of which little has arrived, at any declared length", async () => {
    await server.close();
    await start(undefined, undefined, 60);
    const other = get(2);
    await until(() => held.length === 1, { what: "the other user" });
    const gone = await Promise.all(Array.from({ length: 40 }, () => sendLarge(1, 1000)));
    await until(() => read === gone.length, { what: "their bodies" });
    for (const { socket } of gone) socket.destroy();

    const next = get(1);
    // 40 slots of 0.2 s each, two at a time, would take 4 s.
    await until(() => held.length === 2, { what: "the user's next request", timeoutMs: 2000 });
    while (held.length > 0) held.pop()?.();
    expect([(await next).status, (await other).status]).to.deep.equal([200, 200]);
  });

  it("holds nothing while a user is alone", async () => {
    for (let i = 0; i < 20; i++) await call(server.port, "/large", { headers: { Authorization: "1" } });
    const next = get(1);
    await until(() => held.length === 1, { what: "the next request", timeoutMs: 400 });
    held.pop()?.();
    expect((await next).status).to.equal(200);
  });
});

describe("createUserTurns, of two users over time", () => {
  let nowMs: number;
  /** Running requests, by user. */
  let atWork: { readonly user: number; readonly end: () => void }[];
  let turns: ApiMiddleware;

  beforeEach(() => {
    nowMs = 0;
    atWork = [];
    turns = createUserTurns({ atWork: 2, alone: 3, presence: createPresence(() => nowMs) })(10);
  });

  /** Sends a request. Returns a function by which its client leaves. */
  function send(
    user: number,
    readBody?: (ctx: ApiContext) => Promise<void>,
    state: Partial<ApiContext["state"]> = {},
  ): () => void {
    const res = { destroyed: false };
    const caller = makeCaller({ id: user, name: "Ada", email: "ada@example.com", isAdmin: false });
    // The code uses no other part of a context.
    const ctx = { state: { caller, ...state }, res } as unknown as ApiContext;
    void turns(ctx, async () => {
      await readBody?.(ctx);
      await new Promise<void>((end) => atWork.push({ user, end }));
    });
    return () => (res.destroyed = true);
  }

  /** Returns the users of the running requests once all that may begin have begun. */
  async function usersAtWork(): Promise<readonly number[]> {
    for (let turn = 0; turn < 10; turn += 1) await setImmediate();
    return atWork.map(({ user }) => user);
  }

  async function endAll(): Promise<void> {
    while ((await usersAtWork()).length > 0) for (const { end } of atWork.splice(0)) end();
  }

  it("gives a user the slots of a lone user a second after the last request of another", async () => {
    send(2);
    await endAll();
    nowMs = 500;
    for (let count = 0; count < 3; count += 1) send(1);
    expect(await usersAtWork()).to.deep.equal([1, 1]);
    await endAll();

    nowMs = 1501;
    for (let count = 0; count < 4; count += 1) send(1);

    expect(await usersAtWork()).to.deep.equal([1, 1, 1]);
  });

  it("counts a user as active while a request of theirs has no answer", async () => {
    send(2);
    nowMs = 500;
    send(1);
    nowMs = 5000;
    for (let count = 0; count < 3; count += 1) send(1);

    expect(await usersAtWork()).to.deep.equal([2, 1, 1]);
  });

  it("does not begin a request whose client has left, and begins the next", async () => {
    send(2);
    send(1);
    send(1);
    const leave = send(1);
    leave();
    send(1);
    expect(await usersAtWork()).to.deep.equal([2, 1, 1]);

    for (const { end } of atWork.splice(1)) end();

    expect(await usersAtWork()).to.deep.equal([2, 1]);
  });

  it("does not begin a request whose client left while its user was read again", async () => {
    let find: (() => void) | undefined;
    const leave = send(1, undefined, {
      identifiedAt: performance.now() - 2_000,
      identifyAgain: () => new Promise((resolve) => (find = resolve)),
    });
    await setImmediate();
    leave();
    find?.();

    expect(find).not.to.equal(undefined);
    expect(await usersAtWork()).to.deep.equal([]);
  });

  it("begins one waiting request in each turn, while other users are active", async () => {
    send(2);
    for (let count = 0; count < 4; count += 1) send(1);
    expect(await usersAtWork()).to.deep.equal([2, 1, 1]);

    for (const { end } of atWork.splice(1)) end();

    const begun: number[] = [];
    for (let turn = 0; turn < 5; turn += 1) {
      await setImmediate();
      begun.push(atWork.length - 1);
    }
    expect(begun).to.deep.equal([0, 0, 1, 2, 2]);
  });

  it("lets a request whose body has arrived wait for a slot again", async () => {
    send(2);
    let arrive: (() => void) | undefined;
    send(1, ({ state }) => state.turn.pause(() => new Promise<void>((resolve) => (arrive = resolve))));
    await usersAtWork();
    send(1);
    send(1);
    arrive?.();
    expect(await usersAtWork()).to.deep.equal([2, 1, 1]);

    atWork.splice(1, 1)[0]?.end();

    expect(await usersAtWork()).to.deep.equal([2, 1, 1]);
  });
});
