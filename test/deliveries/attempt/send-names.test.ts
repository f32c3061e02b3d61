import { once } from "node:events";
import { createServer } from "node:net";
import { expect } from "chai";
import { createNameResolver } from "../../../src/outbound/resolve-name.ts";
import type { SendResult } from "../../../src/deliveries/attempt/send.ts";
import { createSharedLookup, type AddressLookup } from "../../../src/outbound/shared-lookup.ts";
import { startNameServer, type NameServer } from "../../support/name-server.ts";
import { startReceiver, type TestReceiver } from "../../support/receiver.ts";
import { createTestSenders, type TestSenders } from "../../support/senders.ts";
import { until } from "../../support/wait.ts";

describe("createSender, with names", () => {
  let receiver: TestReceiver;
  let nameServer: NameServer;
  let senders: TestSenders;

  beforeEach(async () => {
    [receiver, nameServer] = await Promise.all([startReceiver(), startNameServer()]);
    nameServer.answer = (name) => (name.startsWith("dead") ? "silence" : ["127.0.0.1"]);
    senders = createTestSenders();
  });
  afterEach(async () => {
    senders.close();
    nameServer.close();
    await receiver.close();
  });

  const urlOf = (name: string): string => `http://${name}:${receiver.port}/`;
  const lookupWith = (options: { limitMs: number; patienceMs: number; perUser?: number }): AddressLookup =>
    createSharedLookup({
      ...options,
      resolve: createNameResolver({
        limitMs: options.limitMs,
        servers: [nameServer.address],
        readFiles: async () => ({ hosts: new Map(), search: [], ndots: 1 }),
      }),
    });

  it("delivers to others while sixty names of one user wait for a dead server", async () => {
    const lookup = lookupWith({ limitMs: 60_000, patienceMs: 60_000 });
    const { postFor } = senders.open({ lookup, timeoutMs: 60_000, maxSockets: 64 });
    const ended: SendResult[] = [];
    const names = Array.from({ length: 60 }, (_, index) => `dead-${index}.example`);
    const theirs = names.map(async (name) => ended.push(await postFor(1, urlOf(name))));
    await until(() => new Set(nameServer.asked).size === 16, { what: "the look-ups of one user" });

    expect(await postFor(2, urlOf("alive.example"))).to.have.nested.property("result.statusCode", 200);

    expect(ended).to.deep.equal([]);
    // Pending look-ups are sent again.
    nameServer.answer = () => "NXDOMAIN";
    await Promise.all(theirs);
    expect(ended.map((sent) => sent.kind === "made" && sent.result.error)).to.deep.equal(
      Array(60).fill("dns"),
    );
  });

  it("makes no attempt of a delivery that waits too long for its user's other names", async () => {
    const lookup = lookupWith({ limitMs: 300, patienceMs: 50, perUser: 1 });
    const { postFor } = senders.open({ lookup });

    const [first, second] = await Promise.all(
      ["dead-1.example", "alive.example"].map((name) => postFor(1, urlOf(name))),
    );

    expect(first).to.have.nested.property(
      "result.detail",
      `The name of dead-1.example:${receiver.port} could not be resolved: no name server answered in time (ETIMEOUT).`,
    );
    expect(second).to.deep.equal({
      kind: "unmade",
      reason: "Other names of the same user were being looked up.",
    });
    expect(receiver.received).to.deep.equal([]);
  });

  it("makes no attempt of a delivery whose time limit passes during the wait", async () => {
    const lookup = lookupWith({ limitMs: 1_000, patienceMs: 60_000, perUser: 1 });
    const { postFor } = senders.open({ lookup, timeoutMs: 100 });

    const [first, second] = await Promise.all(
      ["dead-1.example", "alive.example"].map((name) => postFor(1, urlOf(name))),
    );

    expect(first).to.have.nested.property("result.error", "timeout");
    expect(second).to.have.property("kind", "unmade");
    // The running look-up continues to its end, and none follows.
    const isDead = async (): Promise<boolean> => {
      const sent = await postFor(1, urlOf("dead-1.example"));
      return sent.kind === "made" && sent.result.error === "dns";
    };
    await until(isDead, { what: "the end of the look-up" });
    await until(async () => (await postFor(1, urlOf("last.example"))).kind === "made", { what: "a turn" });
    expect(nameServer.asked.filter((question) => question.includes("alive"))).to.deep.equal([]);
  });

  it("connects to the allowed addresses of a name only", async () => {
    let wrongConnections = 0;
    const wrong = createServer(() => (wrongConnections += 1)).listen(receiver.port, "127.0.0.2");
    await once(wrong, "listening");
    const options = {
      lookup: lookupWith({ limitMs: 5_000, patienceMs: 5_000 }),
      allowedNetworks: ["127.0.0.1/32"],
    };
    nameServer.answer = (name) =>
      name === "mixed.example" ? ["127.0.0.2", "127.0.0.1", "fd00::1"] : ["127.0.0.2"];
    try {
      expect((await senders.send(urlOf("mixed.example"), options)).statusCode).to.equal(200);
      expect((await senders.send(urlOf("loopback.example"), options)).detail).to.equal(
        `The name of ${new URL(urlOf("loopback.example")).host} has no address that webhooks may be sent to: there is no such name, or its addresses are outside the allowed networks.`,
      );
      expect(wrongConnections).to.equal(0);
    } finally {
      wrong.close();
    }
  });
});
