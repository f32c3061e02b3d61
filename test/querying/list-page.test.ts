import { expect } from "chai";
import { resultTooLargeCode } from "../../src/db/result-limit.ts";
import { readCursorPage, readPage } from "../../src/querying/list-page.ts";

const tooLarge = (rows: number): Error =>
  Object.assign(new Error("too large"), { code: resultTooLargeCode, rows });

const count = (): Promise<never> => Promise.reject(new Error("no count"));

/** Reads a page of 20,000 records with an estimate. Returns its length and its total. */
async function pageAt(skip: number, estimate: number): Promise<readonly unknown[]> {
  const { records, total, isEstimate } = await readPage(
    { skip, take: 100, count: "estimated" },
    {
      read: async (size) => Array.from({ length: Math.max(0, Math.min(size, 20_000 - skip)) }, () => "{}"),
      count: async (mode) =>
        mode === "exact" ? { total: 20_000, isEstimate: false } : { total: estimate, isEstimate: true },
    },
  );
  return [records.length, total, isEstimate];
}

describe("readPage and readCursorPage", () => {
  it("read a first record that is larger than a page only once more", async () => {
    const sizes: number[] = [];
    const read = async (size: number): Promise<string[]> => {
      sizes.push(size);
      if (size > 1) throw tooLarge(1);
      return ["{}"];
    };

    const page = await readPage(
      { skip: 0, take: 100, count: "exact" },
      {
        read,
        count: async () => ({ total: 7, isEstimate: false }),
      },
    );
    expect([page.records, page.size, sizes]).to.deep.equal([["{}"], 1, [100, 1]]);

    sizes.length = 0;
    const byCursor = await readCursorPage({ from: undefined, take: 100 }, async (size) =>
      (await read(size)).map((json) => ({ json, position: [1] as never })),
    );
    expect([byCursor.size, byCursor.next !== undefined, sizes]).to.deep.equal([1, true, [101, 2, 1]]);
  });

  it("read as many as fitted", async () => {
    const sizes: number[] = [];
    const read = async (size: number): Promise<string[]> => {
      sizes.push(size);
      if (size > 12) throw tooLarge(12);
      return Array.from({ length: size }, () => "{}");
    };

    const page = await readPage({ skip: 0, take: 40, count: "none" }, { read, count });

    expect([page.size, page.records.length, page.hasNext]).to.deep.equal([11, 11, true]);
    expect(sizes).to.deep.equal([41, 12]);
  });

  it("read a page a few times at most, at any position of the large records", async () => {
    const sizes: number[] = [];
    const read = async (size: number): Promise<string[]> => {
      sizes.push(size);
      if (size > 17) throw tooLarge(size - 1);
      return Array.from({ length: size }, () => "{}");
    };

    const page = await readPage({ skip: 0, take: 100, count: "none" }, { read, count });

    expect([page.size, sizes]).to.deep.equal([7, [101, 100, 26, 8]]);
  });

  it("read a quarter as many records where the rows of a relation are too many", async () => {
    const sizes: number[] = [];
    const read = async (size: number): Promise<string[]> => {
      sizes.push(size);
      if (size > 10) throw tooLarge(500);
      return Array.from({ length: size }, () => "{}");
    };

    const page = await readPage({ skip: 0, take: 40, count: "none" }, { read, count });

    expect([page.size, sizes]).to.deep.equal([3, [41, 11, 4]]);
  });

  it("correct an estimate by the page, whose links then lead to the end", async () => {
    expect(await pageAt(0, 10_001)).to.deep.equal([100, 10_001, true]);
    expect(await pageAt(10_000, 10_001)).to.deep.equal([100, 10_101, true]);
    expect(await pageAt(19_950, 50_000)).to.deep.equal([50, 20_000, false]);
    expect(await pageAt(30_000, 50_000)).to.deep.equal([0, 20_000, false]);
  });
});
