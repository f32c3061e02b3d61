import { expect } from "chai";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { candidatesOf, createNameFiles, parseHosts, parseResolvConf } from "../../src/outbound/name-files.ts";

describe("parseHosts", () => {
  it("returns the addresses of each name, in any case, in their order", () => {
    const hosts = parseHosts(
      "127.0.0.1 localhost\n# 192.0.2.9 commented\n\n::1\tlocalhost ip6-localhost # loopback\n  192.0.2.1  Receiver receiver.example\r\n192.0.2.2\n",
    );

    expect([...hosts]).to.deep.equal([
      ["localhost", ["127.0.0.1", "::1"]],
      ["ip6-localhost", ["::1"]],
      ["receiver", ["192.0.2.1"]],
      ["receiver.example", ["192.0.2.1"]],
    ]);
  });
});

describe("parseResolvConf", () => {
  const cases: readonly [what: string, text: string, host: string, search: string[], ndots: number][] = [
    ["nothing", "", "pod", [], 1],
    [
      "the machine's own domain without a search list",
      "nameserver 192.0.2.53\n",
      "a.b.example",
      ["b.example"],
      1,
    ],
    [
      "what Kubernetes writes",
      "search shop.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n",
      "pod",
      ["shop.svc.cluster.local", "svc.cluster.local", "cluster.local"],
      5,
    ],
    [
      "the last of search and domain",
      "search a.example b.example\ndomain c.example d.example\n",
      "x.y",
      ["c.example"],
      1,
    ],
    [
      "the last search of several, tabs, a trailing dot",
      "search a.example\nsearch\tb.example. c.example\n",
      "",
      ["b.example", "c.example"],
      1,
    ],
    ["no domain for the root", "search .\n", "x.y", [""], 1],
    ["no comments", "#search a.example\n; options ndots:9\n", "", [], 1],
    ["at most 15 dots, and other options", "options timeout:1 ndots:99 rotate\n", "", [], 15],
  ];
  for (const [what, text, host, search, ndots] of cases) {
    it(`reads ${what}`, () => {
      expect(parseResolvConf(text, host)).to.deep.equal({ search, ndots });
    });
  }
});

describe("candidatesOf", () => {
  const search = ["shop.svc.cluster.local", "cluster.local"];
  const cases: readonly [name: string, ndots: number, candidates: string[]][] = [
    ["receiver", 1, ["receiver.shop.svc.cluster.local", "receiver.cluster.local", "receiver"]],
    [
      "receiver.shop",
      5,
      ["receiver.shop.shop.svc.cluster.local", "receiver.shop.cluster.local", "receiver.shop"],
    ],
    [
      "hooks.example",
      1,
      ["hooks.example", "hooks.example.shop.svc.cluster.local", "hooks.example.cluster.local"],
    ],
    ["receiver", 0, ["receiver", "receiver.shop.svc.cluster.local", "receiver.cluster.local"]],
    ["hooks.example.", 5, ["hooks.example"]],
  ];
  for (const [name, ndots, candidates] of cases) {
    it(`tries ${name} with ndots:${ndots} as ${candidates.join(", ")}`, () => {
      expect(candidatesOf(name, { search, ndots })).to.deep.equal(candidates);
    });
  }

  it("tries a name once when the root is in the list", () => {
    expect(candidatesOf("receiver", { search: ["", "a.example"], ndots: 1 })).to.deep.equal([
      "receiver",
      "receiver.a.example",
    ]);
  });
});

describe("createNameFiles", () => {
  it("reads the files again after five seconds, and treats an unreadable one as empty", async () => {
    const folder = await mkdtemp(join(tmpdir(), "svc-names-"));
    const hosts = join(folder, "hosts");
    let now = 0;
    const read = createNameFiles({ hosts, resolvConf: join(folder, "none"), now: () => now });
    const addressOf = async (): Promise<unknown> => (await read()).hosts.get("receiver")?.[0];
    try {
      expect(await addressOf()).to.equal(undefined);
      await writeFile(hosts, "192.0.2.1 receiver\n");
      now = 4_999;
      expect(await addressOf()).to.equal(undefined);
      now = 5_000;
      expect(await addressOf()).to.equal("192.0.2.1");
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
