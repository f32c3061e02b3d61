import { expect } from "chai";
import { importedRules, type FieldOfColumn } from "../../../src/mapping/import/rules.ts";
import { ruleFaults } from "../../../src/validation/syntax.ts";

const checked = (bound: string): FieldOfColumn => ({
  name: "rate",
  field: { type: "Decimal" },
  imported: {
    baseType: "numeric",
    isGenerated: false,
    isCounted: false,
    default: undefined,
    checks: [{ kind: "size", column: "rate", rule: "min", bound }],
  } as unknown as FieldOfColumn["imported"],
});

describe("importedRules", () => {
  for (const bound of ["0.0000001", "-5", "100000000000000000000000", "9007199254740993"])
    it(`writes the bound ${bound} of a CHECK as the table has it`, () => {
      const { createRules = {} } = importedRules({
        resource: "prices",
        fields: [checked(bound)],
        ownerColumn: undefined,
        isSoleKey: true,
      });

      expect(ruleFaults(createRules)).to.deep.equal([]);
      expect(createRules["rate"]).to.equal(`required|numeric|min:${bound}`);
    });
});
