import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { Duplex } from "node:stream";
import { createServer } from "node:tls";
import { expect } from "chai";
import { createSender, type SendResult } from "../../src/deliveries/attempt/send.ts";
import { createHandshakeRests, type HandshakeRests } from "../../src/outbound/handshake-rests.ts";
import { NoTurnError } from "../../src/outbound/outbound-errors.ts";
import { createFalseChain } from "../support/false-chain.ts";
import { createTestSenders } from "../support/senders.ts";

describe("createHandshakeRests", () => {
  let [nowMs, cpuMs] = [0, 0];
  const rests = createHandshakeRests({ patienceMs: 20, now: () => nowMs, cpuMs: () => cpuMs });

  function open(userId: number): Duplex {
    const socket = new Duplex({ read: () => undefined }).on("error", () => undefined);
    rests.watch(userId, socket);
    return socket;
  }

  function connect(userId: number): Duplex {
    const socket = open(userId);
    socket.emit("connect");
    return socket;
  }

  it("has a user rest nine times as long as a costly handshake took, and ends its others", async () => {
    const [costly, beside, another] = [connect(1), connect(1), connect(2)];
    cpuMs += 400;
    costly.emit("error", new Error("false"));
    cpuMs += 49;
    another.emit("secureConnect");

    expect([beside.destroyed, another.destroyed]).to.deep.equal([true, false]);
    expect(beside.errored).to.be.instanceOf(NoTurnError).with.property("waitedFor", "handshake");
    expect([await rests.pass(1), await rests.pass(2)]).to.deep.equal([false, true]);
    nowMs += 9 * 400 - 10;
    expect(await rests.pass(1)).to.equal(true);
  });

  it("counts no time of before the handshake, of one that succeeds, nor any behind it", async () => {
    cpuMs += 1_000;
    const socket = connect(3);
    cpuMs += 1_000;
    socket.emit("secureConnect");
    cpuMs += 1_000;
    socket.destroy();
    await once(socket, "close");

    expect(await rests.pass(3)).to.equal(true);
  });

  it("counts no time of a connection that could not be made", async () => {
    const socket = open(4);
    cpuMs += 1_000;
    socket.emit("error", new Error("refused"));

    expect(await rests.pass(4)).to.equal(true);
  });
});

const restsWith = (pass: HandshakeRests["pass"]): HandshakeRests => ({ pass, watch: () => undefined });

describe("createSender, while a user rests", () => {
  const senders = createTestSenders();
  const reason = "A TLS handshake with a receiver of the same user took too much time.";

  afterEach(() => senders.close());

  for (const scheme of ["https", "HTTPS"])
    it(`makes no attempt over ${scheme}`, async () => {
      const { postFor } = senders.open({ rests: restsWith(async () => false) });

      expect(await postFor(1, `${scheme}://127.0.0.1:1/`)).to.deep.equal({ kind: "unmade", reason });
    });

  it("gives the reason of a connection that was ended for the rest", async () => {
    const error = new NoTurnError("handshake");
    const { postFor } = senders.open({ lookup: (_name, _asker, answer) => setImmediate(answer, error, []) });

    expect(await postFor(1, "https://notes.example/")).to.deep.equal({ kind: "unmade", reason });
  });

  it("begins an attempt after the rest", async () => {
    let restedAt = Infinity;
    const rests = restsWith(async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      restedAt = Date.now();
      return true;
    });
    const { post } = senders.open({ rests });

    const { startedAt } = await post("https://127.0.0.1:1/");

    expect(startedAt.getTime()).to.be.at.least(restedAt);
  });
});

describe("a receiver with a chain of false certificates", () => {
  it("has its user's deliveries wait, and those of no other", async () => {
    const server = createServer(createFalseChain(60), (socket) => void socket.on("error", () => undefined));
    server.on("tlsClientError", () => undefined).listen(0, "127.0.0.1");
    await once(server, "listening");
    const networks = { allowedNetworks: ["127.0.0.0/8"], adminNetworks: [] };
    const sender = createSender({ ...networks, timeoutMs: 30_000, maxSockets: 8 });
    const { port } = server.address() as AddressInfo;
    const send = (id: number): Promise<SendResult> =>
      sender.send({ url: `https://127.0.0.1:${port}/`, headers: {}, body: [] }, { id, isAdmin: false });

    const first = await send(1);
    const ended: number[] = [];
    const others = [1, 2].map(async (id) => {
      const sent = await send(id);
      ended.push(id);
      return sent;
    });
    const [, other] = await Promise.all(others);
    sender.close();
    server.close();

    expect([first, other].map((sent) => sent?.kind === "made" && sent.result.error)).to.deep.equal([
      "tls",
      "tls",
    ]);
    expect(ended).to.deep.equal([2, 1]);
  });
});
