import { expect } from "chai";
import { createHash } from "node:crypto";
import {
  checkConditions,
  entityTagOf,
  hasEntityTag,
  isConditional,
  parseEntityTags,
} from "../../src/http/conditional.ts";
import type { ApiContext } from "../../src/http/state.ts";

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

describe("checkConditions", () => {
  const changed = "The record was changed since it was read";
  const untagged = "Only records of resources have an ETag";
  const malformed = "The If-Match header must be";
  const excluded = "The record is one that If-None-Match excludes";
  for (const [ifMatch, ifNoneMatch, tag, refusal] of [
    [undefined, "", '"a"', undefined],
    ['"b", "a"', "", '"a"', undefined],
    ['"b"', "", '"a"', changed],
    ["*", "", undefined, undefined],
    ['"b"', "", undefined, untagged],
    ["b", "", '"a"', malformed],
    ["", "", '"a"', malformed],
    [undefined, '"b", W/"a"', '"a"', excluded],
    [undefined, '"b"', '"a"', undefined],
    [undefined, "*", undefined, excluded],
    [undefined, '"b"', undefined, undefined],
    [undefined, "b", '"a"', undefined],
    ['"a"', '"a"', '"a"', excluded],
  ] as const)
    it(`${refusal === undefined ? "accepts" : "refuses"} If-Match ${ifMatch} and If-None-Match ${ifNoneMatch} for ${tag}`, () => {
      const ctx = {
        req: { headers: { "if-match": ifMatch } },
        get: () => ifNoneMatch,
      } as unknown as ApiContext;
      const check = (): void => checkConditions(ctx, tag);

      if (refusal === undefined) expect(check).to.not.throw();
      else expect(check).to.throw(refusal);
      expect(isConditional(ctx)).to.equal(ifMatch !== undefined || ifNoneMatch !== "");
    });
});
