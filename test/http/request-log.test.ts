import Koa from "koa";
import { connect } from "node:net";
import { expect } from "chai";
import type { HttpMetrics } from "../../src/telemetry/metrics/http.ts";
import { createClientAddresses } from "../../src/http/client-address.ts";
import { createRequestLog, pathForLog } from "../../src/http/request-log.ts";
import { startServer, type HttpServer } from "../../src/http/server.ts";
import type { RequestState } from "../../src/http/state.ts";
import { call, createMemoryLog } from "../support/http.ts";
import { until } from "../support/wait.ts";

describe("createRequestLog", () => {
  const { log, lines } = createMemoryLog();
  const ended: Parameters<HttpMetrics["ended"]>[0][] = [];
  let inFlight = 0;
  let server: HttpServer;
  let port: number;

  before(async () => {
    const app = new Koa<RequestState>();
    const metrics: HttpMetrics = {
      started: () => void (inFlight += 1),
      ended(request) {
        inFlight -= 1;
        ended.push(request);
      },
      refused: () => undefined,
    };
    app.use(createRequestLog(log, createClientAddresses([]), metrics));
    app.use(async (ctx) => {
      if (ctx.path === "/hang") await new Promise((resolve) => ctx.res.once("close", resolve));
      Object.assign(ctx.state, {
        tokenId: 5,
        resource: "notes",
        recordId: ctx.path.slice("/notes/".length),
        errorCode: "record.forbidden",
      });
      ctx.status = 403;
      ctx.body = "four";
    });
    server = await startServer(app.callback(), { host: "127.0.0.1", port: 0 });
    ({ port } = server);
  });

  after(() => server.close());

  it("logs the request, its sender and its outcome", async () => {
    await call(port, "/notes/41?key=canary", {
      method: "PUT",
      headers: { "X-Request-Id": "line-1", "User-Agent": "canary", "Content-Type": "text/canary" },
      body: "canary",
    });
    const line = await until(() => lines.find(({ requestId }) => requestId === "line-1"), {
      what: "the line",
    });

    expect(line).to.include({
      event: "request",
      method: "PUT",
      path: "/notes/41",
      status: 403,
      errorCode: "record.forbidden",
      bytesIn: 6,
      bytesOut: 4,
      tokenId: 5,
      resource: "notes",
      recordId: "41",
      client: "127.0.0.1",
    });
    expect(line).not.to.have.property("isAborted");
    expect(JSON.stringify(line)).not.to.include("canary");
  });

  it("counts the requests that it logs", async () => {
    ended.length = 0;

    await call(port, "/notes", {});
    await until(() => ended.length === 1, { what: "the count" });

    expect(ended[0]).to.include({ method: "GET", route: undefined, status: 403 });
    expect(ended[0]?.durationMs).to.be.within(0, 10_000);
    expect(inFlight).to.equal(0);
  });

  it("shows no token that was sent as the id of a record, and only the beginning of a long id", async () => {
    const ids = [`svc_${"aB3".repeat(15)}`, "x".repeat(2_000)];
    for (const id of ids) await call(port, `/notes/${id}`, { headers: { "X-Request-Id": "line-3" } });
    const shown = await until(
      () => [lines.filter(({ requestId }) => requestId === "line-3")].find(({ length }) => length === 2),
      { what: "the lines" },
    );

    expect(shown.map(({ recordId }) => recordId)).to.deep.equal(["svc_…", "x".repeat(512)]);
  });

  it("logs a client that left before the answer, with the status of the metric", async () => {
    const socket = connect({ port, host: "127.0.0.1" });
    socket.write("GET /hang HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: line-2\r\n\r\n");
    await until(() => inFlight === 1, { what: "the request" });

    socket.destroy();
    const line = await until(() => lines.find(({ requestId }) => requestId === "line-2"), {
      what: "the line",
    });

    expect(line).to.include({ isAborted: true, status: 499 });
    expect(ended.at(-1)).to.include({ status: 499 });
    expect(inFlight).to.equal(0);
  });
});

describe("pathForLog", () => {
  for (const [target, path] of [
    ["/svc-api/notes?key=canary", "/svc-api/notes"],
    ["http://ada:canary@host:80/notes?canary", "/notes"],
    ["*", "*"],
    ["host:443", "host:443"],
    [`/${"x".repeat(600)}`, `/${"x".repeat(511)}`],
    [`/tokens/svc_${"aB3".repeat(15)}/x`, "/tokens/svc_…/x"],
    ["/svc_notes", "/svc_notes"],
  ] as const)
    it(`makes ${path.slice(0, 20)} from ${target.slice(0, 40)}`, () => {
      expect(pathForLog(target)).to.equal(path);
    });
});
