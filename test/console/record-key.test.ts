import { expect } from "chai";
import { idOf } from "../../src/console/pages/resources/record-key.ts";

describe("idOf", () => {
  const record = { sku: "A,1", user: { id: 7 }, isMain: false, note: null };
  const cases = [
    { keys: ["user.id"], id: "7" },
    { keys: ["sku"], id: "A,1" },
    { keys: ["isMain"], id: "false" },
    { keys: ["user.id", "isMain"], id: "7,false" },
    { keys: ["sku", "user.id"], id: "A%2C1,7" },
    { keys: ["note"], id: null },
    { keys: ["none"], id: null },
    { keys: null, id: null },
  ] as const;
  for (const { keys, id } of cases)
    it(`is ${id} by ${JSON.stringify(keys)}`, () => {
      expect(idOf(record, { keys })).to.equal(id);
    });
});
