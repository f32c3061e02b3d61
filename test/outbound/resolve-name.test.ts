import { expect } from "chai";
import type { LookupAddress } from "node:dns";
import { createNameResolver, type ResolvedName, type ResolveName } from "../../src/outbound/resolve-name.ts";
import { parseHosts } from "../../src/outbound/name-files.ts";
import { startNameServer, type NameServer, type Told } from "../support/name-server.ts";

const [four, six]: readonly LookupAddress[] = [
  { address: "192.0.2.1", family: 4 },
  { address: "2001:db8::1", family: 6 },
];
const both = ["2001:db8::1", "192.0.2.1"];

describe("createNameResolver", () => {
  let server: NameServer;
  let other: NameServer;

  beforeEach(async () => {
    [server, other] = await Promise.all([startNameServer(), startNameServer()]);
  });
  afterEach(() => {
    server.close();
    other.close();
  });

  const resolver = ({
    search = [] as readonly string[],
    ndots = 1,
    hosts = "",
    limitMs = 10_000,
    servers = [server.address],
  } = {}): ResolveName =>
    createNameResolver({
      limitMs,
      servers,
      readFiles: async () => ({ hosts: parseHosts(hosts), search, ndots }),
    });

  it("returns both families, IPv4 first, and the shortest TTL", async () => {
    server.answer = () => both;
    server.ttlSeconds = 7;

    expect(await resolver()("a.example")).to.deep.equal({ addresses: [four, six], ttlMs: 7_000 });
    expect(server.asked).to.have.members(["A a.example", "AAAA a.example"]);
  });

  it("takes 16 addresses of each family, however many a name has", async () => {
    const places = Array.from({ length: 40 }, (_, index) => index + 1);
    server.answer = () => places.flatMap((place) => [`192.0.2.${place}`, `2001:db8::${place}`]);

    const { addresses } = await resolver()("a.example");

    expect(addresses.filter(({ family }) => family === 4)).to.have.length(16);
    expect(addresses.filter(({ family }) => family === 6)).to.have.length(16);
  });

  for (const told of ["NODATA", "NXDOMAIN", "SERVFAIL", "silence"] as const) {
    it(`accepts one family when the other is ${told}`, async () => {
      server.answer = (_name, type) => (type === "A" ? both : told);
      expect((await resolver()("a.example")).addresses).to.deep.equal([four]);

      server.answer = (_name, type) => (type === "A" ? told : both);
      expect((await resolver()("a.example")).addresses).to.deep.equal([six]);
    });
  }

  const failures: readonly [Told, string][] = [
    ["NXDOMAIN", "ENOTFOUND"],
    ["NODATA", "ENODATA"],
    ["SERVFAIL", "ESERVFAIL"],
  ];
  for (const [told, code] of failures) {
    it(`rejects with ${code} for ${String(told)}`, async () => {
      server.answer = () => told;

      expect(await failureOf(resolver()("a.example"))).to.equal(code);
    });
  }

  it("reports the failure of one family rather than that the other is empty", async () => {
    server.answer = (_name, type) => (type === "A" ? "NODATA" : "SERVFAIL");
    expect(await failureOf(resolver()("a.example"))).to.equal("ESERVFAIL");

    server.answer = (_name, type) => (type === "A" ? "SERVFAIL" : "NODATA");
    expect(await failureOf(resolver()("a.example"))).to.equal("ESERVFAIL");
  });

  it("gives up a server that never answers at the time limit", async () => {
    server.answer = () => "silence";

    expect(await failureOf(resolver({ limitMs: 100 })("a.example"))).to.equal("ETIMEOUT");
  });

  it("rejects with ECONNREFUSED where there is no server", async () => {
    const gone = await startNameServer();
    gone.close();

    expect(await failureOf(resolver({ servers: [gone.address] })("a.example"))).to.equal("ECONNREFUSED");
  });

  it("rejects names that are none", async () => {
    expect(await failureOf(resolver()(`${"a".repeat(64)}.example`))).to.equal("EBADNAME");
  });

  for (const told of ["SERVFAIL", "silence"] as const) {
    it(`asks the next server after ${told}`, async () => {
      server.answer = () => told;
      other.answer = () => both;

      const { addresses } = await resolver({ servers: [server.address, other.address] })("a.example");

      // On a busy machine, the answer of one family may arrive too late after the other.
      expect(addresses).to.not.have.length(0);
      expect([four, six]).to.deep.include.members([...addresses]);
      expect(server.asked).to.not.have.length(0);
    });
  }

  it("believes one server that a name does not exist", async () => {
    other.answer = () => both;

    expect(await failureOf(resolver({ servers: [server.address, other.address] })("a.example"))).to.equal(
      "ENOTFOUND",
    );
    expect(other.asked).to.deep.equal([]);
  });

  it("tries a short name in the search list, after failures there", async () => {
    server.answer = (name) =>
      name === "receiver.b.example" ? both : name.includes(".a.") ? "SERVFAIL" : "NXDOMAIN";
    const resolve = resolver({ search: ["a.example", "none.example", "b.example", "c.example"] });

    expect((await resolve("receiver")).addresses).to.deep.equal([four, six]);
    expect(server.asked.filter((question) => question.startsWith("A "))).to.deep.equal([
      "A receiver.a.example",
      "A receiver.none.example",
      "A receiver.b.example",
    ]);
  });

  it("tries no other form of a name while no server answers", async () => {
    server.answer = () => "silence";

    await failureOf(resolver({ search: ["a.example", "b.example"], limitMs: 100 })("receiver"));

    expect(new Set(server.asked)).to.deep.equal(new Set(["A receiver.a.example", "AAAA receiver.a.example"]));
  });

  it("reports the failure of the name as given", async () => {
    server.answer = (name) => (name === "receiver" ? "SERVFAIL" : "NXDOMAIN");

    expect(await failureOf(resolver({ search: ["a.example"] })("receiver"))).to.equal("ESERVFAIL");
    expect(await failureOf(resolver({ search: ["a.example"], ndots: 0 })("receiver"))).to.equal("ESERVFAIL");
  });

  it("asks no server for a name in /etc/hosts, in any case", async () => {
    const resolve = resolver({ hosts: "192.0.2.1 Receiver\n2001:db8::1 receiver\nnonsense receiver\n" });

    expect((await resolve("receiver")).addresses).to.deep.equal([four, six]);
    expect((await resolve("RECEIVER.")).addresses).to.deep.equal([four, six]);
    expect(server.asked).to.deep.equal([]);
  });

  for (const name of ["localhost", "a.localhost", "localhost."]) {
    it(`resolves ${name} without a server or a file`, async () => {
      expect((await resolver()(name)).addresses.map(({ address }) => address)).to.deep.equal([
        "127.0.0.1",
        "::1",
      ]);
      expect(server.asked).to.deep.equal([]);
    });
  }

  it("reads the machine's own files by default", async () => {
    expect((await createNameResolver()("localhost")).addresses).to.deep.include({
      address: "127.0.0.1",
      family: 4,
    });
  });
});

async function failureOf(found: Promise<ResolvedName>): Promise<unknown> {
  try {
    return await found;
  } catch (error) {
    return (error as { readonly code?: unknown }).code;
  }
}
