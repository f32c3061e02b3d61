import { connect, type Socket } from "node:net";
import { expect } from "chai";
import { createEventStreams, type EventStreams } from "../../src/events/event-streams.ts";
import type { EventFeed } from "../../src/events/event-feed.ts";
import { createApp } from "../../src/http/app.ts";
import { createMemoryBudget } from "../../src/http/memory-budget.ts";
import { startServer, type HttpServer } from "../../src/http/server.ts";
import { createRouter, type ApiMiddleware } from "../../src/http/state.ts";
import type { Caller } from "../../src/kit/caller.ts";
import { makeCaller } from "../support/callers.ts";
import { call, asAda, createMemoryLog } from "../support/http.ts";
import { openEventSource, type EventSource } from "../support/event-source.ts";
import { until } from "../support/wait.ts";

type Limits = NonNullable<Parameters<typeof createEventStreams>[0]["changes"]>;

const asUser =
  (id: number, name: string): ApiMiddleware =>
  (ctx, next) => {
    ctx.state.caller = makeCaller({ id, name, email: `${name}@example.com`, isAdmin: false });
    return next();
  };
const users = new Map([
  ["Bearer bob", asUser(8, "Bob")],
  ["Bearer cleo", asUser(9, "Cleo")],
]);

/** Returns a feed of `count` events of `bytes` each, all available at once. */
function feedOf(count: number, bytes = 10): Pick<EventFeed, "read"> & { readonly reads: () => number } {
  let reads = 0;
  const text = "x".repeat(bytes);
  return {
    reads: () => reads,
    async read({ after, take }) {
      reads += 1;
      const left = Math.min(take, Math.max(0, count - Number(after)));
      const events = Array.from({ length: left }, (_, index) => {
        const id = String(Number(after) + index + 1);
        return { id, json: JSON.stringify({ id, text }) };
      });
      const next = after + BigInt(left);
      return { events, size: take, next, hasMore: Number(next) < count };
    },
  };
}

