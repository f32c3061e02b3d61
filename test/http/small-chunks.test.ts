import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { expect } from "chai";
import { joinSmallChunks } from "../../src/http/small-chunks.ts";
import { startServer, type HttpServer } from "../../src/http/server.ts";
import { answersIn, openRaw } from "../support/raw.ts";
import { until } from "../support/wait.ts";

const head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
const inChunks = (text: string, size: number): string =>
  text.replaceAll(new RegExp(`.{1,${size}}`, "g"), (part) => `${part.length.toString(16)}\r\n${part}\r\n`);

describe("a body in small chunks", () => {
  let server: HttpServer;
  let requests = 0;
  let pieces = 0;
  let wait: Promise<void>;
  let read: () => void;

  beforeEach(async () => {
    [requests, pieces] = [0, 0];
    wait = new Promise((resolve) => (read = resolve));
    server = await startServer(
      async (request, response) => {
        requests += 1;
        await wait;
        let text = "";
        for await (const piece of request) {
          pieces += 1;
          text += String(piece);
        }
        response.end(JSON.stringify(text));
      },
      { host: "127.0.0.1", port: 0 },
    );
  });
  afterEach(() => server.close({ limitMs: 100 }));

  const digits = Array.from({ length: 20_000 }, (_, index) => String(index % 10)).join("");

  for (const isWaiting of [false, true])
    it(`is read whole and in few pieces, ${isWaiting ? "also after a wait" : "as it comes"}`, async () => {
      const connection = await openRaw(server.port);
      if (!isWaiting) read();
      connection.send(`${head}${inChunks(digits, 20)}${inChunks("x".repeat(5000), 5000)}0\r\n\r\n`);
      await until(() => requests === 1, { what: "the request" });
      read();
      await until(() => connection.received().includes('x"'), { what: "the answer" });

      expect(connection.received()).to.contain(`"${digits}${"x".repeat(5000)}"`);
      expect(pieces).to.be.within(1, 100);
      connection.socket.destroy();
    });

  it("of a byte ends the connection after 4,096 of them", async () => {
    const connection = await openRaw(server.port);
    read();
    connection.send(head + inChunks(digits.slice(0, 4000), 1));
    await until(() => pieces > 0, { what: "the first piece" });
    connection.send(inChunks(digits.slice(0, 200), 1));

    expect(answersIn(await connection.untilClosed())).to.deep.equal([]);
  });

  for (const [what, everyMs, floods] of [
    ["fast", 0.2, 1],
    ["slowly", 0.3, 0],
  ] as const)
    it(`ends the connection alone unless they come fast: ${what}`, () => {
      const request = new IncomingMessage(new Socket());
      let [nowMs, found] = [0, 0];
      joinSmallChunks(request, { onFlood: () => (found += 1), now: () => nowMs });

      for (let count = 0; count < 4_097; count += 1) {
        nowMs += everyMs;
        request.push(Buffer.from("a"));
      }

      expect([found, request.socket.destroyed]).to.deep.equal([floods, floods === 0]);
    });
});
