import { expect } from "chai";
import { createTargetPolicy, perUser } from "../../src/outbound/targets.ts";

const strict = createTargetPolicy([]);

/** Addresses as a resolver or a socket spells them. */
const refusedAddresses = {
  private: [
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "100.100.100.200",
    "fd00:ec2::254",
    "fc00::1",
  ],
  loopback: ["127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1"],
  "link-local": ["169.254.169.254", "169.254.0.1", "fe80::1", "fe80::1%eth0", "::ffff:169.254.169.254"],
  "cloud metadata": ["168.63.129.16", "::ffff:168.63.129.16", "::ffff:a83f:8110"],
  multicast: ["224.0.0.1", "239.255.255.255", "ff02::1"],
  reserved: [
    "0.0.0.0",
    "0.1.2.3",
    "::",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "240.0.0.1",
    "255.255.255.255",
    "::127.0.0.1",
    "::7f00:1",
    "::8.8.8.8",
    "64:ff9b::7f00:1",
    "64:ff9b::808:808",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2001::1",
    "2001:db8::1",
    "2001:2::1",
    "2001:20::1",
    "3fff::1",
    "5f00::1",
    "100::1",
    "fec0::1",
    "4000::1",
    "a000::1",
    "::ffff:0:127.0.0.1",
    "",
    "localhost",
    "127.1",
    "8.8.8.8/0",
  ],
};

describe("createTargetPolicy: refusalOf", () => {
  for (const [kind, addresses] of Object.entries(refusedAddresses)) {
    for (const address of addresses) {
      it(`refuses "${address}" as ${kind}`, () => {
        expect(strict.refusalOf(address)).to.equal(
          `a ${kind} address, which is outside the allowed networks`,
        );
      });
    }
  }

  for (const address of [
    "8.8.8.8",
    "168.63.129.15",
    "168.63.129.17",
    "1.1.1.1",
    "172.32.0.1",
    "2606:4700::1111",
    "2a00:1450::1",
    "::ffff:8.8.8.8",
  ]) {
    it(`lets ${address} pass`, () => {
      expect(strict.refusalOf(address)).to.equal(undefined);
    });
  }

  it("accepts addresses in an allowed network, mapped into IPv6 too, and none outside it", () => {
    const policy = createTargetPolicy(["10.1.0.0/16", "::1/128", "64:ff9b::/96"]);

    const passed = ["10.1.0.0", "10.1.255.255", "::ffff:10.1.2.3", "::1", "64:ff9b::808:808", "8.8.8.8"];
    const refused = ["10.0.255.255", "10.2.0.0", "::ffff:10.2.0.0", "127.0.0.1", "::2", "::10.1.0.1"];
    expect(passed.filter((address) => policy.refusalOf(address) !== undefined)).to.deep.equal([]);
    expect(refused.filter((address) => policy.refusalOf(address) === undefined)).to.deep.equal([]);
  });

  it("judges the IPv4 host behind the prefix of NAT64, unless a network names it", () => {
    const policy = createTargetPolicy(["64:ff9b::/96", "10.1.0.0/16", "64:ff9b::ac10:0/112"]);

    const passed = ["64:ff9b::808:808", "64:ff9b::a01:1", "64:ff9b::ac10:1"];
    const refused = ["64:ff9b::7f00:1", "64:ff9b::a02:1", "64:ff9b::a9fe:a9fe", "64:ff9b::a83f:8110"];
    expect(passed.filter((address) => policy.refusalOf(address) !== undefined)).to.deep.equal([]);
    expect(refused.filter((address) => policy.refusalOf(address) === undefined)).to.deep.equal([]);
    expect(policy.refusalOf("64:ff9b::7f00:1")).to.contain("a loopback address");
  });

  it("accepts an address of cloud metadata when a network includes it", () => {
    expect(createTargetPolicy(["168.63.129.16/32"]).refusalOf("168.63.129.16")).to.equal(undefined);
  });

  it("throws on text that is not a network", () => {
    expect(() => createTargetPolicy(["10.0.0.0/33"])).to.throw();
    expect(() => createTargetPolicy(["intranet"])).to.throw();
  });
});

