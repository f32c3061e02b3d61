import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { createSecretBox, maskSecret, mintSecret, secretHint } from "../../src/subscriptions/secret.ts";

describe("mintSecret", () => {
  it("gives sec_ and 48 base62 characters", () => {
    expect(mintSecret()).to.match(/^sec_[0-9A-Za-z]{48}$/);
  });

  it("uses every character about equally often, and repeats no secret", () => {
    const secrets = Array.from({ length: 500 }, mintSecret);
    const counts = new Map<string, number>();
    for (const character of secrets.flatMap((secret) => secret.slice(4).split("")))
      counts.set(character, (counts.get(character) ?? 0) + 1);

    expect(new Set(secrets).size).to.equal(500);
    // 387 each on average, with a standard deviation of 20: seven of them, so that chance fails one
    // run in 10^10. The remainder of a byte by 62 would give the first eight characters 469.
    const mean = (500 * 48) / 62;
    const favoured = "01234567".split("").map((character) => counts.get(character) ?? 0);
    expect(counts.size).to.equal(62);
    expect(Math.min(...counts.values())).to.be.greaterThan(mean - 140);
    // Eight together: 3097 on average, with a standard deviation of 52; 3750 with the bias.
    expect(favoured.reduce((sum, count) => sum + count, 0)).to.be.within(3097 - 364, 3097 + 364);
  });
});

describe("maskSecret", () => {
  it("shows only the last four characters of a secret", () => {
    expect(maskSecret(secretHint("sec_abcdefWXYZ"))).to.equal("sec_****WXYZ");
  });
});

describe("createSecretBox", () => {
  const box = createSecretBox(randomBytes(32));
  const secret = mintSecret();

  it("gives back what it sealed", () => {
    expect(box.decrypt(box.encrypt(secret))).to.equal(secret);
    expect(box.decrypt(box.encrypt("ключ ☃"))).to.equal("ключ ☃");
  });

  it("opens a text that another process sealed with the same key, and bytes that are not a Buffer", () => {
    const key = randomBytes(32);
    const sealed = Uint8Array.from(createSecretBox(key).encrypt(secret));

    expect(createSecretBox(Buffer.from(key)).decrypt(sealed)).to.equal(secret);
  });

  it("seals the same secret differently each time, and never in the clear", () => {
    const [one, two] = [Buffer.from(box.encrypt(secret)), Buffer.from(box.encrypt(secret))];

    expect(one.equals(two)).to.equal(false);
    expect(one.includes(secret.slice(4, 12))).to.equal(false);
  });

  it("opens texts that were sealed with a previous key, and seals only with the current one", () => {
    const [first, second, third] = [randomBytes(32), randomBytes(32), randomBytes(32)];
    const rotated = createSecretBox(third, [second, first]);

    for (const key of [first, second, third])
      expect(rotated.decrypt(createSecretBox(key).encrypt(secret))).to.equal(secret);
    expect(createSecretBox(third).decrypt(rotated.encrypt(secret))).to.equal(secret);
    expect(() => createSecretBox(second).decrypt(rotated.encrypt(secret))).to.throw(/another key/);
  });

  it("returns the head of its sealed texts, and the heads of those that it opens", () => {
    const [old, key] = [randomBytes(32), randomBytes(32)];
    const rotated = createSecretBox(key, [old]);

    expect(Buffer.from(rotated.encrypt(secret).subarray(0, 5)).toString("hex")).to.equal(rotated.currentHead);
    expect([...rotated.knownHeads]).to.have.members([rotated.currentHead, createSecretBox(old).currentHead]);
  });

  it("reports that another key was used", () => {
    const other = createSecretBox(randomBytes(32));

    expect(() => other.decrypt(box.encrypt(secret))).to.throw(
      /encrypted with another key \(id [0-9a-f]{8}\)/,
    );
  });

  it("refuses every change of a byte, without showing the secret", () => {
    const sealed = box.encrypt(secret);

    for (let at = 0; at < sealed.length; at++) {
      const changed = Uint8Array.from(sealed, (byte, index) => (index === at ? byte ^ 1 : byte));
      const expected = at === 0 ? /does not begin/ : at < 5 ? /another key/ : /bytes were changed/;
      expect(() => box.decrypt(changed), `byte ${at}`)
        .to.throw(expected)
        .with.property("message")
        .that.does.not.include(secret);
    }
  });

  it("refuses every truncation", () => {
    const sealed = box.encrypt(secret);

    for (let length = 0; length < sealed.length; length++)
      expect(() => box.decrypt(sealed.subarray(0, length)), `${length} bytes`).to.throw(/is damaged/);
  });

  it("refuses a key that is not 32 bytes long", () => {
    const message = "The secret key must have 32 bytes, this one has 16.";

    expect(() => createSecretBox(randomBytes(16))).to.throw(message);
    expect(() => createSecretBox(randomBytes(32), [randomBytes(16)])).to.throw(message);
  });
});
