import { expect } from "chai";
import { checkReferences } from "../../src/resources/references.ts";
import { compileRules } from "../../src/validation/validate.ts";
import { definition, definitionsOf, field, ownersOnly } from "../support/definitions.ts";

const access = { ...ownersOnly, reference: { kind: "owner" } } as const;
const references = { resource: "customers", field: "id", as: "customer", onDelete: "restrict" } as const;
const orders = definition({ name: "orders", fields: [field("customer_id", "Int", { references })] });
const definitions = definitionsOf(
  definition({ name: "customers", fields: [field("code", "Int")], access }),
  orders,
);

describe("checkReferences", () => {
  for (const [column, isAsked] of [
    ["id", false],
    ["code", true],
  ] as const)
    it(`asks ${isAsked ? "" : "nothing "}beside a rule about the column ${column}`, async () => {
      let asked = 0;
      const exists = async (): Promise<boolean> => (asked += 1) > 0;
      const rules = compileRules({ customer_id: `exists:customers,${column}` });

      await checkReferences({
        definition: orders,
        definitions,
        rules,
        data: { customer_id: 1 },
        lookup: { exists },
      });

      expect(asked > 0).to.equal(isAsked);
    });
});
