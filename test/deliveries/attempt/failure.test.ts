import { expect } from "chai";
import type { AttemptError } from "../../../src/deliveries/delivery.ts";
import { failureOf } from "../../../src/deliveries/attempt/failure.ts";
import { LookupError, TargetRefusedError } from "../../../src/outbound/outbound-errors.ts";

function errorWith(fields: Readonly<Record<string, string>>): Error {
  return Object.assign(new Error("secret text of the other side\nin two lines"), fields);
}

const cases: readonly [AttemptError, unknown][] = [
  ["dns", new LookupError("ENOTFOUND")],
  ["dns", new LookupError("ECONNREFUSED")],
  ["dns", new LookupError("EFORMERR")],
  ["refused", errorWith({ code: "ECONNREFUSED" })],
  ["timeout", errorWith({ code: "ETIMEDOUT" })],
  ["reset", errorWith({ code: "ECONNRESET" })],
  ["reset", errorWith({ code: "EPIPE" })],
  ["unreachable", errorWith({ code: "EHOSTUNREACH" })],
  ["unreachable", errorWith({ code: "ENETUNREACH" })],
  ["unreachable", errorWith({ code: "EMFILE" })],
  ["unreachable", errorWith({})],
  ["unreachable", "thrown text"],
  ["tls", errorWith({ code: "EPROTO" })],
  ["tls", errorWith({ code: "CERT_HAS_EXPIRED" })],
  ["tls", errorWith({ code: "ERR_TLS_CERT_ALTNAME_INVALID" })],
  ["tls", errorWith({ code: "UNABLE_TO_VERIFY_LEAF_SIGNATURE" })],
  ["tls", errorWith({ code: "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION" })],
  ["protocol", errorWith({ code: "HPE_INVALID_CONSTANT" })],
  ["protocol", errorWith({ code: "ERR_INVALID_CHAR" })],
];

const missing = ["ENOTFOUND", "ENODATA"].map((code) => new LookupError(code));

describe("failureOf", () => {
  for (const [expected, error] of cases) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "no code";

    it(`names ${code} ${expected}, in one line without the error's own text`, () => {
      const failure = failureOf({ error, host: "hooks.example:8443", isAdmin: true });

      expect(failure.error).to.equal(expected);
      expect(failure.detail).to.match(/^[^\n]*hooks\.example:8443[^\n]*\.$/);
      expect(failure.detail).to.include(`(${code})`);
      expect(failure.detail).to.not.include("secret");
    });

    it(`finds ${code} inside the error of Node`, () => {
      const tried = new AggregateError([errorWith({ code: "EHOSTUNREACH" }), error]);
      const wrapped = Object.assign(new Error("outer", { cause: tried }), { code: "ERR_OUTER" });

      expect(failureOf({ error: wrapped, host: "h", isAdmin: true }).error).to.equal(expected);
    });
  }

  it("names the first of several addresses of which none can be reached", () => {
    const errors = ["ENETUNREACH", "EHOSTUNREACH"].map((code) => errorWith({ code }));

    expect(failureOf({ error: new AggregateError(errors), host: "h", isAdmin: true }).detail).to.equal(
      "h cannot be reached (ENETUNREACH).",
    );
  });

  it("repeats the message of the look-up for a refused target", () => {
    const error = new Error("outer", { cause: new TargetRefusedError("a resolves to a private address.") });

    expect(failureOf({ error, host: "a", isAdmin: true })).to.deep.equal({
      error: "blocked",
      detail: "a resolves to a private address.",
    });
  });

  it("does not show others than admins whether a name exists whose addresses are refused", () => {
    const errors = [new TargetRefusedError("a resolves to a private address."), ...missing];
    const [refused, ...unknown] = errors.map((error) => failureOf({ error, host: "a", isAdmin: false }));

    expect(refused?.error).to.equal("dns");
    expect(unknown).to.deep.equal([refused, refused]);
    for (const host of ["localhost", "a.localhost:8080"])
      expect(failureOf({ error: errors[0], host, isAdmin: false }).error, host).to.equal("blocked");
    expect(failureOf({ error: errors[0], host: "notlocalhost", isAdmin: false }).error).to.equal("dns");
  });

  it("explains the failure for a name", () => {
    expect(detailOf("ENOTFOUND")).to.equal(
      "The name of h could not be resolved: there is no such name (ENOTFOUND).",
    );
    expect(detailOf("ETIMEOUT")).to.equal(
      "The name of h could not be resolved: no name server answered in time (ETIMEOUT).",
    );
    expect(detailOf("EFORMERR")).to.equal("The name of h could not be resolved (EFORMERR).");
  });
});

function detailOf(code: string): string {
  return failureOf({ error: new LookupError(code), host: "h", isAdmin: true }).detail;
}
