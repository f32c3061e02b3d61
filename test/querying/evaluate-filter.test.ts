import { Decimal } from "@prisma/client/runtime/client";
import { expect } from "chai";
import { Client } from "pg";
import type { Row } from "../../src/mapping/definition.ts";
import { conditionText, createParameters } from "../../src/querying/condition-text.ts";
import type { Condition } from "../../src/querying/condition.ts";
import { compileFilter } from "../../src/querying/evaluate-filter.ts";
import { filterCondition } from "../../src/querying/filter-condition.ts";
import { createJudgedRecord } from "../../src/querying/judged-record.ts";
import { readJsonFilter, type JsonFilter } from "../../src/querying/webhook-filter.ts";
import { operatorsOf } from "../../src/querying/operators.ts";
import { listShapeOf } from "../../src/querying/shown-paths.ts";
import { createTransform } from "../../src/querying/transform.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { definition, definitionsOf, field } from "../support/definitions.ts";
import { listShop } from "../support/list-shop.ts";
import { databaseOfSuite } from "../support/own-database.ts";
import { createRandom, pick } from "../support/random.ts";
import { shopTables } from "../support/shop-tables.ts";

const { definitions, orders, shape } = listShop();
const places = shape.places ?? new Map();

const ada = { id: 1, name: "Ada", secret: "s", vip: true };
const nameless = { id: 2, name: null, secret: "s", vip: null };
const line = (sku: string, quantity: number | null): Row => ({ id: 1, order_id: 1, sku, quantity });
const nothing = { logs: [], blob: null, hidden: "x" };

/** The rows of `shopTables`, as Prisma returns them. */
const rows: readonly Row[] = [
  {
    ...nothing,
    id: 1,
    reference: "A-1",
    status: "open",
    amount: new Decimal("10.50"),
    weight: 0.5,
    serial: 9007199254740993n,
    is_urgent: true,
    due_at: new Date("2026-03-28T12:30:00Z"),
    token: "0a1b2c3d-0000-4000-8000-000000000000",
    tags: ["a", "b"],
    meta: { plan: "Pro", seats: 5, none: null },
    customer_id: 1,
    customer: ada,
    lines: [line("x", 1), line("y", null)],
  },
  {
    ...nothing,
    id: 2,
    reference: "a_2",
    status: "paid",
    amount: new Decimal(20),
    weight: 2,
    serial: 2n,
    is_urgent: false,
    due_at: new Date("2026-03-29T00:00:00Z"),
    token: null,
    tags: ["b", "c,d"],
    meta: { plan: "free", tags: ["x"] },
    customer_id: 2,
    customer: nameless,
    lines: [line("x", 7)],
  },
  {
    ...nothing,
    id: 3,
    reference: "100%\\",
    status: "shipped",
    amount: null,
    weight: NaN,
    serial: null,
    is_urgent: null,
    due_at: null,
    token: null,
    tags: [],
    meta: null,
    customer_id: null,
    customer: null,
    lines: [],
  },
  {
    ...nothing,
    id: 4,
    reference: "",
    status: "open",
    amount: new Decimal(0),
    weight: -1,
    serial: -1n,
    is_urgent: false,
    due_at: new Date("0001-01-01T00:00:00Z"),
    token: null,
    // It is NULL in the table.
    tags: [],
    meta: "text",
    customer_id: 1,
    customer: ada,
    lines: [],
  },
];

const values: Readonly<Record<string, readonly unknown[]>> = {
  id: [1, 2, 3, "4"],
  reference: ["", "A", "a-", "_", "%", "\\", "100%\\", "2"],
  status: ["open", "paid", "shipped"],
  amount: [0, "10.5", 10.505, "20.000", "1e900"],
  weight: [0.5, -1, 2, "0.50"],
  serial: ["9007199254740993", "9007199254740992", 2, -1],
  urgent: [true, false, "1"],
  due_at: ["2026-03-28T14:30:00+02:00", "2026-03-29", "0001-01-01"],
  token: ["0A1B2C3D-0000-4000-8000-000000000000", "ffffffff-0000-4000-8000-000000000000"],
  tags: ["a", "b", "c,d", "z"],
  "meta.plan": ["Pro", "free", "PR"],
  "meta.seats": [5, "5"],
  "meta.tags": ['["x"]', "x"],
  "meta.tags.0": ["x"],
  "meta.none": ["x"],
  "customer.name": ["Ada", "ad", "Bob"],
  "customer.more.vip": [true, false],
  "lines.sku": ["x", "y", "z"],
  "lines.quantity": [1, 7, 9],
};
const paths = Object.keys(values);
const ordering = ["lt", "lte", "gt", "gte", "between"];

