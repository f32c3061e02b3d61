import { expect } from "chai";
import { emailFault, nameFault } from "../../src/users/input.ts";

describe("emailFault", () => {
  for (const text of ["ada@example.com", "admin@localhost", "a_b+c@exämple.org"]) {
    it(`lets ${text} through`, () => {
      expect(emailFault(text)).to.equal(undefined);
    });
  }
  for (const text of [
    "",
    "ada",
    "ada@",
    "@example.com",
    "a b@example.com",
    "a@b@c",
    "a\u0000@b.c",
    "a\ud800@b.c",
    `${"a".repeat(250)}@b.cd`,
  ]) {
    it(`stops ${JSON.stringify(text.slice(0, 20))} of ${text.length} characters`, () => {
      expect(emailFault(text)).to.be.a("string");
    });
  }
});

describe("nameFault", () => {
  for (const [what, text, isFit] of [
    ["a name", "Ada Lovelace", true],
    ["255 characters", "a".repeat(255), true],
    ["nothing", "", false],
    ["256 characters", "a".repeat(256), false],
    ["a line break", "a\nb", false],
    ["an escape sequence", "\u001b[2J", false],
    ["half a surrogate pair", "Ada \ud83d", false],
  ] as const) {
    it(`${isFit ? "lets through" : "stops"} ${what}`, () => {
      expect(nameFault(text) === undefined).to.equal(isFit);
    });
  }
});
