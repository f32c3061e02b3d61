import { expect } from "chai";
import { createSearch, lowered } from "../../src/querying/lowered.ts";
import { createRandom, pick } from "../support/random.ts";

/** Lowers like PostgreSQL. */
function letterByLetter(text: string): string {
  return Array.from(text, (letter) => {
    const small = letter.toLowerCase();
    return small.length === letter.length ? small : letter;
  }).join("");
}

describe("lowered", () => {
  it("lowers every letter of Unicode itself", () => {
    for (let start = 0; start < 0x110000; start += 0x400) {
      const letters = Array.from({ length: 0x400 }, (_, index) => String.fromCodePoint(start + index));
      for (const text of [letters.join(""), letters.join(" Σ"), letters.join("İΣ ")])
        expect(lowered(text) === letterByLetter(text), start.toString(16)).to.equal(true);
    }
  });

  for (const [text, small] of [
    ["", ""],
    ["ABC 123", "abc 123"],
    ["ÉTÉ ß", "été ß"],
    ["ΟΔΟΣ ΟΔΟΣ", "οδοσ οδοσ"],
    ["οδος", "οδος"],
    ["İstanbul ISPARTA", "İstanbul isparta"],
    ["\ud801\udc00 \ud801 Σ", "\ud801\udc28 \ud801 σ"],
  ] as const) {
    it(`makes ${JSON.stringify(small)} from ${JSON.stringify(text)}`, () => {
      expect(lowered(text)).to.equal(small);
    });
  }
});

describe("createSearch", () => {
  it("agrees with includes for 5,000 parts and texts of few letters", () => {
    const random = createRandom(3);
    const word = (most: number): string =>
      Array.from({ length: Math.floor(random() * (most + 1)) }, () =>
        pick(random, ["a", "a", "b", "é"]),
      ).join("");
    for (let count = 0; count < 5_000; count += 1) {
      const [part, text] = [word(6), word(40)];

      expect(createSearch(part)(text), JSON.stringify([part, text])).to.equal(text.includes(part));
    }
  });

  it("goes back only as far as needed", () => {
    const part = `${"a".repeat(2_000)}b${"a".repeat(2_000)}`;

    expect(createSearch(part)("a".repeat(100_000))).to.equal(false);
    expect(createSearch(part)(`${"a".repeat(50_000)}b${"a".repeat(2_000)}`)).to.equal(true);
    expect(createSearch("")("")).to.equal(true);
  });
});
