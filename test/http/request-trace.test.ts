import { expect } from "chai";
import { createApp } from "../../src/http/app.ts";
import { startServer, type HttpServer } from "../../src/http/server.ts";
import { createRouter } from "../../src/http/state.ts";
import {
  noTracing,
  type Attributes,
  type Span,
  type SpanStart,
  type Tracing,
} from "../../src/telemetry/tracing.ts";
import { asAda, call, createMemoryLog } from "../support/http.ts";
import { until } from "../support/wait.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const traceparent = `00-${traceId}-b7ad6b7169203331-01`;

interface Told extends SpanStart {
  readonly finally: Attributes;
  readonly error: string | undefined;
}

describe("createRequestTrace", () => {
  const { log, lines } = createMemoryLog();
  const ended: Told[] = [];
  let current: Span | undefined;
  let server: HttpServer;

  /** Records its arguments, and keeps no context. */
  const tracing: Tracing = {
    ...noTracing,
    isOn: true,
    begin(start) {
      let told: SpanStart = start;
      let attributes: Attributes = {};
      return {
        traceparent,
        traceId,
        rename: (name) => (told = { ...told, name }),
        set: (more) => (attributes = { ...attributes, ...more }),
        end: (error) => void ended.push({ ...told, finally: attributes, error }),
      };
    },
    run(span, work) {
      current = span;
      return work();
    },
    current: () => current,
  };

  before(async () => {
    const router = createRouter("/svc-api");
    router.get("/things/:id", (ctx) => {
      ctx.body = { traceparent: tracing.current()?.traceparent };
    });
    router.get("/broken", () => {
      throw new Error("no");
    });
    const app = createApp({
      log,
      routePrefix: "/svc-api",
      authenticate: asAda,
      router,
      isUnavailable: () => false,
      tracing,
    });
    server = await startServer(app.callback(), { host: "127.0.0.1", port: 0 });
  });

  beforeEach(() => {
    ended.length = 0;
    lines.length = 0;
  });

  after(() => server.close());

  const spanOf = async (path: string, headers: Record<string, string> = {}): Promise<Told> => {
    await call(server.port, path, { headers });
    return until(() => ended[0], { what: "the span to end" });
  };

  it("is named after the route, is part of the caller's trace, and is current for the request", async () => {
    const answer = await call(server.port, "/svc-api/things/7?secret=1", { headers: { traceparent } });
    const span = await until(() => ended[0], { what: "the span to end" });

    expect(answer.json).to.deep.equal({ traceparent });
    expect(span).to.deep.equal({
      name: "GET /svc-api/things/:id",
      kind: "server",
      parent: traceparent,
      attributes: {
        "http.request.method": "GET",
        "url.path": "/svc-api/things/7",
        "network.protocol.version": "1.1",
      },
      finally: { "http.route": "/svc-api/things/:id", "http.response.status_code": 200 },
      error: undefined,
    });
  });

  it("begins a trace for a caller who sends none, or an invalid one", async () => {
    expect((await spanOf("/svc-api/things/7")).parent).to.equal(undefined);
    ended.length = 0;
    expect((await spanOf("/svc-api/things/7", { traceparent: "00-1-2-3" })).parent).to.equal(undefined);
  });

  it("marks a 5xx as an error, a 4xx not, and names a path without a route by its method alone", async () => {
    expect(await spanOf("/svc-api/broken")).to.include({ name: "GET /svc-api/broken", error: "500" });
    ended.length = 0;
    expect(await spanOf("/svc-api/unknown")).to.deep.include({
      name: "GET",
      error: undefined,
      finally: { "http.route": undefined, "http.response.status_code": 404 },
    });
  });

  it("puts the trace's id on the lines of the log", async () => {
    await spanOf("/svc-api/broken");
    await until(() => lines.find(({ msg }) => msg === "request"), { what: "the request's line" });

    expect(lines.length).to.be.greaterThan(1);
    for (const line of lines) expect(line).to.include({ traceId });
  });
});
