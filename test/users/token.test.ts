import { createHash } from "node:crypto";
import { expect } from "chai";
import { hashToken, isToken, mintToken, parseBearer } from "../../src/users/token.ts";

const token = `svc_${"aZ0".repeat(14)}x`;

describe("mintToken", () => {
  it("gives svc_ and 43 base62 characters", () => {
    expect(mintToken()).to.match(/^svc_[0-9A-Za-z]{43}$/);
  });

  it("gives another one each time", () => {
    expect(new Set(Array.from({ length: 100 }, mintToken)).size).to.equal(100);
  });

  it("uses every character about equally often", () => {
    const counts = new Map<string, number>();
    for (const character of Array.from({ length: 1000 }, () => mintToken().slice(4)).join("")) {
      counts.set(character, (counts.get(character) ?? 0) + 1);
    }

    // 43,000 draws from 62: 694 each, with a standard deviation of 26. A byte modulo 62 would give
    // eight of them 840.
    expect(counts.size).to.equal(62);
    expect(Math.max(...counts.values())).to.be.below(694 + 5.5 * 26);
    expect(Math.min(...counts.values())).to.be.above(694 - 5.5 * 26);
  });
});

describe("hashToken", () => {
  it("is the SHA-256 of the whole token", () => {
    const expected = createHash("sha256").update(token).digest("hex");

    expect(Buffer.from(hashToken(token)).toString("hex")).to.equal(expected);
  });
});

describe("isToken", () => {
  const cases: readonly (readonly [string, string, boolean])[] = [
    ["a minted one", mintToken(), true],
    ["40 characters", `svc_${"a".repeat(40)}`, true],
    ["39 characters", `svc_${"a".repeat(39)}`, false],
    ["more than 200", `svc_${"a".repeat(201)}`, false],
    ["another prefix", `tok_${"a".repeat(43)}`, false],
    ["the prefix in capitals", `SVC_${"a".repeat(43)}`, false],
    ["a character outside base62", `svc_${"a".repeat(42)}-`, false],
    ["a line break at the end", `${token}\n`, false],
    ["nothing", "", false],
  ];
  for (const [what, text, expected] of cases) {
    it(`${expected ? "accepts" : "refuses"} ${what}`, () => {
      expect(isToken(text)).to.equal(expected);
    });
  }
});

describe("parseBearer", () => {
  const cases: readonly (readonly [string, readonly string[] | undefined, unknown])[] = [
    ["no header", undefined, { kind: "missing" }],
    ["an empty header", [""], { kind: "missing" }],
    ["another scheme", ["Basic dXNlcjpwYXNz"], { kind: "missing" }],
    ["a scheme that only begins alike", [`Bearerer ${token}`], { kind: "missing" }],
    ["the scheme alone", ["Bearer"], { kind: "missing" }],
    ["the scheme and a space", ["Bearer "], { kind: "missing" }],
    ["a bare token", [token], { kind: "missing" }],
    ["a token", [`Bearer ${token}`], { kind: "token", token }],
    ["the scheme in small letters", [`bearer ${token}`], { kind: "token", token }],
    ["the scheme in capitals", [`BEARER ${token}`], { kind: "token", token }],
    ["several spaces", [`Bearer   ${token} `], { kind: "token", token }],
    ["two tokens", [`Bearer ${token} ${token}`], { kind: "malformed" }],
    ["two tokens with a comma", [`Bearer ${token}, Bearer ${token}`], { kind: "malformed" }],
    ["a token in quotes", [`Bearer "${token}"`], { kind: "malformed" }],
    ["something that is no token", ["Bearer abc"], { kind: "malformed" }],
    ["a JWT", ["Bearer a.b.c"], { kind: "jwt", token: "a.b.c" }],
    ["a JWT that is too long", [`Bearer a.b.${"c".repeat(8189)}`], { kind: "malformed" }],
    ["two headers", [`Bearer ${token}`, `Bearer ${token}`], { kind: "malformed" }],
  ];
  for (const [what, headers, expected] of cases) {
    it(`reads ${what}`, () => {
      expect(parseBearer(headers)).to.deep.equal(expected);
    });
  }
});