function read(filter: unknown, table = shape.filterable): JsonFilter {
  const answer = readJsonFilter(filter, table);
  if ("faults" in answer) throw new Error(JSON.stringify([filter, ...answer.faults]));
  return answer.filter;
}

describe("compileFilter", () => {
  let database: TestDatabase;
  let client: Client;
  const transform = createTransform(orders, definitions);
  // As a receiver reads it: through the text of JSON.
  const records = rows.map((row): unknown => JSON.parse(JSON.stringify(transform(row))));

  before(async () => {
    database = await createTestDatabase();
    client = new Client({ connectionString: database.url });
    await client.connect();
    await client.query(shopTables);
  });

  after(async () => {
    await client.end();
    await database.drop();
  });

  const inProcess = (filter: JsonFilter): readonly number[] => {
    const passes = compileFilter(filter, places);
    return records.flatMap((record, index) =>
      passes({ record: createJudgedRecord(record), steps: { left: 100_000 } }) ? [index + 1] : [],
    );
  };
  const inDatabase = async (filter: JsonFilter): Promise<readonly number[]> => {
    const parameters = createParameters();
    const where = conditionText(conditionOf(filter), "t", parameters);
    const found = await client.query<{ id: number }>(
      `SELECT id FROM orders AS t WHERE ${where} ORDER BY id`,
      [...parameters.values],
    );
    return found.rows.map(({ id }) => id);
  };

  it("finds the same as SQL, for 600 filters of every path and operator, in groups and under not", async () => {
    const random = createRandom(7);
    const condition = (): unknown => {
      const path = pick(random, paths);
      const shown = [...shape.filterable.paths.values()].find((one) => one.path === path.split(".")[0]);
      const found = shape.filterable.paths.get(path) ?? shown;
      if (found === undefined) throw new Error(path);
      const isText = found.field.type === "String" || found.field.type === "Json";
      const fitting = operatorsOf(found).filter((one) => !isText || !ordering.includes(one));
      const operator = pick(random, fitting);
      if (operator === "null") return { [path]: { null: random() < 0.5 } };
      const [one, other] = [pick(random, values[path] ?? []), pick(random, values[path] ?? [])];
      if (operator === "between") return { [path]: { between: [one, other] } };
      const several = ["in", "not_in", "has_any", "has_all"].includes(operator);
      return { [path]: { [operator]: several ? [one, other] : one } };
    };
    const group = (depth: number): unknown => {
      const kind = depth === 0 ? "one" : pick(random, ["one", "one", "or", "and", "not"]);
      if (kind === "one") return condition();
      if (kind === "not") return { not: group(depth - 1) };
      return { [kind]: [group(depth - 1), group(depth - 1)] };
    };
    for (let count = 0; count < 600; count++) {
      const given = group(count % 4);
      const filter = read(given);

      expect(inProcess(filter), JSON.stringify(given)).to.deep.equal(await inDatabase(filter));
    }
  });

  for (const [filter, ...ids] of [
    [{ status: "open", amount: { gte: 10 } }, 1],
    [{ status: ["open", "paid"] }, 1, 2, 4],
    [{ amount: { gt: 0, lt: 20 } }, 1],
    [{ or: [{ "lines.sku": "y" }, { "customer.name": { null: true } }] }, 1, 2, 3],
    [{ not: { "lines.sku": "x" } }, 3, 4],
    [{ serial: "9007199254740993" }, 1],
    [{ "meta.tags": '["x"]' }, 2],
  ] as const) {
    it(`finds ${ids.join(", ")} by ${JSON.stringify(filter)}`, async () => {
      expect(inProcess(read(filter))).to.deep.equal(ids);
      expect(await inDatabase(read(filter))).to.deep.equal(ids);
    });
  }
});

