import { expect } from "chai";
import { openPrevious, openSigning, sealPrevious } from "../../src/subscriptions/signing.ts";
import { secretBox } from "../support/work.ts";

const nowMs = 1_000;
const previous = [3, 2, 1].map((age) => ({ secret: `sec_${age}`, untilMs: age * nowMs }));

describe("openSigning", () => {
  it("leaves out each earlier secret that has expired", () => {
    const encryptedPrevious = secretBox.encrypt(JSON.stringify(previous));
    const sealed = {
      encryptedSecret: secretBox.encrypt("sec_new"),
      encryptedPrevious,
      encryptedHeaders: null,
    };

    const { secrets } = openSigning(secretBox, sealed, nowMs);

    expect(secrets).to.deep.equal(["sec_new", "sec_3", "sec_2"]);
  });
});

describe("sealPrevious", () => {
  it("keeps the five newest that are valid, until the last one ends", () => {
    const many = [...previous, ...previous, ...previous];

    const kept = sealPrevious(secretBox, many, nowMs);

    expect(kept?.until).to.deep.equal(new Date(3 * nowMs));
    const secrets = openPrevious(secretBox, kept?.sealed ?? Buffer.alloc(0)).map(({ secret }) => secret);
    expect(secrets).to.deep.equal(["sec_3", "sec_2", "sec_3", "sec_2", "sec_3"]);
    expect(sealPrevious(secretBox, previous, 3 * nowMs)).to.equal(null);
  });
});
