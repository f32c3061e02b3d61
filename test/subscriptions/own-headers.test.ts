import { expect } from "chai";
import { maskHeaders, mergeHeaders, readHeaders } from "../../src/subscriptions/own-headers.ts";

/** Headers of a body, and the message about them; none when they are accepted. */
const cases: readonly (readonly [unknown, string?])[] = [
  [null],
  [{}],
  [{ Authorization: "Bearer x", "X-Api-Key": "a b", Cookie: "s=1" }],
  [{ "X-Key": "x".repeat(1024) }],
  [{ "X-Key": "x".repeat(1025) }, "must not have more than 1024 characters"],
  ["x", "must be an object"],
  [["x"], "must be an object"],
  [undefined, "must be an object"],
  [Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`X-${n}`, "x"]))],
  [Object.fromEntries(Array.from({ length: 11 }, (_, n) => [`X-${n}`, "x"])), "more than 10 items"],
  [{ "X-Key": 5 }, "must be a string"],
  [{ "X-Key": "" }, "must be visible ASCII"],
  [{ "X-Key": " x" }, "must be visible ASCII"],
  [{ "X-Key": "x " }, "must be visible ASCII"],
  [{ ["X".repeat(100)]: "x" }],
  [{ ["X".repeat(101)]: "x" }, "must not have more than 100 characters"],
  [{ "X-Key": "x\r\nHost: y" }, "must be visible ASCII"],
  [{ "X-Key": "x\u0000" }, "must be visible ASCII"],
  [{ "X-Key": "é" }, "must be visible ASCII"],
  [{ "X Key": "x" }, "has letters, digits and -"],
  [{ "X-Key:": "x" }, "has letters, digits and -"],
  [{ "X-Key\r\nHost": "x" }, "has letters, digits and -"],
  [{ "": "x" }, "has letters, digits and -"],
  [{ "X-Key": "x", "x-key": "y" }, "is there twice"],
  [{ "X-Other": "****" }, "has no stored value"],
  ...[
    "Host",
    "Content-Type",
    "content-length",
    "Connection",
    "Keep-Alive",
    "Transfer-Encoding",
    "TE",
    "Trailer",
    "Upgrade",
    "Expect",
    "Proxy-Authorization",
    "User-Agent",
    "traceparent",
    "tracestate",
    "X-Service-Signature",
    "webhook-id",
    "HTTP2-Settings",
    "Forwarded",
    "Via",
    "X-Forwarded-For",
    "X-Real-IP",
    "Metadata",
    "Metadata-Flavor",
    "X-aws-ec2-metadata-token",
    "Proxy",
    "X-Original-URL",
    "X-Rewrite-URL",
    "X-HTTP-Method",
    "X-HTTP-Method-Override",
    "x_method_override",
    // CGI, WSGI and PHP make one variable of both spellings.
    "x_service_signature",
    "Webhook_Signature",
    "X_Forwarded_For",
  ].map((name) => [{ [name]: "x" }, "is reserved"] as const),
  [{ Host: "x" }, "The header Host is reserved: the service or the connection sets it."],
  [{ Via: "x" }, "The header Via is reserved: networks trust what it says of who sends."],
  [{ Metadata: "x" }, "The header Metadata is reserved: it opens the metadata of a cloud."],
  [
    { x_http_method: "x" },
    "The header x_http_method is reserved: it would make another request of a delivery.",
  ],
];

describe("readHeaders", () => {
  for (const [given, fault] of cases) {
    it(`${fault === undefined ? "takes" : "refuses"} ${(JSON.stringify(given) ?? "nothing").slice(0, 60)}`, () => {
      const read = readHeaders(given, ["X-Stored"]);

      if (fault === undefined) expect(read).to.have.property("headers");
      else expect("errors" in read && [...read.errors.values()].join()).to.contain(fault);
    });
  }

  it("names a header in the errors by at most 100 characters", () => {
    const read = readHeaders({ ["X".repeat(20_000)]: "x" }, []);

    expect("errors" in read && [...read.errors.keys()]).to.deep.equal([`headers.${"X".repeat(100)}`]);
  });

  it("keeps the stored value behind the mask, in any case of its name, and shows no value", () => {
    const stored = { "X-Stored": "secret", "X-Gone": "other" };
    const read = readHeaders({ "x-stored": "****", "X-New": "new" }, Object.keys(stored));

    const merged = "headers" in read ? mergeHeaders(read.headers, stored) : {};
    expect(merged).to.deep.equal({ "X-Stored": "secret", "X-New": "new" });
    expect(maskHeaders(Object.keys(merged))).to.deep.equal({ "X-Stored": "****", "X-New": "****" });
  });
});
