import { expect } from "chai";
import {
  createOpenSigning,
  openPrevious,
  openSigning,
  sealPrevious,
} from "../../src/subscriptions/signing.ts";
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

describe("createOpenSigning", () => {
  it("decrypts once what a read of a subscription returned", () => {
    const secret = secretBox.encrypt("sec_new");
    const sealed = { encryptedSecret: secret, encryptedPrevious: null, encryptedHeaders: null };
    let decrypted = 0;
    const open = createOpenSigning({
      decrypt(bytes) {
        decrypted += 1;
        return secretBox.decrypt(bytes);
      },
    });

    const signings = [open(sealed), open(sealed), open({ ...sealed })];

    expect(signings.map(({ secrets }) => secrets)).to.deep.equal([["sec_new"], ["sec_new"], ["sec_new"]]);
    expect(decrypted).to.equal(2);
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
