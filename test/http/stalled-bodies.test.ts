import { expect } from "chai";
import { createApp } from "../../src/http/app.ts";
import { readJsonBody } from "../../src/http/body.ts";
import { createMemoryBudget } from "../../src/http/memory-budget.ts";
import { startServer, type HttpServer } from "../../src/http/server.ts";
import { createRouter } from "../../src/http/state.ts";
import { asAda, call, createMemoryLog } from "../support/http.ts";
import { openRaw, type RawConnection } from "../support/raw.ts";
import { until } from "../support/wait.ts";

const limitBytes = 32 * 1024 ** 2;
/** Two bodies that take all but 8 bytes of half of it: 12 for each byte, and 256 KiB to spare. */
const lengths = [1_000_000, 354_410];

describe("two users who hold all memory with bodies that do not arrive", () => {
  let server: HttpServer;
  const stalled: RawConnection[] = [];

  /** Opens a connection whose body does not arrive, and waits until its memory is reserved. */
  async function stall(user: number, length: number): Promise<void> {
    const connection = await openRaw(server.port);
    stalled.push(connection);
    connection.send(
      `POST /echo HTTP/1.1\r\nHost: a\r\nX-User: ${user}\r\nContent-Type: application/json\r\n` +
        `Expect: 100-continue\r\nContent-Length: ${length}\r\n\r\n`,
    );
    await until(() => connection.received().includes("100 Continue"), { what: "the reservation" });
  }

  before(async () => {
    const router = createRouter("");
    router.post("/echo", async (ctx) => {
      ctx.body = await readJsonBody(ctx);
    });
    router.get("/read", (ctx) => {
      ctx.body = { text: "a".repeat(1000) };
    });
    const app = createApp({
      log: createMemoryLog().log,
      routePrefix: "",
      authenticate: (ctx, next) =>
        asAda(ctx, () => {
          ctx.state.caller = { ...ctx.state.caller, id: Number(ctx.get("X-User")) };
          return next();
        }),
      router,
      isUnavailable: () => false,
      memoryBudget: createMemoryBudget({ limitBytes }),
    });
    server = await startServer(app.callback(), { host: "127.0.0.1", port: 0 });
    for (const user of [1, 2]) for (const length of lengths) await stall(user, length);
  });

  after(async () => {
    for (const { socket } of stalled) socket.destroy();
    await server.close();
  });

  it("do not prevent reads and small bodies of another user", async () => {
    const headers = { "X-User": "3", "Content-Type": "application/json" };
    const answers = [
      await call(server.port, "/read", { headers }),
      await call(server.port, "/echo", { method: "POST", headers, body: '{"a":1}' }),
    ];

    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200]);
    expect(stalled.map((connection) => connection.isClosed())).to.deep.equal([false, false, false, false]);
  });

  it("do not prevent ten small bodies of another user at the same time", async () => {
    for (let count = 0; count < 10; count += 1) await stall(3, 100);
  });
});
