import { once } from "node:events";
import { expect } from "chai";
import { createApp } from "../../src/http/app.ts";
import { LargeAnswer } from "../../src/http/large-answer.ts";
import { startServer, type HttpServer } from "../../src/http/server.ts";
import { createRouter } from "../../src/http/state.ts";
import { asAda, createMemoryLog } from "../support/http.ts";
import { openRaw } from "../support/raw.ts";
import { until } from "../support/wait.ts";

describe("LargeAnswer", () => {
  const { log, lines } = createMemoryLog();
  let server: HttpServer;
  let isMade = false;

  before(async () => {
    const router = createRouter("");
    router.get("/late", async (ctx) => {
      await once(ctx.res, "close");
      ctx.body = new LargeAnswer([Buffer.from("["), Buffer.alloc(1_000_000, "1"), Buffer.from("]")]);
      isMade = true;
    });
    const app = createApp({ log, routePrefix: "", authenticate: asAda, router, isUnavailable: () => false });
    server = await startServer(app.callback(), { host: "127.0.0.1", port: 0, log });
  });
  after(() => server.close());

  it("is nothing to a client that has left", async () => {
    const errors: unknown[] = [];
    const note = (error: unknown): void => void errors.push(error);
    process.on("uncaughtExceptionMonitor", note);
    const connection = await openRaw(server.port);
    connection.send("GET /late HTTP/1.1\r\nHost: svc\r\n\r\n");
    await new Promise((resolve) => setTimeout(resolve, 50));
    connection.socket.destroy();

    await until(() => isMade, { what: "the answer" });
    await new Promise((resolve) => setTimeout(resolve, 50));
    process.off("uncaughtExceptionMonitor", note);
    expect(errors).to.deep.equal([]);
    expect(lines.filter(({ level }) => level === "error")).to.deep.equal([]);
  });
});
