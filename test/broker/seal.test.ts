import { expect } from "chai";
import { createSeal } from "../../src/broker/seal.ts";

const key = (byte: number): Buffer => Buffer.alloc(32, byte);

describe("createSeal", () => {
  const seal = createSeal(key(1));
  const signed = seal.sign(["7", " ", Buffer.from("body")]);

  it("knows what it has sealed, however it is cut into parts, and nothing else", () => {
    expect(seal.isValid(["7", " ", Buffer.from("body")], signed)).to.equal(true);
    expect(seal.isValid(["7 b", "ody"], signed)).to.equal(true);
    expect(seal.isValid(["7 Body"], signed)).to.equal(false);
  });

  for (const given of [
    undefined,
    null,
    7,
    "",
    "AAAA",
    Buffer.alloc(32).toString("base64"),
    Buffer.from(signed, "base64"),
    signed.slice(0, 40),
    [signed],
  ]) {
    it(`takes no ${typeof given} ${JSON.stringify(given) ?? ""} for a seal`, () => {
      expect(seal.isValid(["7 body"], given)).to.equal(false);
    });
  }

  it("opens with previous keys, and seals with the newest alone", () => {
    const rotated = createSeal(key(2), [key(3), key(1)]);

    expect(rotated.isValid(["7 body"], signed)).to.equal(true);
    expect(seal.isValid(["7 body"], rotated.sign(["7 body"]))).to.equal(false);
    expect(createSeal(key(2), [key(3)]).isValid(["7 body"], signed)).to.equal(false);
  });
});
