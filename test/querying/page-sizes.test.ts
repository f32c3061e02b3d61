import { expect } from "chai";
import { createPageSizes } from "../../src/querying/page-sizes.ts";

describe("createPageSizes", () => {
  it("remembers for a while the size that fitted, and then tries a little more", () => {
    const sizes = createPageSizes();
    expect(sizes.likely(1)).to.equal(undefined);

    sizes.note(1, { asked: 100, size: 8 });
    for (let list = 0; list < 16; list += 1) {
      expect(sizes.likely(1)).to.equal(8);
      sizes.note(1, { asked: 100, size: 8 });
    }
    sizes.note(1, { asked: 100, size: 8 });
    expect(sizes.likely(1)).to.equal(10);

    sizes.note(1, { asked: 100, size: 10 });
    expect(sizes.likely(1)).to.equal(13);
    sizes.note(1, { asked: 100, size: 9 });
    sizes.note(1, { asked: 100, size: 9 });
    expect(sizes.likely(1)).to.equal(9);
  });

  it("forgets it when all requested records fit, and not when fewer were requested", () => {
    const sizes = createPageSizes();
    sizes.note(1, { asked: 100, size: 8 });

    sizes.note(1, { asked: 5, size: 5 });
    expect(sizes.likely(1)).to.equal(8);
    sizes.note(1, { asked: 20, size: 20 });
    expect(sizes.likely(1)).to.equal(undefined);
  });

  it("is of one user", () => {
    const sizes = createPageSizes();
    sizes.note(1, { asked: 100, size: 8 });

    expect(sizes.likely(2)).to.equal(undefined);
  });

  it("is of one part of the records", () => {
    const sizes = createPageSizes();
    sizes.note(1, { asked: 100, size: 8, part: "id,text" });

    expect(["id", "id,text", undefined].map((part) => sizes.likely(1, part))).to.deep.equal([
      undefined,
      8,
      undefined,
    ]);
  });

  it("keeps those of others beside any number of parts of one user", () => {
    const sizes = createPageSizes();
    sizes.note(1, { asked: 100, size: 8 });

    for (let part = 0; part < 2_000; part += 1) sizes.note(2, { asked: 100, size: 7, part: `text,${part}` });

    expect([sizes.likely(1), sizes.likely(2, "text,0"), sizes.likely(2, "text,1999")]).to.deep.equal([
      8,
      undefined,
      7,
    ]);
  });
});
