import { expect } from "chai";
import { faultsOf, itRefuses, type Case } from "./mapping-folder.ts";

const values: readonly Case[] = [
  [
    "a text where the field is a number",
    "baseQuery: { where: { id: one } }",
    "8:27: baseQuery.where.id: expected a whole number of 32 bits",
  ],
  [
    "a number where the field is a text, within a NOT",
    "baseQuery: { where: { NOT: { title: { not: 5 } } } }",
    "8:44: baseQuery.where.NOT.title.not: expected a text",
  ],
  [
    "one wrong value among several",
    "baseQuery: { where: { id: { in: [1, 2147483648] } } }",
    "8:37: baseQuery.where.id.in[1]: expected a whole number of 32 bits",
  ],
  [
    "a value that no field of the related record can be",
    "baseQuery: { where: { customer: { code: none } } }",
    "8:41: baseQuery.where.customer.code: expected a UUID",
  ],
  [
    "a value that is none of an Enum",
    "  state: { type: Enum, values: [open, paid] }\nbaseQuery: { where: { state: opn } }",
    "9:30: baseQuery.where.state: expected one of open, paid",
  ],
  [
    "a word where the field is a time",
    "  made_at: { type: DateTime }\nbaseQuery: { where: { made_at: { gt: yesterday } } }",
    "9:38: baseQuery.where.made_at.gt: expected a time such as 2026-03-28T14:30:00Z",
  ],
  [
    "an amount that is none",
    "  amount: { type: Decimal, precision: 4, scale: 2 }\nbaseQuery: { where: { amount: { gte: much } } }",
    "9:38: baseQuery.where.amount.gte: expected a decimal number",
  ],
  [
    "a word where the field is true or false",
    "  is_paid: { type: Boolean }\nbaseQuery: { where: { is_paid: no } }",
    "9:32: baseQuery.where.is_paid: expected true or false",
  ],
  [
    "a wrong item of a list field",
    "  sizes: { type: Int, list: true }\nbaseQuery: { where: { sizes: { hasSome: [1, xl] } } }",
    "9:45: baseQuery.where.sizes.hasSome[1]: expected a whole number of 32 bits",
  ],
  [
    "a value in a rule of access",
    "access: { read: { OR: [{ id: $user.id }, { customer_id: mine }] } }",
    "8:57: access.read.OR[1].customer_id: expected a whole number of 32 bits",
  ],
];

describe("checkDefinitions, of a filter with a value that its field cannot have", () => {
  itRefuses(values);

  it("takes values that fit their fields", async () => {
    const orders = `name: orders
model: Order
triggers: []
fields:
  id: { type: BigInt, id: true }
  amount: { type: Decimal, precision: 4, scale: 2 }
  weight: { type: Float, optional: true }
  state: { type: Enum, values: [open, paid] }
  made_at: { type: DateTime }
  due_on: { type: Date }
  is_paid: { type: Boolean }
  tags: { type: String, list: true }
  key: { type: Uuid }
  what: { type: Json }
baseQuery:
  where:
    id: { notIn: [1, "9007199254740993"] }
    amount: { gte: 10000, lt: "100000.125" }
    weight: null
    state: { contains: ai }
    made_at: { gt: 2026-03-28, lt: "2026-03-29T00:00:00+02:00" }
    due_on: { gte: today }
    is_paid: false
    tags: { hasEvery: [a, b], isEmpty: false }
    key: { not: 00000000-0001-4C5C-81C2-264105A25AD0 }
    what: { equals: { a: 1 } }
`;

    expect(await faultsOf({ "orders.yaml": orders })).to.deep.equal([]);
  });
});
