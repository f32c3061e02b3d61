import { expect } from "chai";
import { headerFaults } from "../../src/console/pages/webhooks/draft.ts";

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
