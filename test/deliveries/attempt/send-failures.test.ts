import { createServer, type Server, type Socket } from "node:net";
import { expect } from "chai";
import {
  dripBody,
  dripHead,
  hang,
  reply,
  reset,
  startReceiver,
  type Behaviour,
  type TestReceiver,
} from "../../support/receiver.ts";
import { createTestSenders, deliveryBytes, type TestSenders } from "../../support/senders.ts";
import { until } from "../../support/wait.ts";

describe("createSender, with failures", () => {
  let receiver: TestReceiver;
  let senders: TestSenders;

  beforeEach(async () => {
    receiver = await startReceiver();
    senders = createTestSenders();
  });
  afterEach(async () => {
    senders.close();
    await receiver.close();
  });

  describe("deadline", () => {
    const slow: readonly [what: string, answer: Behaviour, missed: string, status: number | undefined][] = [
      ["a receiver that never answers", hang, "answer", undefined],
      ["a head that drips for ever", dripHead(20), "answer", undefined],
      ["a 2xx body that drips for ever", dripBody(20), "end its answer", 200],
    ];
    for (const [what, answer, missed, status] of slow) {
      it(`ends ${what}, and destroys the connection`, async () => {
        let isClosed = false;
        receiver.answer = (request, response) => {
          response.once("close", () => (isClosed = true));
          answer(request, response);
        };

        const result = await senders.send(receiver.url, { timeoutMs: 200 });

        expect(result.error).to.equal("timeout");
        expect(result.detail).to.equal(`127.0.0.1:${receiver.port} did not ${missed} within 0.2 s.`);
        expect(result.statusCode).to.equal(status);
        expect(result.durationMs).to.be.within(190, 5000);
        await until(() => isClosed, { what: "the connection to be destroyed" });
      });
    }

    it("covers the look-up of the name", async () => {
      const result = await senders.send(`http://dead.example:${receiver.port}/`, {
        timeoutMs: 200,
        lookup: () => undefined,
      });

      expect(result).to.include({
        error: "timeout",
        detail: `dead.example:${receiver.port} did not accept a connection within 0.2 s.`,
      });
    });

    it("covers the TLS handshake", async () => {
      const { server, port } = await listen(() => {});
      try {
        const result = await senders.send(`https://127.0.0.1:${port}/`, { timeoutMs: 200 });

        expect(result.error).to.equal("timeout");
        expect(result.durationMs).to.be.within(190, 5000);
      } finally {
        server.close();
      }
    });

    it("also ends the wait for a connection, which is no attempt", async () => {
      receiver.answer = hang;
      const { post, postFor } = senders.open({ timeoutMs: 300, maxSockets: 1 });

      const sent = await Promise.all([postFor(1, receiver.url), postFor(1, receiver.url)]);

      expect(sent[0]).to.have.nested.property(
        "result.detail",
        `127.0.0.1:${receiver.port} did not answer within 0.3 s.`,
      );
      // On a busy machine, the first connection may become free shortly before the second attempt's
      // time limit.
      expect(JSON.stringify(sent[1])).to.match(
        /"kind":"unmade","reason":"No connection to the receiver was free\."|did not (accept a connection|answer within 0\.3 s)/,
      );
      receiver.answer = {};
      expect((await post(receiver.url)).statusCode).to.equal(200);
      expect(receiver.received.length).to.be.within(2, 3);
    });
  });

  describe("connection", () => {
    it("to a port without a listener is refused", async () => {
      const { port } = receiver;
      await receiver.close();

      const result = await senders.send(`http://127.0.0.1:${port}/hook?token=hidden`);

      expect(result.error).to.equal("refused");
      expect(result.detail).to.equal(`127.0.0.1:${port} refused the connection (ECONNREFUSED).`);
      expect(result).to.not.have.any.keys("statusCode", "responseHeaders", "responseBody");
    });

    it("that the receiver resets is a reset, and is not tried again when it was new", async () => {
      receiver.answer = reset;

      expect((await senders.send(receiver.url)).error).to.equal("reset");
      expect(receiver.received).to.have.length(1);
    });

    it("to a name without an address is a dns error", async () => {
      const { post } = senders.open({ allowedNetworks: [] });
      const url = "http://nonexistent.invalid/hook?token=hidden";
      const [ofAdmin, ofUser] = [await post(url, { isAdmin: true }), await post(url, { isAdmin: false })];

      expect([ofAdmin.error, ofUser.error]).to.deep.equal(["dns", "dns"]);
      expect(ofAdmin.detail).to.match(
        /^The name of nonexistent\.invalid could not be resolved: [a-z ]+ \([A-Z_]+\)\.$/,
      );
      expect(ofUser.detail).to.match(/^The name of nonexistent\.invalid [^?]+$/);
    });

    it("to a server that does not speak HTTP is a protocol error", async () => {
      const { server, port } = await listen((socket) => socket.end("220 mail ready\r\n"));
      try {
        expect((await senders.send(`http://127.0.0.1:${port}/`)).error).to.equal("protocol");
      } finally {
        server.close();
      }
    });

    it("that was kept and is now closed is replaced, within the same attempt", async () => {
      const { post } = senders.open();
      await post(receiver.url);
      // A receiver that has closed an idle connection answers with a reset.
      receiver.answer = (request, response) => {
        if (request.connection === 1) reset(request, response);
        else reply(response, { status: 204 });
      };

      const result = await post(receiver.url);

      expect(result.error).to.equal(undefined);
      expect(result.statusCode).to.equal(204);
      expect(receiver.received.map((request) => request.connection)).to.deep.equal([1, 1, 2]);
      expect(receiver.received[2]?.rawBody.equals(deliveryBytes)).to.equal(true);
    });

    it("that was kept is replaced by a new one, because the other kept ones may be closed too", async () => {
      receiver.answer = { delayMs: 20 };
      const { post } = senders.open();
      await Promise.all([post(receiver.url), post(receiver.url), post(receiver.url)]);
      receiver.answer = (request, response) => {
        if (request.connection <= 3) reset(request, response);
        else reply(response, { status: 204 });
      };

      const result = await post(receiver.url);

      expect(receiver.connectionCount()).to.equal(4);
      expect(result.statusCode).to.equal(204);
    });

    it("that was kept and is now closed is replaced only once", async () => {
      const { post } = senders.open();
      await post(receiver.url);
      receiver.answer = reset;

      expect((await post(receiver.url)).error).to.equal("reset");
      expect(receiver.received).to.have.length(3);
    });

    it("that was kept is not replaced once an answer has begun", async () => {
      const { post } = senders.open();
      await post(receiver.url);
      receiver.answer = (request, response) => {
        response.socket?.write("HTTP/1.1 200 OK\r\n", () => reset(request, response));
      };

      expect((await post(receiver.url)).error).to.equal("reset");
      expect(receiver.received).to.have.length(2);
    });

    it("is given up by close", async () => {
      const { post, close } = senders.open();
      await post(receiver.url);

      close();

      await post(receiver.url);
      expect(receiver.received.map((request) => request.connection)).to.deep.equal([1, 2]);
    });
  });
});

/** Starts a server of plain TCP on a free port. */
async function listen(onConnection: (socket: Socket) => void): Promise<{ server: Server; port: number }> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port.");
  return { server, port: address.port };
}
