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
    "a text that cannot be stored",
    'baseQuery: { where: { OR: [{ title: "a\\0" }, { title: { contains: "\\0" } }] } }',
    "8:37: baseQuery.where.OR[0].title: expected a text without NUL characters",
    "8:67: baseQuery.where.OR[1].title.contains: expected a text without NUL characters",
  ],
  [
    "filters and parts that Prisma refuses",
    "baseQuery: { where: { OR: { title: a }, title: { contains: a, mode: lower } }, include: { customer: { include: { orders: { skip: -1 } } } } }",
    "8:27: baseQuery.where.OR: expected a list of filters",
    "8:69: baseQuery.where.title.mode: expected default or insensitive",
    "8:130: baseQuery.include.customer.include.orders.skip: expected a whole number from 0 on",
  ],
  [
    "comparisons of a Json field that Prisma refuses",
    "  a: { type: Json }\n  b: { type: Json }\n  c: { type: Json }\nbaseQuery: { where: { a: 5, b: { path: [x], mode: default }, c: { path: $.x, equal: 1, string_contains: 5, gt: null, mode: lower } } }",
    "11:26: baseQuery.where.a: expected a comparison, such as { path: [plan], equals: pro }",
    "11:32: baseQuery.where.b: expected a comparison, such as { path: [plan], equals: pro }",
    "11:73: baseQuery.where.c.path: expected a list of texts",
    '11:78: baseQuery.where.c.equal: unknown comparison; did you mean "equals"?',
    "11:105: baseQuery.where.c.string_contains: expected a text",
    "11:112: baseQuery.where.c.gt: expected a number or a text",
    "11:124: baseQuery.where.c.mode: expected default or insensitive",
  ],
  [
    "comparisons of Json fields that neither Prisma nor PostgreSQL can make",
    "  a: { type: Json }\n  b: { type: Json, list: true }\n  c: { type: Json, list: true }\nbaseQuery: { where: { a: { string_contains: x, mode: insensitive }, b: [], c: { in: [1] } } }",
    "11:45: baseQuery.where.a.string_contains: expected `path` beside it, which `mode: insensitive` needs",
    "11:72: baseQuery.where.b: expected a comparison, such as { has: pro }",
    "11:81: baseQuery.where.c.in: unknown comparison; expected one of equals, has, hasEvery, hasSome, isEmpty",
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
    "a time of a day that no month has, or without a day",
    "  made_at: { type: DateTime }\nbaseQuery: { where: { made_at: { in: [2026-02-30, March 2026] } } }",
    "9:39: baseQuery.where.made_at.in[0]: expected a time such as 2026-03-28T14:30:00Z",
    "9:51: baseQuery.where.made_at.in[1]: expected a time such as 2026-03-28T14:30:00Z",
  ],
  [
    "a word where the field is a day or a time of day, and a day that no month has",
    "  due_on: { type: Date }\n  opens: { type: Time }\nbaseQuery: { where: { OR: [{ due_on: tomorow }, { due_on: 2026-02-30 }, { opens: today }, { opens: '25:00' }] } }",
    "10:38: baseQuery.where.OR[0].due_on: expected a day such as 2026-03-28",
    "10:59: baseQuery.where.OR[1].due_on: expected a day such as 2026-03-28",
    "10:82: baseQuery.where.OR[2].opens: expected a time of day such as 14:30:00",
    "10:100: baseQuery.where.OR[3].opens: expected a time of day such as 14:30:00",
  ],
  [
    "a word where the field is a time that is unique",
    "  made_at: { type: DateTime, unique: true }\nbaseQuery: { where: { made_at: { gt: yesteday } } }",
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
    "null among several values, and where it is compared in size",
    "baseQuery: { where: { OR: [{ id: { in: [1, null] } }, { id: { gt: null } }] } }",
    "8:44: baseQuery.where.OR[0].id.in[1]: expected a whole number of 32 bits",
    "8:67: baseQuery.where.OR[1].id.gt: expected a whole number of 32 bits",
  ],
  [
    "several values where one is compared",
    "baseQuery: { where: { id: { not: [1] } } }",
    "8:34: baseQuery.where.id.not: expected one value, or { in: [...] }",
  ],
  [
    "one value of a list field where several are compared, and the other way round",
    "  sizes: { type: Int, list: true }\nbaseQuery: { where: { OR: [{ sizes: 1 }, { sizes: { hasEvery: 1 } }, { sizes: { has: [1] } }] } }",
    "9:37: baseQuery.where.OR[0].sizes: expected a list of values",
    "9:63: baseQuery.where.OR[1].sizes.hasEvery: expected a list of values",
    "9:86: baseQuery.where.OR[2].sizes.has: expected one value",
  ],
  [
    "bytes that are no text",
    "  seal: { type: Bytes }\nbaseQuery: { where: { seal: 5 } }",
    "9:29: baseQuery.where.seal: expected base64",
  ],
  [
    "a value in a rule of access",
    "access: { read: { OR: [{ id: $user.id }, { customer_id: mine }] } }",
    "8:57: access.read.OR[1].customer_id: expected a whole number of 32 bits",
  ],
];

