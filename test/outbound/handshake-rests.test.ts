import { once } from "node:events";
import { connect, createServer as createTcpServer, type AddressInfo } from "node:net";
import { Duplex } from "node:stream";
import { createServer } from "node:tls";
import { expect } from "chai";
import { createSender, type SendResult } from "../../src/deliveries/attempt/send.ts";
import { createHandshakeRests, type HandshakeRests } from "../../src/outbound/handshake-rests.ts";
import { NoTurnError } from "../../src/outbound/outbound-errors.ts";
import { createFalseChain } from "../support/false-chain.ts";
import { createTestSenders } from "../support/senders.ts";
import { until } from "../support/wait.ts";

const read = (socket: Duplex, bytesRead: number): void =>
  void Object.assign(socket, { _handle: { _parent: { bytesRead } } });

describe("createHandshakeRests", () => {
  let [nowMs, cpuMs] = [0, 0];
  const rests = createHandshakeRests({ patienceMs: 20, now: () => nowMs, cpuMs: () => cpuMs });

  function open(userId: number): Duplex {
    const socket = new Duplex({ read: () => undefined }).on("error", () => undefined);
    rests.watch(userId, socket);
    return socket;
  }

  function begin(userId: number): Duplex {
    const socket = open(userId);
    socket.emit("connect");
    return socket;
  }

  it("has a user rest nine times as long as a costly handshake took, and ends its others", async () => {
    const [costly, beside, another] = [begin(1), begin(1), begin(2)];
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
    const socket = begin(3);
    cpuMs += 1_000;
    socket.emit("secureConnect");
    cpuMs += 1_000;
    socket.destroy();
    await once(socket, "close");

    expect(await rests.pass(3)).to.equal(true);
  });

  it("has a user rest beside a handshake that read in a costly turn, until it succeeds", async () => {
    const [costly, beside, silent] = [begin(5), begin(5), begin(6)];
    read(costly, 9_000);
    cpuMs += 400;
    await until(async () => !(await rests.pass(5)), { what: "a rest" });

    expect([costly.destroyed, beside.destroyed, silent.destroyed]).to.deep.equal([false, true, false]);
    expect(await rests.pass(6)).to.equal(true);
    costly.emit("secureConnect");
    expect(await rests.pass(5)).to.equal(true);
  });

  it("does not end the rest of a user with two such handshakes when one of them succeeds", async () => {
    const [costly, other] = [begin(9), begin(9)];
    for (const socket of [costly, other]) read(socket, 9_000);
    cpuMs += 400;
    await until(async () => !(await rests.pass(9)), { what: "a rest" });
    other.emit("secureConnect");

    expect(await rests.pass(9)).to.equal(false);
  });

  it("finds a handshake that read in a costly turn also when another one ends in it", async () => {
    const [costly, other] = [begin(7), begin(8)];
    read(costly, 9_000);
    cpuMs += 400;
    other.emit("secureConnect");

    expect([await rests.pass(7), await rests.pass(8)]).to.deep.equal([false, true]);
    costly.destroy();
    await once(costly, "close");
    expect(await rests.pass(7)).to.equal(false);
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

describe("a receiver that withholds the end of a handshake after a chain of false certificates", () => {
  it("has its user rest, and no other", async () => {
    const server = createServer(createFalseChain(60)).on("tlsClientError", () => undefined);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port: behind } = server.address() as AddressInfo;
    const withholding = createTcpServer((client) => {
      const there = connect(behind, "127.0.0.1");
      let held = Buffer.alloc(0);
      client.pipe(there).on("data", (bytes: Buffer) => {
        held = Buffer.concat([held, bytes]);
        client.write(held.subarray(0, -100));
        held = held.subarray(-100);
      });
      for (const [socket, other] of [[client, there] as const, [there, client] as const])
        socket.on("error", () => undefined).on("close", () => other.destroy());
    });
    withholding.listen(0, "127.0.0.1");
    await once(withholding, "listening");
    const rests = createHandshakeRests({ patienceMs: 0 });
    const senders = createTestSenders();
    const { port } = withholding.address() as AddressInfo;
    const sent = senders.open({ rests }).postFor(1, `https://127.0.0.1:${port}/`);
    try {
      await until(async () => !(await rests.pass(1)), { what: "a rest" });
      expect(await rests.pass(2)).to.equal(true);
    } finally {
      withholding.close();
      server.close();
      senders.close();
      await sent;
    }
  });
});
