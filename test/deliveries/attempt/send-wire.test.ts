import { once } from "node:events";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { expect } from "chai";
import { hang, reset, startReceiver } from "../../support/receiver.ts";
import { createTestSenders, deliveryBytes, type TestSenders } from "../../support/senders.ts";
import { until } from "../../support/wait.ts";

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

describe("createSender, byte by byte", () => {
  let senders: TestSenders;
  let server: Server;
  let url: string;
  let sockets: Socket[];
  /** Answers the first bytes of a connection. */
  let onBytes: (socket: Socket, bytes: Buffer) => void;

  beforeEach(async () => {
    senders = createTestSenders();
    sockets = [];
    server = createServer((socket) => {
      sockets.push(socket);
      socket.on("error", () => {});
      socket.once("data", (bytes) => onBytes(socket, bytes));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  });
  afterEach(() => {
    senders.close();
    for (const socket of sockets) socket.destroy();
    server.close();
  });

  describe("request", () => {
    it("goes out in one packet when it is small, in any number of parts, on a new connection and on a kept one", async () => {
      const { postFor } = senders.open();
      const chunks: string[] = [];
      onBytes = (socket, bytes) => {
        chunks.push(bytes.toString());
        socket.write(ok);
        socket.once("data", (more) => onBytes(socket, more));
      };
      const parts = [Buffer.from("{"), Buffer.alloc(4_000, " "), Buffer.from("}")];

      await postFor(1, url, parts);
      await postFor(1, url, parts);

      expect(sockets).to.have.length(1);
      expect(chunks.map((chunk) => chunk.slice(chunk.indexOf("\r\n\r\n") + 4))).to.deep.equal(
        Array(2).fill(`{${" ".repeat(4_000)}}`),
      );
      expect(chunks[0]).to.include("\r\nContent-Length: 4002\r\n").and.not.include("Transfer-Encoding");
    });

    it("of a megabyte arrives unchanged", async () => {
      const receiver = await startReceiver();
      const parts = [
        deliveryBytes,
        Buffer.alloc(1024 * 1024, "a"),
        new Uint8Array(0),
        Uint8Array.of(0xff, 0xfe),
      ];
      try {
        const sent = await senders.open().postFor(1, receiver.url, parts);

        expect(sent).to.have.nested.property("result.statusCode", 200);
        expect(receiver.received[0]?.rawBody.equals(Buffer.concat(parts))).to.equal(true);
      } finally {
        await receiver.close();
      }
    });

    it("to an IPv6 address needs no look-up", async () => {
      // The machine may lack the address.
      expect((await senders.send("http://[::1]:1/")).error).to.be.oneOf(["refused", "unreachable"]);
    });

    it("without a body says so", async () => {
      let text = "";
      onBytes = (socket, bytes) => {
        text = bytes.toString();
        socket.write(ok);
      };

      await senders.open().postFor(1, url, []);

      expect(text).to.include("\r\nContent-Length: 0\r\n");
    });

    it("that Node refuses to send is a failure", async () => {
      const sender = senders.openSender();
      const headers = { "X-Bad": "a\r\nb" };

      const sent = await sender.send({ url, headers, body: [] }, { id: 1, isAdmin: false });

      expect(sent).to.have.nested.property("result.error", "protocol");
      expect(sockets).to.deep.equal([]);
    });
  });

  describe("answer", () => {
    it("that comes while the request is being written counts, and ends the connection", async () => {
      let isClosed = false;
      onBytes = (socket) => {
        // More than sockets buffer: the rest is written only when the receiver reads.
        socket.pause();
        socket.on("close", () => (isClosed = true));
        socket.write("HTTP/1.1 413 Payload Too Large\r\nContent-Length: 5\r\n\r\nlarge");
      };

      const sent = await senders.open().postFor(1, url, [Buffer.alloc(32 * 1024 * 1024)]);

      expect(sent).to.have.nested.property("result.statusCode", 413);
      expect(sent).to.have.nested.property("result.isResponseTruncated", false);
      sockets[0]?.resume();
      await until(() => isClosed, { what: "the end of the connection" });
    });

    it("may be preceded by interim answers, which do not count", async () => {
      onBytes = answerWith(
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n",
        ok,
      );

      const result = await senders.send(url);

      expect([result.error, result.statusCode, result.responseBody?.toString()]).to.deep.equal([
        undefined,
        200,
        "ok",
      ]);
      expect(result.responseHeaders).to.deep.equal({ "content-length": "2" });
    });

    it("that is preceded by endless interim answers is a protocol error", async () => {
      onBytes = (socket) => {
        const pump = (): void => {
          while (!socket.destroyed && socket.write("HTTP/1.1 100 Continue\r\n\r\n".repeat(100)));
        };
        socket.on("drain", pump);
        pump();
      };

      const result = await senders.send(url);

      expect(result.error).to.equal("protocol");
      expect(result.detail).to.include("(ERR_TOO_MANY_INTERIM_ANSWERS)");
      await until(() => sockets[0]?.destroyed, { what: "the end of the connection" });
    });

    it("that changes to another protocol is a failure, and ends the connection", async () => {
      onBytes = answerWith(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nxxx",
      );

      const result = await senders.send(url);

      expect([result.error, result.statusCode]).to.deep.equal(["http", 101]);
      await until(() => sockets[0]?.destroyed, { what: "the end of the connection" });
    });

    it("keeps the connection with trailers, chunks, and no body at all", async () => {
      const { post } = senders.open();
      const answers = [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-End\r\n\r\n2\r\nok\r\n0\r\nX-End: 1\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        ok,
      ];
      onBytes = (socket) => {
        socket.write(answers.shift() ?? ok);
        socket.once("data", (bytes) => onBytes(socket, bytes));
      };

      const bodies = [await post(url), await post(url), await post(url)].map(({ responseBody }) =>
        String(responseBody),
      );

      expect(bodies).to.deep.equal(["ok", "", "ok"]);
      expect(sockets).to.have.length(1);
    });

    it("of HTTP/1.0 ends with its connection", async () => {
      onBytes = (socket) => void socket.end("HTTP/1.0 200 OK\r\n\r\nto the end");

      const result = await senders.send(url);

      expect([result.error, result.responseBody?.toString()]).to.deep.equal([undefined, "to the end"]);
      expect(result.isResponseTruncated).to.equal(false);
    });

    for (const [what, answer, body] of [
      ["a body behind a 204", "HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\ndone", ""],
      ["more than it announced", `${ok}\0`, "ok"],
    ] as const) {
      it(`counts with ${what}, and ends the connection`, async () => {
        onBytes = answerWith(answer);

        const result = await senders.send(url);

        expect([result.error, String(result.responseBody)]).to.deep.equal([undefined, body]);
        expect(result.isResponseTruncated).to.equal(false);
        await until(() => sockets[0]?.destroyed, { what: "the end of the connection" });
      });
    }

    it("stops reading an answer in tiny chunks after a few hundred", async () => {
      const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
      onBytes = answerWith(`${head}${"1\r\na\r\n".repeat(10_000)}0\r\n\r\n`);

      const result = await senders.send(url);

      expect([result.error, result.statusCode, result.isResponseTruncated]).to.deep.equal([
        undefined,
        200,
        true,
      ]);
      expect(String(result.responseBody)).to.equal("a".repeat(257));
      await until(() => sockets[0]?.destroyed, { what: "the end of the connection" });
    });

    it("is read whole in few tiny chunks, and in many of 16 bytes", async () => {
      const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
      for (const [chunk, count] of [
        ["a", 256],
        ["a".repeat(16), 300],
      ] as const) {
        onBytes = answerWith(
          `${head}${`${chunk.length.toString(16)}\r\n${chunk}\r\n`.repeat(count)}0\r\n\r\n`,
        );

        const result = await senders.send(url);

        expect(result.isResponseTruncated).to.equal(false);
        expect(String(result.responseBody)).to.equal(chunk.repeat(count));
      }
    });

    const malformed: readonly [what: string, answer: string, error: string, status: number | undefined][] = [
      ["no HTTP", "nonsense\r\n\r\n", "protocol", undefined],
      [
        "a chunk that is none",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "protocol",
        200,
      ],
      [
        "two lengths",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        "protocol",
        undefined,
      ],
      ["a header with a control character", "HTTP/1.1 200 OK\r\nX: a\u0000b\r\n\r\n", "protocol", undefined],
      [
        "1.2 MB of line breaks before it",
        `${"\r\n".repeat(600_000)}HTTP/1.1 204 OK\r\n\r\n`,
        "protocol",
        undefined,
      ],
      ["an end in its head", "HTTP/1.1 200 OK\r\nX-Some", "reset", undefined],
    ];
    for (const [what, answer, error, status] of malformed) {
      it(`with ${what} is a failure: ${error}`, async () => {
        onBytes = (socket) => void socket.end(answer);

        const result = await senders.send(url);

        expect([result.error, result.statusCode]).to.deep.equal([error, status]);
      });
    }
  });

  it("leaves no timer, no socket and no listener behind after any end of an exchange", async () => {
    const receiver = await startReceiver();
    const warnings: Error[] = [];
    const note = (warning: Error): void => void warnings.push(warning);
    process.on("warning", note);
    const timers = timerCount();
    try {
      const { post, close } = senders.open({ timeoutMs: 60_000 });
      // More than the ten listeners of one kind that Node reports as a leak.
      for (let times = 0; times < 12; times++) await post(receiver.url);
      for (const answer of [reset, { status: 500 }, { body: Buffer.alloc(20_000) }]) {
        receiver.answer = answer;
        await post(receiver.url);
      }
      await post("http://closed.localhost:1/");
      receiver.answer = hang;
      await senders.send(receiver.url, { timeoutMs: 50 });
      expect(receiver.connectionCount()).to.be.lessThan(6);
      close();
      await until(() => receiver.openConnections() === 0, { what: "the end of the connections" });
      await until(() => timerCount() <= timers, { what: "the end of the timers" });
      expect(warnings).to.deep.equal([]);
    } finally {
      process.off("warning", note);
      await receiver.close();
    }
  });
});

function answerWith(...texts: readonly string[]): (socket: Socket) => void {
  return (socket) => {
    for (const text of texts) socket.write(text);
  };
}

function timerCount(): number {
  return process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;
}