describe("readJsonFilter", () => {
  const nested = { not: { not: { not: { not: { id: 1 } } } } };
  const many = { or: Array.from({ length: 51 }, () => ({ id: 1 })) };
  for (const [filter, place, message] of [
    ["x", "", "A filter is an object of paths and conditions."],
    [{}, "", "A filter has at least one condition."],
    [many, "", "A filter may have at most 50 conditions."],
    [nested, "not.not.not.not", "Groups may be at most 3 deep."],
    [{ or: [] }, "or", "The group or is empty."],
    [{ "": 5 }, "", "A path is missing."],
    [{ amuont: 5 }, "amuont", "There is no field amuont; did you mean amount?"],
    [{ "meta.\ud800": 5 }, "meta.\ud800", "There is no field meta.\ud800"],
    [{ or: [{ hidden: 1 }] }, "or.0.hidden", "There is no field hidden"],
    [{ amount: { gtt: 5 } }, "amount.gtt", "There is no operator gtt; did you mean gt?"],
    [{ tags: "a" }, "tags", "The operator eq is not for tags"],
    [
      { reference: { gt: "a" } },
      "reference.gt",
      "is not for reference in a filter of webhooks; expected one of eq, ne, in, not_in, null, contains, starts_with, ends_with.",
    ],
    [{ amount: { gte: "x" } }, "amount.gte", "The value of amount must be a number."],
    [{ amount: { between: [1] } }, "amount.between", "between takes two values."],
    [{ amount: { gt: [1, 2] } }, "amount.gt", "gt takes one value."],
    [{ amount: { in: [] } }, "amount.in", "in takes at least one value."],
    [{ amount: {} }, "amount", "A condition has at least one operator."],
    [{ not: [{ amount: 1 }] }, "not", 'The group not is written as {"not": {…}}, with one filter.'],
    [{ or: { amount: 1 } }, "or", 'The group or is written as {"or": [{…}, {…}]}, with a list of filters.'],
    [{ amount: null }, "amount", 'must not be null; to ask for null, write {"null": true}.'],
    [{ amount: { null: "yes" } }, "amount.null", "The value of null must be true or false."],
    [{ serial: 2 ** 53 }, "serial", "loses digits as a JSON number; write it as a text."],
    [{ id: { in: Array.from({ length: 101 }, () => 1) } }, "id.in", "at most 100 values"],
    [{ customer: "x" }, "customer", "The field customer cannot be filtered: it is an object."],
  ] as const) {
    it(`refuses ${JSON.stringify(filter).slice(0, 60)}`, () => {
      const answer = readJsonFilter(filter, shape.filterable);

      expect("faults" in answer && (answer.faults.get(place) ?? [...answer.faults])).to.contain(message);
    });
  }
});

describe("compileFilter on a text with a length", () => {
  const codes = definition({ name: "codes", fields: [field("code", "String", { length: 5 })] });
  const { filterable, places: placesOfCodes = new Map() } = listShapeOf(codes, definitionsOf(codes));
  const database = databaseOfSuite({ poolSize: 1 });

  for (const [filter, stored, isPassed] of [
    [{ code: "ab" }, "'ab'::char(5)", true],
    [{ code: ["x", "ab"] }, "'ab'::char(5)", true],
    [{ code: "ab   " }, "'ab'::char(5)", true],
    [{ code: { ne: "ab" } }, "'ab'::char(5)", false],
    [{ code: "a" }, "'ab'::char(5)", false],
    [{ code: "ab" }, "E'ab\\t'::char(5)", false],
    [{ code: "ab" }, "'ab '::varchar(5)", false],
    [{ code: { ends_with: "b" } }, "'ab'::char(5)", true],
    [{ code: { ends_with: "ab   " } }, "'ab'::char(5)", false],
    [{ code: { contains: "b " } }, "'ab'::char(5)", false],
  ] as const) {
    it(`ignores the blanks of a char(5), as SQL does: ${JSON.stringify(filter)} of ${stored}`, async () => {
      const wanted = read(filter, filterable);
      const parameters = createParameters();
      const where = conditionText(conditionOf(wanted), "t", parameters);
      const text = `SELECT code, (${where}) AS "isPassed" FROM (SELECT ${stored}) AS t (code)`;
      const { rows: found } = await database.pool.query<{ isPassed: boolean }>(text, [...parameters.values]);

      const record = createJudgedRecord(found[0]);

      expect(compileFilter(wanted, placesOfCodes)({ record, steps: { left: 1000 } })).to.equal(isPassed);
      expect(found[0]?.isPassed).to.equal(isPassed);
    });
  }
});

