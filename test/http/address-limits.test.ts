import { EventEmitter } from "node:events";
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { expect } from "chai";
import { limitConnections, noteUser, type ConnectionLimit } from "../../src/http/address-limits.ts";
import { createClientAddresses } from "../../src/http/client-address.ts";

/** A connection from an address that this machine does not have. */
class Connection extends EventEmitter {
  readonly remoteAddress: string;
  isClosed = false;

  constructor(remoteAddress: string) {
    super();
    this.remoteAddress = remoteAddress;
  }

  destroy(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.emit("close");
  }
}

const areClosed = (...connections: readonly Connection[]): readonly boolean[] =>
  connections.map(({ isClosed }) => isClosed);

describe("limitConnections", () => {
  let server: EventEmitter;
  let limit: ConnectionLimit;

  beforeEach(() => {
    server = new EventEmitter();
    const addresses = createClientAddresses(["10.0.0.0/8", "2001:db8:9::1/128"]);
    limit = limitConnections(server as Server, { limit: 2, addresses, log: undefined });
  });

  function connect(address: string): Connection {
    const connection = new Connection(address);
    server.emit("connection", connection);
    return connection;
  }

  it("counts the connections of an IPv6 client by its /64", () => {
    const own = ["2001:db8::1", "2001:db8::2", "2001:db8::3"].map(connect);
    const other = connect("2001:db8:0:1::1");

    expect(areClosed(...own, other)).to.deep.equal([false, false, true, false]);
  });

  it("counts the open ones, without those that were closed", () => {
    const [first, second] = [connect("203.0.113.9"), connect("203.0.113.9")];
    first.destroy();
    const third = connect("203.0.113.9");
    const fourth = connect("203.0.113.9");
    second.destroy();
    third.destroy();

    expect(fourth.isClosed).to.equal(true);
    expect(areClosed(connect("203.0.113.9"), connect("203.0.113.9"), connect("203.0.113.9"))).to.deep.equal([
      false,
      false,
      true,
    ]);
  });

  it("blocks the whole /64 of a harmful IPv6 client, and no other", () => {
    const [harmful, beside] = [connect("2001:db8::1"), connect("2001:db8::2")];
    const other = connect("2001:db8:0:1::1");
    limit.shutOut(harmful as unknown as Socket, "it did harm");

    const later = connect("2001:db8::3");

    expect(areClosed(harmful, beside, other, later)).to.deep.equal([true, true, false, true]);
    expect(connect("2001:db8:0:1::2").isClosed).to.equal(false);
  });

  it("lets an IPv6 /48 have twice as many as an address, over all its networks", () => {
    const own = [0, 0, 1, 1, 2].map((network) => connect(`2001:db8:0:${network}::1`));
    expect(areClosed(...own)).to.deep.equal([false, false, false, false, true]);
    expect(connect("2001:db8:1::1").isClosed).to.equal(false);

    own[0]?.destroy();

    expect(areClosed(connect("2001:db8:0:2::1"), connect("2001:db8:0:3::1"))).to.deep.equal([false, true]);
  });

  it("shuts out an IPv6 /48 after four of its networks, and no other", () => {
    const harm = (network: number): void => {
      limit.shutOut(connect(`2001:db8:0:${network}::1`) as unknown as Socket, "it did harm");
    };
    for (const network of [1, 2, 3]) harm(network);
    const beside = connect("2001:db8:0:5::1");
    harm(4);

    const later = ["2001:db8:0:6::1", "2001:db8:1::1"].map(connect);

    expect(areClosed(beside, ...later)).to.deep.equal([true, true, false]);
  });

  it("does not count networks that were shut out more than a minute ago", () => {
    const now = performance.now.bind(performance);
    try {
      for (const network of [1, 2, 3, 4]) {
        if (network === 4) performance.now = () => now() + 61_000;
        limit.shutOut(connect(`2001:db8:0:${network}::1`) as unknown as Socket, "it did harm");
      }

      expect(connect("2001:db8:0:5::1").isClosed).to.equal(false);
    } finally {
      performance.now = now;
    }
  });

  it("keeps the address's open connections of users who did no harm", () => {
    const [unknown, other] = [connect("203.0.113.9"), connect("203.0.113.9")];
    noteUser(other as unknown as Socket, 2);
    limit.shutOut(unknown as unknown as Socket, "it did harm");
    expect(areClosed(unknown, other, connect("203.0.113.9"))).to.deep.equal([true, false, true]);

    const [harmful, same] = [connect("203.0.113.8"), connect("203.0.113.8")];
    for (const one of [harmful, same]) noteUser(one as unknown as Socket, 1);
    limit.shutOut(harmful as unknown as Socket, "it did harm");
    expect(areClosed(harmful, same)).to.deep.equal([true, true]);

    const [known, unauthenticated] = [connect("203.0.113.7"), connect("203.0.113.7")];
    noteUser(known as unknown as Socket, 1);
    limit.shutOut(known as unknown as Socket, "it did harm");
    expect(unauthenticated.isClosed).to.equal(true);
  });

  it("never shuts out a trusted proxy, but closes its one connection", () => {
    const [harmful, beside] = [connect("10.0.0.1"), connect("10.0.0.1")];

    limit.shutOut(harmful as unknown as Socket, "it did harm");

    expect(areClosed(harmful, beside, connect("10.0.0.1"))).to.deep.equal([true, false, false]);

    limit.shutOut(connect("2001:db8:9::1") as unknown as Socket, "it did harm");
    expect(connect("2001:db8:9::2").isClosed).to.equal(false);
  });
});