/** Spellings that evade checks of the raw text. */
const refusedUrls: Readonly<Record<string, readonly string[]>> = {
  "point to a loopback address": [
    "http://127.0.0.1/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.1/",
    "http://0177.0.0.1/",
    "http://127.0.0.1./",
    "http://127.0.0.1:6379/",
    "https://[::1]:8443/hook",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http:127.0.0.1",
    "http:\\\\127.0.0.1\\hook",
    "http://127\u30020\u30020\u30021/",
    "http://\uff11\uff12\uff17.0.0.1/",
    "http://127.0.0.1\t/",
    "http://localhost/",
    "http://LOCALHOST:8080/",
    "http://localhost./",
    "http://api.localhost/",
    "http://api.localhost./",
  ],
  "point to a cloud metadata address": ["http://168.63.129.16/machine", "http://[::ffff:168.63.129.16]/"],
  "point to a link-local address": ["http://169.254.169.254/latest/meta-data/", "http://[fe80::1]/"],
  "point to a private address": ["http://10.0.0.1/", "http://192.168.0.1:22/", "http://[fd00:ec2::254]/"],
  "point to a reserved address": [
    "http://0/",
    "http://0.0.0.0:5432/",
    "http://[::]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:53aa:64c::1]/",
    "http://4294967295/",
  ],
};

describe("createTargetPolicy: refusalOfUrl", () => {
  for (const [fault, urls] of Object.entries(refusedUrls)) {
    for (const url of urls) {
      it(`refuses ${JSON.stringify(url)}, which must not ${fault}`, () => {
        expect(strict.refusalOfUrl(url)).to.equal(
          `The url must not ${fault}, which is outside the allowed networks.`,
        );
      });
    }
  }

  const invalid = [
    "",
    "example.com/hook",
    "//example.com",
    "http://",
    "http://exa mple.com/",
    "http://[fe80::1%25eth0]/",
    "http://256.256.256.256/",
    "http://example.com:99999/",
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://example.com/",
    "unix:/run/docker.sock:/info",
    "javascript:alert(1)",
    "data:text/plain,a",
  ];
  for (const url of invalid) {
    it(`refuses ${JSON.stringify(url)}, which is no http or https URL`, () => {
      expect(strict.refusalOfUrl(url)).to.equal("The url must be a valid http or https URL.");
    });
  }

  for (const url of [
    "http://good@127.0.0.1/",
    "https://user:word@example.com/",
    "https://:word@example.com/",
    "http://good.com:80@127.0.0.1/",
  ]) {
    it(`refuses the credentials in ${url}`, () => {
      expect(strict.refusalOfUrl(url)).to.equal("The url must not contain a user name or a password.");
    });
  }

  it("accepts at most 2048 characters", () => {
    const start = "https://example.com/";

    expect(strict.refusalOfUrl(start.padEnd(2048, "a"))).to.equal(undefined);
    expect(strict.refusalOfUrl(start.padEnd(2049, "a"))).to.equal(
      "The url must not be longer than 2048 characters.",
    );
  });

  const passed = [
    "https://example.com/hook?a=b#c",
    "http://a#@127.0.0.1/",
    "http://8.8.8.8/",
    "https://[2606:4700::1111]/",
    "https://müller.example/",
    "http://notlocalhost/",
    "http://localhost.example.com/",
    // Checked by its addresses, at the connection.
    "http://metadata.google.internal/",
  ];
  for (const url of passed) {
    it(`lets ${url} pass`, () => {
      expect(strict.refusalOfUrl(url)).to.equal(undefined);
    });
  }

  it("accepts localhost when either loopback address is allowed", () => {
    for (const network of ["127.0.0.0/8", "::1/128"])
      expect(createTargetPolicy([network]).refusalOfUrl("http://localhost:8080/")).to.equal(undefined);
  });
});

describe("perUser", () => {
  it("gives admins more networks than others", () => {
    const networksFor = perUser(
      { allowedNetworks: ["10.0.0.0/8"], adminNetworks: ["127.0.0.0/8"] },
      asTheyAre,
    );

    expect(networksFor({ isAdmin: false })).to.deep.equal(["10.0.0.0/8"]);
    expect(networksFor({ isAdmin: true })).to.deep.equal(["10.0.0.0/8", "127.0.0.0/8"]);
  });

  it("gives all users the same when admins have no more", () => {
    const networksFor = perUser({ allowedNetworks: ["10.0.0.0/8"], adminNetworks: [] }, asTheyAre);

    expect(networksFor({ isAdmin: true })).to.equal(networksFor({ isAdmin: false }));
  });
});

const asTheyAre = (networks: readonly string[]): readonly string[] => networks;
