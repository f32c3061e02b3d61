import { expect } from "chai";
import { createSeal } from "../../src/broker/seal.ts";

const key = (byte: number): Buffer => Buffer.alloc(32, byte);

describe("createSeal", () => {
  const seal = createSeal(key(1));
  const signed = seal.sign(["7", " ", Buffer.from("body")]);

  it("accepts its own seal for any parts of a body, and no other", () => {
    expect(seal.isValid(["7", " ", Buffer.from("body")], signed)).to.equal(true);
    expect(seal.isValid(["7 b", "ody"], signed)).to.equal(true);
    expect(seal.isValid(["7 Body"], signed)).to.equal(false);
  });

  it("makes the same seal as other versions, which may run beside this one", () => {
    expect(signed).to.equal("sbqqr0zbS6GNZmdKEDBb0b0L2i4gZrgp/GAEBlSiYfg=");
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
    it(`refuses the ${typeof given} ${JSON.stringify(given) ?? ""} as a seal`, () => {
      expect(seal.isValid(["7 body"], given)).to.equal(false);
    });
  }

  it("accepts seals of previous keys, and seals only with the newest", () => {
    const rotated = createSeal(key(2), [key(3), key(1)]);

    expect(rotated.isValid(["7 body"], signed)).to.equal(true);
    expect(seal.isValid(["7 body"], rotated.sign(["7 body"]))).to.equal(false);
    expect(createSeal(key(2), [key(3)]).isValid(["7 body"], signed)).to.equal(false);
  });
});
