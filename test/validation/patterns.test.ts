import { expect } from "chai";
import { compilePattern } from "../../src/validation/patterns.ts";
import { compileRules, validate, type Validation } from "../../src/validation/validate.ts";
import { cpuMsOf } from "../support/cpu-time.ts";

/** Returns `a` and `b` in an irregular order; the same at every run. */
function noise(length: number): string {
  let state = 12_345;
  let text = "";
  while (text.length < length) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    text += state & 1 ? "a" : "b";
  }
  return text;
}

async function judge(rule: string, texts: readonly string[]): Promise<Validation> {
  const rules = compileRules({ "texts.*": [{ regex: rule }] });
  return validate(rules, { texts }, { lookup: { exists: () => Promise.resolve(false) } });
}

describe("compilePattern", () => {
  it("reads /pattern/flags", () => {
    expect(compilePattern("/^a\\/b$/iu").matches("A/B")).to.equal(true);
    expect(compilePattern("/^b.c$/ms").matches("a\nb\nc\nd")).to.equal(true);
  });

  const texts = [
    "",
    "a",
    "ab-12",
    "AB1234",
    "a.b@example.com",
    "é",
    "👍",
    "東京",
    "a\nb",
    "x_y",
    "{1}",
    "\\",
    "\t",
    "k",
  ];
  const patterns = [
    String.raw`/^[A-Z]{2}\d{4}$/`,
    String.raw`/^[^@\s]+@[^@\s]+\.[a-z]{2,}$/i`,
    String.raw`/^\p{L}+$/u`,
    String.raw`/^.$/`,
    String.raw`/^(?<word>\w+)(?:-\d+)?$/`,
    String.raw`/^[\u4e00-\u9fff]+$|\u{1F44D}/`,
    String.raw`/\b_?y\b|\\|\{1\}/`,
    String.raw`/^b$/m`,
    String.raw`/a[^]b/`,
    String.raw`/a*?$|^$/`,
    String.raw`/^[[a-z\]\-]+$/i`,
    String.raw`/^\x61\cJ?b?$/`,
  ];
  for (const written of patterns)
    it(`answers like JavaScript for ${written}`, () => {
      const [, source = "", flags = ""] = /^\/([^]*)\/([a-z]*)$/.exec(written) ?? [];
      const native = new RegExp(source, flags.includes("u") ? flags : `${flags}u`);
      const { matches } = compilePattern(written);

      expect(texts.map((text) => matches(text))).to.deep.equal(texts.map((text) => native.test(text)));
    });

  const refused: readonly (readonly [pattern: string, message: string])[] = [
    ["^a$", "must be written between slashes"],
    ["/a/g", "has a flag other than i, m, s and u: g"],
    ["/(?=a)/", "look-around, back references and repeats beyond 1000 cannot be matched in linear time"],
    ["/(?<!a)b/", "look-around"],
    ["/(a)\\1/", "back references"],
    ["/(?<n>a)\\k<n>/", "back references"],
    ["/a{1001}/", "repeats beyond 1000"],
    ["/^.{1,600}$/", "comes to 1203 instructions, 1000 at most: use smaller repeats"],
    ["/\\Aa\\z/", "Invalid escape"],
    ["/(?i)a/", "Invalid group"],
    ["/[[:alpha:]]/", "Lone quantifier brackets"],
  ];
  for (const [written, message] of refused)
    it(`refuses ${written}`, () => {
      expect(() => compilePattern(written)).to.throw(SyntaxError, message);
    });
});

describe("the rule regex", () => {
  // Each takes JavaScript's engine hours, or makes the linear one slowest: a new state for nearly
  // every character.
  const hard = [
    "/^(a+)+$/",
    "/(a|a)+c$/",
    "/(?:a|b|ab)*c$/",
    "/^[ab]*a[ab]{15}$/",
    "/^[ab]*a[ab]{40}$/",
    "/^[ab]*a[ab]{400}$/",
    "/^(?:a?){300}a{300}$/",
    "/(?:\\p{L}*\\p{M}*){40}\\d$/",
    "/^[\\p{L}\\p{M}]+$/",
  ];
  for (const pattern of hard)
    it(`takes a few seconds at most for 1 MB under ${pattern}`, async () => {
      const { size } = compilePattern(pattern);
      const text = noise(Math.floor(300_000 / size));
      const bodies = [
        [noise(1_000_000)],
        [text],
        text.match(/.{1,50}/g) ?? [],
        Array<string>(10_000).fill(noise(100)),
      ];

      const cpuMs = await cpuMsOf(async () => {
        for (const texts of bodies) await judge(pattern, texts);
      });

      // 50 ms for a body. A backtracking engine takes hours.
      expect(cpuMs).to.be.below(5000);
    });

  it("has 300,000 steps for a body, which is 30,000 characters for a pattern of 10 instructions", async () => {
    const pattern = "/^[A-Z]{2}\\d{4}$/";
    expect(compilePattern(pattern).size).to.equal(10);

    const fits = await judge(pattern, Array<string>(5000).fill("AB1234"));
    const beyond = await judge(pattern, [...Array<string>(5000).fill("AB1234"), "A"]);

    expect(fits.kind).to.equal("valid");
    expect(beyond.kind === "invalid" && beyond.errors).to.deep.equal({
      "texts.5000": [
        "The texts.5000 field cannot be checked: there is too much text for the patterns of the rules.",
      ],
    });
  });
});
