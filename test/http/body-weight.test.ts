import { expect } from "chai";
import { createBodyWeight } from "../../src/http/body-weight.ts";

/** As documented: each byte, comma, brace and bracket outside of texts. */
function weightOf(json: string): number {
  const outside = json.replaceAll(/"(?:[^"\\]|\\.)*"/gs, "");
  const count = (pattern: RegExp): number => outside.match(pattern)?.length ?? 0;
  return 12 * Buffer.byteLength(json) + 160 * count(/,/g) + 600 * count(/[[{]/g);
}

const perChunk = 512;

describe("createBodyWeight", () => {
  const texts = [
    "",
    "a,b{[",
    'a "quoted", text',
    "\\",
    '\\\\",{',
    "é, 日本 {",
    `${"long, ".repeat(20)}"${"{".repeat(40)}`,
    "\\".repeat(70),
    "b".repeat(31),
    "b".repeat(32),
    `${"b".repeat(32)}"`,
  ];
  const json = JSON.stringify([...texts, ...texts.map((text) => ({ [text]: [text, 1, null] }))]);

  for (const size of [1, 2, 3, 7, 31, 32, 33, 34, 64, 100_000])
    it(`weighs the bytes outside of texts, in chunks of ${size} bytes`, () => {
      const body = createBodyWeight();
      const bytes = Buffer.from(json);
      let weight = 0;
      let chunks = 0;
      for (let at = 0; at < bytes.length; at += size) {
        weight = body.add(bytes.subarray(at, at + size));
        chunks += 1;
      }
      expect(weight - chunks * perChunk).to.equal(weightOf(json));
    });

  it("counts the levels outside of texts, without ended ones", () => {
    const body = createBodyWeight();
    const text = JSON.stringify([{ a: [{}] }, "[[[[[[", [[]], { "{{{{{{": "\\" }]);
    for (const byte of Buffer.from(text)) body.add(Buffer.from([byte]));
    expect(body.depth()).to.equal(4);
  });

  it("keeps an escape across an empty chunk", () => {
    const body = createBodyWeight();
    for (const part of ['"\\', "", '",', '{"']) body.add(Buffer.from(part));
    expect(body.add(Buffer.from(",")) - 5 * perChunk).to.equal(12 * 7 + 160);
  });
});
