import { expect } from "chai";
import { LargeAnswer } from "../../src/http/large-answer.ts";
import { pageAnswer, writePage } from "../../src/resources/write-page.ts";

const large = "x".repeat(300_000);

/** Counts the turns of the event loop until it is stopped. */
function countTurns(): { count: number; isStopped: boolean } {
  const turns = { count: 0, isStopped: false };
  const next = (): void => {
    turns.count += 1;
    if (!turns.isStopped) setImmediate(next);
  };
  next();
  return turns;
}

describe("writePage", () => {
  it("writes the records in their order", async () => {
    const raws = [["a"], [large], [null], ["b"], [large], ["c", "d"]];
    const texts = await writePage(1, raws, (raw) => raw.join());

    expect(texts).to.deep.equal(["a", large, "", "b", large, "c,d"]);
  });

  it("writes a small page at once, and the records of large pages in turns of the event loop", async () => {
    const turns: number[] = [];
    const counter = countTurns();
    const write = (): string => {
      turns.push(counter.count);
      return "";
    };

    await writePage(1, [["a"], ["b"], ["c"]], write);
    expect(new Set(turns).size).to.equal(1);

    turns.length = 0;
    await Promise.all([
      writePage(1, [[large], [large]], write),
      writePage(1, [[large], ["x"], [large]], write),
    ]);
    counter.isStopped = true;
    // The small one is in the same turn as a large one.
    expect(turns).to.have.length(5);
    expect(new Set(turns).size).to.equal(4);
  });

  it("continues after a record that cannot be written", async () => {
    const failing = writePage(1, [[large]], () => {
      throw new Error("no");
    });
    const error = await failing.catch((caught: unknown) => caught);

    expect(error).to.be.instanceOf(Error);
    expect(await writePage(1, [[large]], () => "written")).to.deep.equal(["written"]);
  });
});

describe("pageAnswer", () => {
  const page = { data: [], total: 1 };

  it("puts a small page together", async () => {
    expect(await pageAnswer(1, [], page)).to.equal('{"data":[],"total":1}');
    expect(await pageAnswer(1, ["1", "2"], page)).to.equal('{"data":[1,2],"total":1}');
  });

  it("encodes a large one in pieces, in turns of the event loop", async () => {
    const turns = countTurns();
    const records = ["é", large, "x"].map((text) => JSON.stringify(text));

    const answer = (await pageAnswer(1, records, page)) as LargeAnswer;
    turns.isStopped = true;

    expect(answer).to.be.instanceOf(LargeAnswer);
    const bytes = Buffer.concat(answer.pieces);
    expect(bytes.toString()).to.equal(`{"data":[${records.join(",")}],"total":1}`);
    expect(answer.bytes).to.equal(bytes.length);
    expect(turns.count).to.be.above(1);
  });
});
