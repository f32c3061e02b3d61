import { expect } from "chai";
import { createHash } from "node:crypto";
import { entityTagOf, hasEntityTag, parseEntityTags } from "../../src/http/conditional.ts";

describe("entityTagOf", () => {
  it("is the SHA-256 of the bytes, in quotes", () => {
    const hash = createHash("sha256").update('{"name":"Zoë"}', "utf8").digest("base64url");

    expect(entityTagOf('{"name":"Zoë"}')).to.equal(`"${hash}"`);
  });
});

describe("parseEntityTags", () => {
  for (const [text, tags] of [
    ['"a"', ['"a"']],
    ['W/"a"', ['W/"a"']],
    ['"a", W/"b" ,"c"', ['"a"', 'W/"b"', '"c"']],
    ['"a,b", "ours"', ['"a,b"', '"ours"']],
    [',, "a",, ', ['"a"']],
    ['""', ['""']],
    // Node.js decodes the bytes beyond ASCII of a tag like this.
    ['"\u00e9", "a"', ['"\u00e9"', '"a"']],
    ["*", "*"],
    [" * ", "*"],
  ] as const) {
    it(`reads ${text}`, () => {
      expect(parseEntityTags(text)).to.deep.equal(tags);
    });
  }

  for (const text of ["a", '"a', 'a"', '"a" "b"', '"a""b"', 'w/"a"', '*, "a"', '"a", *', "", ",", '"a b"']) {
    it(`finds no list in ${text === "" ? "nothing" : text}`, () => {
      expect(parseEntityTags(text)).to.equal(undefined);
    });
  }
});

describe("hasEntityTag", () => {
  it("uses strong comparison: a weak tag differs from the strong one of the same name", () => {
    expect(hasEntityTag(['"a"', '"b"'], '"b"')).to.equal(true);
    expect(hasEntityTag(['W/"b"'], '"b"')).to.equal(false);
    expect(hasEntityTag("*", '"b"')).to.equal(true);
  });
});