describe("checkDefinitions, of a filter with a value that its field cannot have", () => {
  itRefuses(values);

  it("accepts values that fit their fields", async () => {
    const orders = `name: orders
model: Order
triggers: []
fields:
  id: { type: BigInt, id: true }
  amount: { type: Decimal, precision: 4, scale: 2 }
  weight: { type: Float, optional: true }
  width: { type: Float, optional: true }
  state: { type: Enum, values: [open, paid] }
  made_at: { type: DateTime }
  due_on: { type: Date }
  opens: { type: Time }
  is_paid: { type: Boolean }
  tags: { type: String, list: true }
  key: { type: Uuid }
  what: { type: Json }
baseQuery:
  where:
    id: { notIn: [1, "9007199254740993"] }
    amount: { gte: 10000, gt: 0.0000001, lt: "100000.125", lte: 1e21, not: "NaN" }
    weight: { not: null, lt: .inf }
    width: null
    state: { contains: ai }
    made_at: { gt: 2026-03-28, lt: "2026-03-29T00:00:00+02:00" }
    due_on: { in: [today, -infinity, 28 March 2026, 2028-02-29, 0044-03-15 BC], not: Mar-28-2026 }
    opens: { in: [now, "14:30", "24:00:00", 2:30 PM], not: "04:05:06.789-08" }
    is_paid: false
    tags: { hasEvery: [a, b], has: null, isEmpty: false }
    key: { not: 00000000-0001-4C5C-81C2-264105A25AD0, in: [0000000000014C5C81C2264105A25AD0] }
    what: { equals: { a: 1 } }
`;

    expect(await faultsOf({ "orders.yaml": orders })).to.deep.equal([]);
  });
});

function hosts(isManaged: boolean): string {
  return `name: hosts
model: Host
managed: ${isManaged}
triggers: []
fields:
  id: { type: Int, id: true }
  mac: { type: String, native: macaddr, unique: true }
  next: { type: String, native: macaddr, references: hosts.mac, as: follower }
`;
}

describe("checkDefinitions, of native types", () => {
  it("refuses them at both ends of a reference, where a managed table has one", async () => {
    expect(await faultsOf({ "hosts.yaml": hosts(false) })).to.deep.equal([]);
    expect(await faultsOf({ "hosts.yaml": hosts(true) })).to.deep.equal([
      "hosts.yaml:8:54: fields.next.references: a managed table has no reference of the type macaddr, which next has",
    ]);
  });

  it("refuses an index of values that PostgreSQL does not compare", async () => {
    const xml = hosts(true)
      .replaceAll("macaddr", "xml")
      .replace(/references.*$/m, "index: true }");

    expect(await faultsOf({ "hosts.yaml": xml })).to.deep.equal([
      "hosts.yaml:7:45: fields.mac.unique: is for types that PostgreSQL compares only",
      "hosts.yaml:8:45: fields.next.index: is for types that PostgreSQL compares only",
    ]);

    const many = "unique: [[id, mac]]\nindexes: [{ fields: [next] }]\n";
    const plain = hosts(true)
      .replaceAll("macaddr", "xml")
      .replace(/, (?:unique|references).*$/gm, " }");
    expect(await faultsOf({ "hosts.yaml": plain + many })).to.deep.equal([
      "hosts.yaml:9:15: unique[0][1]: PostgreSQL does not compare xml",
      "hosts.yaml:10:22: indexes[0].fields[0]: PostgreSQL does not compare xml",
    ]);
  });
});
