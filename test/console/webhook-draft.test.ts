import { expect } from "chai";
import { changesOf, emptyDraft, headerFaults } from "../../src/console/pages/webhooks/draft.ts";

describe("headerFaults", () => {
  const cases = [
    { rows: [["X-A", "1"]], faults: [] },
    { rows: [["", ""]], faults: [] },
    { rows: [["X-A", ""]], faults: [] },
    { rows: [["", "a value"]], faults: ["Header 1 has a value and no name."] },
    {
      rows: [
        ["X-A", "1"],
        ["x-a ", "2"],
      ],
      faults: ["x-a stands here twice."],
    },
  ] as const;
  for (const { rows, faults } of cases)
    it(`says of ${JSON.stringify(rows)}: ${JSON.stringify(faults)}`, () => {
      expect(headerFaults(rows.map(([name, value], id) => ({ id, name, value })))).to.deep.equal(faults);
    });
});

describe("changesOf", () => {
  const start = {
    ...emptyDraft,
    url: "https://example.com/",
    events: ["on_create"],
    filter: '{\n  "gone": 1\n}',
    headers: [{ id: 0, name: "X-Rewrite-Url", value: "****" }],
    rateLimit: "5",
  };

  it("contains only the changes: the rest may be invalid for a new webhook", () => {
    expect(changesOf({ ...start, description: "Mine", rateLimit: "" }, start)).to.deep.equal({
      description: "Mine",
      rate_limit: null,
    });
    expect(changesOf({ ...start, filter: '{"gone":1}' }, start)).to.deep.equal({});
    expect(changesOf({ ...start, headers: [] }, start)).to.deep.equal({ headers: null });
  });
});