describe("createEventStreams", () => {
  let server: HttpServer;
  let streams: EventStreams;
  let streamsEnded: Promise<void>;
  /** Result of a check of a stream's token: undefined for one that is no longer valid. */
  let recheck: (caller: Caller) => Caller | undefined;
  let sources: EventSource[] = [];
  let lines: readonly Record<string, unknown>[];
  const stopping: AbortController[] = [];

  async function serve(
    feed: Pick<EventFeed, "read">,
    last: number | (() => number),
    changes: Limits,
    memoryBudgetBytes?: number,
    after: 0n | "now" = 0n,
    start: () => Promise<bigint> = () => Promise.resolve(2n),
  ): Promise<void> {
    recheck = (caller) => caller;
    const memory = createMemoryLog();
    ({ lines } = memory);
    const reach = (): Promise<bigint> => Promise.resolve(BigInt(typeof last === "number" ? last : last()));
    streams = createEventStreams({
      feed,
      horizon: Object.assign(reach, { start, latest: reach }),
      recheck: (ctx) => Promise.resolve(recheck(ctx.state.caller)),
      changes: { pollMs: 10, leastMs: 1, ...changes },
    });
    const router = createRouter("");
    const from = { query: { resources: ["notes"] }, after: after === "now" ? undefined : after };
    router.get("/events/stream", (ctx) => streams.open(ctx, from));
    const app = createApp({
      log: memory.log,
      routePrefix: "",
      authenticate: (ctx, next) => (users.get(ctx.get("Authorization")) ?? asAda)(ctx, next),
      router,
      memoryBudget: createMemoryBudget({ limitBytes: memoryBudgetBytes ?? Infinity }),
      isUnavailable: () => false,
    });
    server = await startServer(app.callback(), { host: "127.0.0.1", port: 0 });
    const controller = new AbortController();
    stopping.push(controller);
    streamsEnded = streams.run(controller.signal);
  }
  async function open(token = "ada", lastEventId?: string): Promise<EventSource> {
    const source = await openEventSource(`http://127.0.0.1:${server.port}/events/stream`, {
      token,
      ...(lastEventId === undefined ? {} : { lastEventId }),
    });
    sources.push(source);
    return source;
  }

  afterEach(async () => {
    for (const source of sources) source.close();
    sources = [];
    for (const controller of stopping.splice(0)) controller.abort();
    await server.close({ limitMs: 0 });
  });

  it("sends heartbeats while nothing happens, and ends after its lifetime", async () => {
    await serve(feedOf(3), 3, { heartbeatMs: 20, lifetimeMs: 300 });
    const source = await open();

    await until(() => source.isEnded(), { what: "the end" });

    expect(source.messages.map(({ id }) => id)).to.deep.equal(["1", "2", "3"]);
    expect(source.lastId()).to.equal("3");
    expect(source.comments).to.include(": heartbeat");
  });

  it("counts its data as memory of its user, and ends without any", async () => {
    // A page weighs 400 KB here, and a user has half of the budget.
    await serve(feedOf(10, 20_000), 10, { heartbeatMs: 60_000 }, 1_000_000);
    const first = await open();
    await until(() => first.messages.length === 10, { what: "the events of the first" });

    const second = await open();
    await until(() => second.isEnded(), { what: "the end of the second" });
    const ofBob = await open("bob");
    await until(() => ofBob.messages.length === 10, { what: "the events of another user" });

    expect(second.messages).to.deep.equal([]);
    expect(first.isEnded()).to.equal(false);
  });

  it("moves a client past events that it may not read, and never back", async () => {
    let next = 5n;
    await serve(
      { read: ({ take }) => Promise.resolve({ events: [], size: take, next, hasMore: false }) },
      () => Number(next),
      { heartbeatMs: 20 },
    );
    const source = await open();
    await until(() => source.lastId() === "5", { what: "the place behind them" });

    // A server that took over without the last events has such numbers.
    next = 3n;
    const before = source.comments.length;
    await until(() => source.comments.length > before + 1, { what: "two more reads" });

    expect(source.lastId()).to.equal("5");
  });

  it("reads nothing until there is something new", async () => {
    const feed = feedOf(3);
    let looks = 0;
    await serve(
      feed,
      () => {
        looks += 1;
        return 3;
      },
      {},
    );
    const source = await open();
    await until(() => source.lastId() === "3", { what: "the events" });

    const [reads, before] = [feed.reads(), looks];
    await until(() => looks > before + 5, { what: "looks for new ones" });

    expect(feed.reads()).to.equal(reads);
  });

  it("continues after the last event that a client has, not at the start of its first request", async () => {
    await serve(feedOf(3), 3, {});

    const source = await open("ada", "2");

    await until(() => source.lastId() === "3", { what: "the last event" });
    expect(source.messages.map(({ id }) => id)).to.deep.equal(["3"]);
  });

  it("begins where a new reader does, without a position", async () => {
    await serve(feedOf(3), 3, {}, undefined, "now");

    const source = await open();

    await until(() => source.lastId() === "3", { what: "the last event" });
    expect(source.messages.map(({ id }) => id)).to.deep.equal(["3"]);
  });

  it("ends when its token is no longer valid, and reads nothing for it", async () => {
    const feed = feedOf(1);
    await serve(feed, 1, { heartbeatMs: 20, recheckMs: 0 });
    const source = await open();
    await until(() => source.comments.length > 0, { what: "a heartbeat" });
    recheck = () => undefined;

    const reads = feed.reads();
    await until(() => source.isEnded(), { what: "the end" });
    expect(feed.reads()).to.equal(reads);
  });

  it("reads with the current rights of its token, not with those at its start", async () => {
    const rights: boolean[] = [];
    const none = feedOf(0);
    await serve(
      {
        read(options) {
          rights.push(options.caller.isAdmin);
          return none.read(options);
        },
      },
      0,
      { heartbeatMs: 10, recheckMs: 0 },
    );
    recheck = (caller) => ({ ...caller, isAdmin: true });
    await open();
    await until(() => rights.at(-1) === true, { what: "a read with more rights" });
    let before = 0;
    recheck = (caller) => {
      before ||= rights.length;
      return { ...caller, isAdmin: false };
    };
    await until(() => before > 0 && rights.length > before, { what: "the next read" });

    expect(rights.slice(before)).not.to.include(true);
  });

  it("sends a new event on every open stream, long before a heartbeat", async () => {
    let count = 0;
    await serve({ read: (options) => feedOf(count).read(options) }, () => count, {});
    await Promise.all([open(), open("bob"), open()]);
    await until(() => sources.every((source) => source.lastId() === "0"), { what: "the beginnings" });

    count = 1;

    await until(() => sources.every(({ messages }) => messages.length === 1), { what: "the event on each" });
  });

  it("ends at once when it was reading while its configuration ended", async () => {
    let answer: (() => void) | undefined;
    await serve(
      {
        async read({ after, take }) {
          await new Promise<void>((resolve) => (answer = resolve));
          return { events: [], size: take, next: after, hasMore: false };
        },
      },
      0,
      {},
    );
    const source = await open();
    await until(() => answer !== undefined, { what: "a read" });
    for (const controller of stopping.splice(0)) controller.abort();
    await streamsEnded;
    answer?.();

    await until(() => source.isEnded(), { what: "the end" });
  });

  it("ends with the configuration that it runs on", async () => {
    await serve(feedOf(1), 1, {});
    const source = await open();
    await until(() => source.messages.length === 1, { what: "the event" });

    for (const controller of stopping.splice(0)) controller.abort();

    await until(() => source.isEnded(), { what: "the end" });
  });

  it("ends at once when its request waited until its configuration had ended", async () => {
    await serve(feedOf(1), 1, {});
    for (const controller of stopping.splice(0)) controller.abort();
    await streamsEnded;

    const source = await open();

    await until(() => source.isEnded(), { what: "the end" });
  });

  it("ends without an error when the database fails before its first part", async () => {
    await serve(feedOf(3), 3, {}, undefined, "now", () => Promise.reject(new Error("away")));

    const source = await open();

    await until(() => source.isEnded(), { what: "the end" });
    expect([source.status, source.messages]).to.deep.equal([200, []]);
  });

  it("cuts a client that does not read, and keeps little for it meanwhile", async () => {
    const feed = feedOf(100_000, 100_000);
    await serve(feed, 100_000, { slowMs: 1_000, page: 10, perUser: 1 });
    const socket: Socket = connect(server.port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.pause();
    socket.write("GET /events/stream HTTP/1.1\r\nHost: a\r\n\r\n");

    // Limited by the buffers of the two sockets: 100,000 pages of 1 MB are available.
    await until(() => feed.reads() > 0, { what: "the first page" });
    let reads = -1;
    await until(
      async () => {
        const before = reads;
        reads = feed.reads();
        await new Promise((resolve) => setTimeout(resolve, 50));
        return reads === before;
      },
      { what: "the reads to stop" },
    );

    expect(reads).to.be.below(100);
    const next = await until(
      async () => {
        const source = await open();
        return source.status === 200 ? source : undefined;
      },
      { what: "the cut, which leaves the place to another" },
    );
    await until(() => next.messages.length > 20, { what: "the other client to get on" });
    expect(lines.filter(({ msg }) => msg !== "request")).to.deep.equal([]);
    socket.destroy();
  });

  it("lets one stream of a user read at a time, so that another user's never waits for all of them", async () => {
    const reading: number[] = [];
    const ends: (() => void)[] = [];
    const feed: Pick<EventFeed, "read"> = {
      async read({ caller, after, take }) {
        reading.push(caller.id);
        await new Promise<void>((resolve) => ends.push(resolve));
        return { events: [], size: take, next: after + 1n, hasMore: true };
      },
    };
    await serve(feed, 0, { readers: 3 });
    await Promise.all(Array.from({ length: 10 }, () => open()));
    await until(() => reading.length > 0, { what: "a read of Ada's" });

    await open("bob");
    await until(() => reading.length === 2, { what: "Bob's read", timeoutMs: 1000 });
    for (let turn = 0; turn < 6; turn += 1) {
      const before = reading.length;
      ends.shift()?.();
      await until(() => reading.length > before, { what: "the next read", timeoutMs: 1000 });
    }

    expect(reading).to.deep.equal([7, 8, 7, 8, 7, 8, 7, 8]);
    for (const controller of stopping.splice(0)) controller.abort();
    await until(
      () => {
        for (const end of ends.splice(0)) end();
        return sources.every((source) => source.isEnded());
      },
      { what: "the ends" },
    );
  });

  it("leaves a reader to new events while streams of several users read earlier ones", async () => {
    let count = 2;
    const read: EventFeed["read"] = (options) =>
      options.after === 1n ? new Promise(() => undefined) : feedOf(count).read(options);
    await serve({ read }, () => count, {}, undefined, "now");
    await Promise.all([open("bob", "1"), open("cleo", "1")]);
    const source = await open();

    count = 3;

    await until(() => source.messages.length === 1, { what: "the new event" });
  });

  it("refuses an invalid position, and more streams than a user or all may have, and serves HEAD", async () => {
    await serve(feedOf(0), 0, { perUser: 1, streams: 2 });
    const path = "/events/stream";

    const wrong = await call(server.port, path, { headers: { "Last-Event-ID": "x" } });
    const head = await call(server.port, path, { method: "HEAD" });
    await open();
    const second = await call(server.port, path);
    await open("bob");
    const third = await open("cleo");

    expect(wrong.status).to.equal(422);
    expect(wrong.json).to.have.nested.property("errors.Last-Event-ID");
    expect(head).to.include({ status: 200, text: "" });
    // A proxy that buffers an answer would delay the events.
    expect(head.headers).to.include({ "x-accel-buffering": "no", "cache-control": "no-store" });
    expect([second.status, second.headers["retry-after"]]).to.deep.equal([503, "10"]);
    expect(third.status).to.equal(503);
  });

  it("ends the oldest stream of the user with the most, for a user with fewer than that has then", async () => {
    await serve(feedOf(0), 0, { streams: 3 });
    const [oldest, ...others] = [await open(), await open(), await open("bob")];

    const late = await open("cleo");
    await until(() => oldest.isEnded(), { what: "the end of Ada's oldest stream" });

    expect(late.status).to.equal(200);
    expect((await open("cleo")).status).to.equal(503);
    expect((await open()).status).to.equal(503);
    expect(others.map((one) => one.isEnded())).to.deep.equal([false, false]);
  });
});
