import { expect } from "chai";
import type { ApiContext } from "../../src/http/state.ts";
import { createUrlOf, openHostsWarning } from "../../src/http/url-of.ts";

const context = (
  host: string,
  path = "/svc-api/resources/orders",
  querystring = "page=2&x=%zz",
): ApiContext =>
  ({
    protocol: "http",
    host,
    path,
    querystring,
    req: { socket: { localPort: 8080 } },
  }) as unknown as ApiContext;

describe("createUrlOf", () => {
  for (const [what, host, publicUrl, href] of [
    [
      "the Host header",
      "api.example.com:81",
      undefined,
      "http://api.example.com:81/svc-api/resources/orders?page=2&x=%25zz",
    ],
    ["an IPv6 host", "[::1]:81", undefined, "http://[::1]:81/svc-api/resources/orders?page=2&x=%25zz"],
    [
      "the public URL",
      "internal",
      "https://api.example.com",
      "https://api.example.com/svc-api/resources/orders?page=2&x=%25zz",
    ],
    [
      "the local port without a host",
      "",
      undefined,
      "http://localhost:8080/svc-api/resources/orders?page=2&x=%25zz",
    ],
    [
      "the local port with a host that is none",
      "evil.com/x?",
      undefined,
      "http://localhost:8080/svc-api/resources/orders?page=2&x=%25zz",
    ],
    [
      "the local port with an impossible port",
      "a:99999",
      undefined,
      "http://localhost:8080/svc-api/resources/orders?page=2&x=%25zz",
    ],
  ] as const) {
    it(`takes the origin from ${what}`, () => {
      expect(createUrlOf({ publicUrl, hosts: [] })(context(host)).href).to.equal(href);
    });
  }

  it("encodes the brackets of a filter, which are invalid in the query of a URI", () => {
    const { href } = createUrlOf({ publicUrl: undefined, hosts: [] })(
      context("a", "/orders", "filter[or][0][status]=open&filter%5Bid%5D=1"),
    );

    expect(href).to.equal("http://a/orders?filter%5Bor%5D%5B0%5D%5Bstatus%5D=open&filter%5Bid%5D=1");
  });

  it("encodes other characters that clients send raw and that are invalid in a URI", () => {
    const { href } = createUrlOf({ publicUrl: undefined, hosts: [] })(
      context("a", "/orders", "search={a|b\\^`"),
    );

    expect(href).to.equal("http://a/orders?search=%7Ba%7Cb%5C%5E%60");
  });

  it("keeps the brackets of a query that would exceed the server's limit when encoded", () => {
    const query = `filter[note]=${"[".repeat(5_000)}`;
    const { search } = createUrlOf({ publicUrl: undefined, hosts: [] })(context("a", "/orders", query));

    expect(search).to.equal(`?${query}`);
  });

  it("keeps the origin when the path begins with two slashes", () => {
    for (const hosts of [[], ["good.com"]]) {
      const urlOf = createUrlOf({ publicUrl: undefined, hosts });

      expect(urlOf(context("good.com", "//evil.com/x")).origin).to.equal("http://good.com");
    }
  });

  describe("with hosts", () => {
    const hosts = ["api.example.com", "api.example.org:8443", "[::1]", "other.example.com"];
    for (const [host, origin] of [
      ["api.example.com", "http://api.example.com"],
      ["API.Example.COM", "http://api.example.com"],
      ["api.example.com:81", "http://api.example.com:81"],
      ["api.example.org:8443", "http://api.example.org:8443"],
      ["[::1]", "http://[::1]"],
      ["[::1]:8080", "http://[::1]:8080"],
      ["other.example.com:80", "http://other.example.com"],
      // Another host gets the first one.
      ["api.example.org", "http://api.example.com"],
      ["api.example.org:8080", "http://api.example.com"],
      ["evil.com", "http://api.example.com"],
      ["api.example.com.evil.com", "http://api.example.com"],
      ["evil-api.example.com", "http://api.example.com"],
      ["api.example.com:81:82", "http://api.example.com"],
      ["api.example.com:99999", "http://api.example.com"],
      ["evil.com#api.example.com", "http://api.example.com"],
      ["evil.com/api.example.com", "http://api.example.com"],
      ["", "http://api.example.com"],
    ] as const)
      it(`begins the URL of a request to "${host}" with ${origin}`, () => {
        expect(createUrlOf({ publicUrl: undefined, hosts })(context(host)).origin).to.equal(origin);
      });

    it("keeps the request's protocol, path and query for the first one, with its port", () => {
      const request = { ...context("evil.com"), protocol: "https" } as ApiContext;

      expect(createUrlOf({ publicUrl: undefined, hosts: ["a.example.com:8443"] })(request).href).to.equal(
        "https://a.example.com:8443/svc-api/resources/orders?page=2&x=%25zz",
      );
    });

    it("begins every URL with the public one, when there is one", () => {
      const urlOf = createUrlOf({ publicUrl: "https://public.example.com", hosts });

      expect(urlOf(context("api.example.com")).origin).to.equal("https://public.example.com");
    });
  });
});

describe("openHostsWarning", () => {
  const open = { host: "0.0.0.0", publicUrl: undefined, hosts: [] };

  it("names both settings and the risk, when others can connect and any host is accepted", () => {
    expect(openHostsWarning(open))
      .to.include("http.publicUrl (SVC_PUBLIC_URL)")
      .and.include("http.hosts")
      .and.include("forged Host header");
  });

  for (const [what, closed] of [
    ["a public URL", { publicUrl: "https://api.example.com" }],
    ["hosts", { hosts: ["api.example.com"] }],
    ["only this machine as client", { host: "127.0.0.1" }],
  ] as const)
    it(`says nothing with ${what}`, () => {
      expect(openHostsWarning({ ...open, ...closed })).to.equal(undefined);
    });
});