describe("compileFilter on a native type", () => {
  const types = ["citext", "inet", "cidr", "macaddr", "macaddr8"];
  const natives = definition({
    name: "natives",
    fields: types.flatMap((native) => [
      field(native, "String", { native }),
      field(`${native}s`, "String", { native, isList: true }),
    ]),
  });
  const { filterable, places: placesOfNatives = new Map() } = listShapeOf(natives, definitionsOf(natives));
  const database = databaseOfSuite({ poolSize: 1 });

  before(() => database.pool.query("CREATE EXTENSION citext"));

  for (const [type, stored, asked] of [
    ["citext", "CaSe ÄΣ", ["CaSe ÄΣ", "case äσ", "CASE", "case äς"]],
    ["inet", "10.0.0.1", ["10.0.0.1", "10.0.0.1/32", "10.0.0.1/8", "::1"]],
    ["inet", "10.0.0.1/8", ["10.0.0.1", "10.0.0.1/8", "10.0.0.2/8"]],
    ["inet", "::1/64", ["0::1/64", "0:0::0:1/64", "::1", "::1/128"]],
    ["inet", "::FFFF:10.0.0.1", ["::ffff:a00:1", "10.0.0.1", "::ffff:10.0.0.1/128"]],
    ["cidr", "10.0.0.1/32", ["10.0.0.1", "10.0.0.1/32", "10.0.0.0/31"]],
    ["macaddr", "08:00:2b:01:02:0a", ["08002b01020A", "08-00-2B-01-02-0a", "0800.2b01.020a"]],
    ["macaddr8", "08:00:2b:01:02:03:04:05", ["08002b0102030405", "08-00-2B-01-02-03-04-06"]],
    ["macaddr8", "08:00:2b:ff:fe:01:02:03", ["08:00:2b:01:02:03", "08002B010203"]],
    ["cidr", "2001:db8::/32", ["2001:DB8::/32", "2001:db8::/33"]],
  ] as const) {
    it(`decides as SQL on a ${type} of ${stored}`, async () => {
      const row = `SELECT '${stored}'::${type} AS ${type}, ARRAY['${stored}', NULL]::${type}[] AS ${type}s`;
      const { rows: found } = await database.pool.query<{ data: unknown }>(
        `SELECT to_json(t) AS data FROM (${row}) AS t`,
      );
      const equal = ["eq", "ne", "in", "not_in"];
      const parts = ["contains", "starts_with", "ends_with"];
      const filters = [
        ...parts.flatMap((operator) => [{ [type]: { [operator]: "0" } }, { [type]: { [operator]: "::1" } }]),
        ...asked.flatMap((value) => [
          ...[...equal, ...parts].map((operator) => ({ [type]: { [operator]: value } })),
          ...["has", "has_any", "has_all"].map((operator) => ({ [`${type}s`]: { [operator]: value } })),
        ]),
      ];
      for (const filter of filters) {
        const wanted = read(filter, filterable);
        const parameters = createParameters();
        const where = conditionText(conditionOf(wanted), "t", parameters);
        const { rowCount } = await database.pool.query(`SELECT FROM (${row}) AS t WHERE ${where}`, [
          ...parameters.values,
        ]);
        const evaluation = { record: createJudgedRecord(found[0]?.data), steps: { left: 10_000 } };

        const isPassed = compileFilter(wanted, placesOfNatives)(evaluation);
        expect(isPassed, JSON.stringify(filter)).to.equal(rowCount === 1);
      }
    });
  }
});

describe("readJsonFilter of a native type", () => {
  const natives = definition({
    name: "natives",
    fields: ["inet", "cidr", "macaddr", "macaddr8"].flatMap((native) => [
      field(native, "String", { native }),
      field(`${native}s`, "String", { native, isList: true }),
    ]),
  });
  const { filterable } = listShapeOf(natives, definitionsOf(natives));
  const database = databaseOfSuite({ poolSize: 1 });

  for (const [native, message, refused] of [
    ["inet", "be an address", ["x", "", "10.0.0.1/33", "10.0.0", "::1/129", "fe80::1%eth0", "10.0.0.1/"]],
    ["cidr", "be a network without bits to the right of its mask", ["x", "10.0.0.1/8", "2001:db8::1/32"]],
    ["macaddr", "be a hardware address", ["x", "08:00:2b:01:02", "08:00:2b:01:02:03:04:05"]],
    ["macaddr8", "be a hardware address", ["x", "08:00:2b:01:02", "08:00:2b:01:02:03:04"]],
  ] as const)
    for (const value of refused)
      it(`refuses the ${native} ${JSON.stringify(value)}, as PostgreSQL does, but no part of a text`, async () => {
        const faults = [
          { [native]: value },
          { [native]: { ne: value } },
          { [`${native}s`]: { has: value } },
        ].map((filter) => readJsonFilter(filter, filterable));
        const part = readJsonFilter({ [native]: { contains: value } }, filterable);

        for (const answer of faults)
          expect("faults" in answer && [...answer.faults.values()].join()).to.contain(message);
        expect(part).to.have.property("filter");
        const asked = database.pool.query(`SELECT $1::${native}`, [value]);
        expect(await asked.catch((error: unknown) => error)).to.be.an("error");
      });
});

/** Returns the condition that a list would send to PostgreSQL for the same filter. */
function conditionOf(filter: JsonFilter): Condition {
  switch (filter.kind) {
    case "test":
      return filterCondition(filter.shown, filter.operator, filter.values);
    case "not":
      return { kind: "not", of: conditionOf(filter.of) };
    case "all":
    case "any":
      return { kind: filter.kind, of: filter.of.map(conditionOf) };
  }
}
