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
  let turn = 0;
  const turnOf: number[] = [];

  before(async () => {
    const router = createRouter("");
    router.get("/late", async (ctx) => {
      await once(ctx.res, "close");
      ctx.body = new LargeAnswer([Buffer.from("["), Buffer.alloc(1_000_000, "1"), Buffer.from("]")]);
      isMade = true;
    });
    router.get("/turns", (ctx) => {
      const write = ctx.res.write.bind(ctx.res);
      ctx.res.write = ((piece: Buffer) => {
        turnOf.push(turn);
        return write(piece);
      }) as typeof ctx.res.write;
      const nextTurn = (): void => {
        turn += 1;
        if (!ctx.res.writableEnded) setImmediate(nextTurn);
      };
      nextTurn();
      ctx.body = new LargeAnswer(Array.from({ length: 32 }, () => Buffer.alloc(64 * 1024, "1")));
    });
    const app = createApp({ log, routePrefix: "", authenticate: asAda, router, isUnavailable: () => false });
    server = await startServer(app.callback(), { host: "127.0.0.1", port: 0, log });
  });
  after(() => server.close());

  it("is written in several turns of the event loop, and arrives whole", async () => {
    const response = await fetch(`http://127.0.0.1:${server.port}/turns`);

    expect(response.headers.get("content-length")).to.equal(String(32 * 64 * 1024));
    expect((await response.text()).length).to.equal(32 * 64 * 1024);
    expect(turnOf).to.have.length(32);
    for (const one of new Set(turnOf)) expect(turnOf.filter((at) => at === one)).to.have.length(4);
  });

  it("is not written to a client that has left", async () => {
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
