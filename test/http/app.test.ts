import { makeCaller } from "../support/callers.ts";
import { connect } from "node:net";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { AppError, validationError } from "../../src/kit/errors.ts";
import { createApp } from "../../src/http/app.ts";
import { startServer, type HttpServer } from "../../src/http/server.ts";
import { createRouter, type ApiMiddleware } from "../../src/http/state.ts";
import { call, createMemoryLog } from "../support/http.ts";
import { openRaw } from "../support/raw.ts";
import { until } from "../support/wait.ts";

const caller = makeCaller({ id: 7, name: "Ada", email: "ada@example.com", isAdmin: false });

const authenticate: ApiMiddleware = async (ctx, next) => {
  if (ctx.get("Authorization") === "")
    throw new AppError("token.missing", "Unauthenticated.", { headers: { "WWW-Authenticate": "Bearer" } });
  ctx.state.caller = caller;
  await next();
};

async function* endless(): AsyncGenerator<string> {
  for (;;) {
    yield "more";
    await sleep(5);
  }
}

async function* breaking(): AsyncGenerator<string> {
  yield "more";
  throw new Error("no more");
}

describe("createApp", () => {
  const { log, lines } = createMemoryLog();
  let server: HttpServer;

  before(async () => {
    const router = createRouter("/svc-api");
    router.get("/things", (ctx) => {
      ctx.body = { data: [] };
    });
    router.post("/things", () => {
      throw validationError({ name: ["The name field is required."], age: ["The age field is required."] });
    });
    router.get("/broken", () => {
      throw new Error("the password is hunter2");
    });
    router.get("/away", () => {
      throw new Error("away");
    });
    router.get("/endless", (ctx) => {
      ctx.body = Readable.from(endless());
    });
    router.get("/breaking", (ctx) => {
      ctx.body = Readable.from(breaking());
    });
    router.get("/bigint", (ctx) => {
      ctx.body = { value: 1n };
    });
    router.get("/unavailable", () => {
      throw new AppError("server.unavailable", "the broker is at 10.0.0.1");
    });
    const app = createApp({
      log,
      routePrefix: "/svc-api",
      authenticate,
      router,
      isUnavailable: (error) => error instanceof Error && error.message === "away",
    });
    server = await startServer(app.callback(), { host: "127.0.0.1", port: 0 });
  });

  after(() => server.close());

  const get = (
    path: string,
    headers: Record<string, string> = { Authorization: "Bearer x" },
    method = "GET",
  ) => call(server.port, path, { method, headers });

  it("answers JSON in UTF-8 with nosniff and no-store", async () => {
    const answer = await get("/svc-api/things");

    expect(answer.status).to.equal(200);
    expect(answer.json).to.deep.equal({ data: [] });
    expect(answer.headers).to.include({
      "content-type": "application/json; charset=utf-8",
      "x-content-type-options": "nosniff",
      "cache-control": "no-store",
    });
  });

  for (const path of ["/svc-api", "/svc-api/things", "/svc-api/nothing", "/svc-api/%zz"]) {
    it(`answers 401 to ${path} without a token, with the challenge`, async () => {
      const answer = await get(path, {});

      expect(answer.status).to.equal(401);
      expect(answer.json).to.deep.equal({ message: "Unauthenticated.", code: "token.missing" });
      expect(answer.headers["www-authenticate"]).to.equal("Bearer");
    });
  }

  for (const path of ["/", "/svc-apix", "/SVC-API/things", "/svc%2Dapi/things", "//svc-api/things"]) {
    it(`answers 404 to ${path}, outside the prefix, without asking for a token`, async () => {
      const answer = await get(path, {});

      expect(answer.status).to.equal(404);
      expect(answer.json)
        .to.have.property("message")
        .that.matches(/^The route \S+ could not be found\.$/);
    });
  }

  for (const path of ["/svc-api", "/svc-api/nothing", "/svc-api/%zz", "/svc-api/THINGS"]) {
    it(`answers 404 to the unknown route ${path}`, async () => {
      const answer = await get(path);

      expect(answer.status).to.equal(404);
      expect(answer.json).to.deep.equal({
        message: `The route ${path.slice(1)} could not be found.`,
        code: "route.not_found",
      });
    });
  }

  it("answers 405 to a method that the route does not have, with Allow", async () => {
    const answer = await get("/svc-api/things", { Authorization: "Bearer x" }, "PUT");

    expect(answer.status).to.equal(405);
    expect(answer.headers["allow"]).to.equal("GET, HEAD, POST");
    expect(answer.json).to.deep.equal({
      message:
        "The PUT method is not supported for route svc-api/things. Supported methods: GET, HEAD, POST.",
      code: "operation.unsupported",
    });
  });

  it("answers OPTIONS with the methods of the route", async () => {
    const answer = await get("/svc-api/things", { Authorization: "Bearer x" }, "OPTIONS");

    expect([answer.status, answer.headers["allow"], answer.text]).to.deep.equal([204, "GET, HEAD, POST", ""]);
  });

  it("answers HEAD as GET without the body", async () => {
    const answer = await get("/svc-api/things", { Authorization: "Bearer x" }, "HEAD");

    expect([answer.status, answer.text, answer.headers["content-length"]]).to.deep.equal([200, "", "11"]);
  });

  it("answers a validation error with the summary and the fields", async () => {
    const answer = await get("/svc-api/things", { Authorization: "Bearer x" }, "POST");

    expect(answer.status).to.equal(422);
    expect(answer.json).to.deep.equal({
      message: "The name field is required. (and 1 more error)",
      code: "validation.failed",
      errors: { name: ["The name field is required."], age: ["The age field is required."] },
    });
  });

  for (const [path, status] of [
    ["/svc-api/broken", 500],
    ["/svc-api/bigint", 500],
    ["/svc-api/away", 503],
    ["/svc-api/unavailable", 503],
  ] as const) {
    it(`answers ${status} to ${path} with Server Error and nothing else`, async () => {
      const answer = await get(path);

      expect(answer.status).to.equal(status);
      expect(answer.text).to.equal('{"message":"Server Error"}');
      expect(answer.headers["x-request-id"]).to.be.a("string");
    });
  }

  it("logs the cause of a 500 under the request's id", async () => {
    await get("/svc-api/broken", { Authorization: "Bearer x", "X-Request-Id": "cause-1" });

    const line = lines.find((entry) => entry["requestId"] === "cause-1" && entry["msg"] === "request failed");
    expect(line?.["err"]).to.have.property("message", "the password is hunter2");
  });

  it("logs that a client left a stream only in the request's line", async () => {
    for (const leave of ["destroy", "resetAndDestroy"] as const) {
      const id = `left-${leave}`;
      const client = await openRaw(server.port);
      client.send(
        `GET /svc-api/endless HTTP/1.1\r\nHost: x\r\nAuthorization: x\r\nX-Request-Id: ${id}\r\n\r\n`,
      );
      await until(() => client.received().includes("more"), { what: "its beginning" });
      client.socket[leave]();
      await until(() => lines.some((line) => line["requestId"] === id), { what: "the line" });
    }

    await get("/svc-api/things", { Authorization: "Bearer x", "X-Request-Id": "after-left" });
    await until(() => lines.some((line) => line["requestId"] === "after-left"), { what: "a later line" });
    expect(lines.filter((line) => line["msg"] === "answer not sent")).to.deep.equal([]);
    expect(lines.filter((line) => line["isAborted"] === true)).to.have.lengthOf(2);
  });

  it("logs why a stream broke, under the request's id", async () => {
    const client = await openRaw(server.port);
    client.send(
      "GET /svc-api/breaking HTTP/1.1\r\nHost: x\r\nAuthorization: x\r\nX-Request-Id: broke\r\n\r\n",
    );
    await until(() => lines.some((line) => line["msg"] === "answer not sent"), { what: "the line" });

    const line = lines.find((entry) => entry["msg"] === "answer not sent");
    expect(line).to.include({ requestId: "broke" });
    expect(line?.["err"]).to.have.property("message", "no more");
  });

  it("accepts a valid request id and makes one otherwise", async () => {
    const kept = await get("/svc-api/things", { Authorization: "Bearer x", "X-Request-Id": "abc.DEF-1_2" });
    const made = await get("/svc-api/things", { Authorization: "Bearer x", "X-Request-Id": 'a"b {}' });
    const long = await get("/svc-api/things", { Authorization: "Bearer x", "X-Request-Id": "a".repeat(129) });

    expect(kept.headers["x-request-id"]).to.equal("abc.DEF-1_2");
    expect(made.headers["x-request-id"]).to.match(/^[0-9a-f-]{36}$/);
    expect(long.headers["x-request-id"]).to.match(/^[0-9a-f-]{36}$/);
  });

  it("writes one line per request, without the query string and the token", async () => {
    await get("/svc-api/things?search=secret", { Authorization: "Bearer tok", "X-Request-Id": "line-1" });
    await until(() => lines.some((line) => line["requestId"] === "line-1"), { what: "the line" });

    const own = lines.filter((line) => line["requestId"] === "line-1");
    expect(own).to.have.lengthOf(1);
    expect(own[0]).to.include({
      method: "GET",
      path: "/svc-api/things",
      route: "/svc-api/things",
      status: 200,
      userId: 7,
      msg: "request",
    });
    expect(own[0]?.["durationMs"]).to.be.a("number");
    expect(JSON.stringify(own)).not.to.match(/secret|tok/);
  });

  for (const target of ["http://a:b/", "?x", "*", "http://[::1", "x"]) {
    it(`survives the request target ${target}`, async () => {
      const status = await rawStatus(
        server.port,
        `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
      );

      expect(status).to.be.oneOf([400, 404]);
    });
  }
});

function rawStatus(port: number, text: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(text));
    let answer = "";
    socket.on("data", (chunk) => (answer += chunk.toString()));
    socket.on("error", reject);
    socket.on("close", () => resolve(Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1])));
  });
}
