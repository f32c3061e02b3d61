import { expect } from "chai";
import { createApp } from "../../src/http/app.ts";
import { startServer, type HttpServer } from "../../src/http/server.ts";
import { createRouter, type ApiMiddleware } from "../../src/http/state.ts";
import type { FeedPage } from "../../src/events/event-feed.ts";
import { addEventRoutes, type FeedRoutesOptions } from "../../src/events/feed-routes.ts";
import { createFairPlaces } from "../../src/kit/fair-places.ts";
import { createTurns } from "../../src/kit/turns.ts";
import { fullGrant, makeCaller } from "../support/callers.ts";
import { call, createMemoryLog, type Answer } from "../support/http.ts";
import { until } from "../support/wait.ts";

/** The token is the id of its user. */
const authenticate: ApiMiddleware = (ctx, next) => {
  ctx.state.caller = makeCaller({
    id: Number(ctx.get("Authorization")),
    name: "Ada",
    email: "ada@example.com",
    isAdmin: false,
  });
  ctx.state.grant = fullGrant;
  return next();
};

const page: FeedPage = { events: [{ id: "7", json: '{"id":7}' }], size: 15, next: 7n, hasMore: false };

describe("addEventRoutes", () => {
  let server: HttpServer;
  /** Users whose pages are being read, and the ends of these reads. */
  let reading: { readonly user: number; readonly end: () => void }[];

  async function start(pageWaitMs: number): Promise<void> {
    reading = [];
    const router = createRouter("");
    addEventRoutes(router, {
      feed: {
        async read({ caller }: { readonly caller: { readonly id: number } }) {
          await new Promise<void>((resolve) => reading.push({ user: caller.id, end: resolve }));
          return page;
        },
      },
      horizon: { latest: async () => 7n },
      registered: ["notes"],
      maxPerPage: 100,
      listTurns: createTurns(1),
      pages: createFairPlaces(1),
      pageWaitMs,
    } as unknown as FeedRoutesOptions);
    const app = createApp({
      log: createMemoryLog().log,
      routePrefix: "",
      authenticate,
      router,
      isUnavailable: () => false,
    });
    server = await startServer(app.callback(), { host: "127.0.0.1", port: 0, log: createMemoryLog().log });
  }
  afterEach(() => server.close());

  const get = (user: number): Promise<Answer> =>
    call(server.port, "/events", { headers: { Authorization: String(user) } });
  const untilReading = (count: number): Promise<unknown> =>
    until(() => reading.length === count, { what: `${count} reads` });

  it("reads no more pages of all users at once than there are places, and answers each", async () => {
    await start(10_000);
    const first = get(1);
    await untilReading(1);
    const second = get(2);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(reading.map(({ user }) => user)).to.deep.equal([1]);

    reading[0]?.end();
    await untilReading(2);
    reading[1]?.end();

    expect(reading.map(({ user }) => user)).to.deep.equal([1, 2]);
    for (const answer of [await first, await second])
      expect(answer.json).to.deep.include({ data: [{ id: 7 }], per_page: 15, next_cursor: "7" });
  });

  it("answers 503 with Retry-After to a page that waits too long for its place", async () => {
    await start(20);
    const first = get(1);
    await untilReading(1);

    const refused = await get(2);

    expect([refused.status, refused.headers["retry-after"]]).to.deep.equal([503, "5"]);
    reading[0]?.end();
    expect((await first).status).to.equal(200);
  });
});
