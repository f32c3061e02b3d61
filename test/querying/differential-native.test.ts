import { expect } from "chai";
import { Client } from "pg";
import { conditionText, createParameters } from "../../src/querying/condition-text.ts";
import { readListParameters } from "../../src/querying/list-parameters.ts";
import { orderText } from "../../src/querying/order.ts";
import { listShapeOf } from "../../src/querying/shown-paths.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { definition, definitionsOf, field, keyField } from "../support/definitions.ts";
import { createRandom, pick } from "../support/random.ts";

const seed = Number(process.env["SVC_TEST_SEED"] ?? Date.now() % 1_000_000);

/** Types that the Prisma client lacks, with different and equal values. */
const values: Readonly<Record<string, readonly string[]>> = {
  interval: ["PT0S", "P1D", "PT24H", "P1M", "P30D", "P-3D", "P1Y2M3DT4H5M6.789S", "P1DT-1H"],
  macaddr: ["08:00:2b:01:02:03", "08002b010203", "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"],
  cidr: ["10.0.0.0/8", "10.0.0.0/16", "::/0", "192.168.0.0/24"],
  point: ["(1,2)", "(1.50,-2)", "(0,0)"],
  box: ["(1,1),(0,0)", "(2,2),(1,1)"],
  tsvector: ["'a' 'b'", "'a':1 'b':2", ""],
};
/** Compared by their text in answers: PostgreSQL has no order for them. */
const unordered = ["point", "box"];

const types = Object.keys(values);
const things = definition({
  name: "things",
  fields: [
    keyField(),
    ...types.map((type) =>
      type === "interval"
        ? field(type, "Interval", { isOptional: true })
        : field(type, "String", { isOptional: true, native: type }),
    ),
  ],
});
const shape = listShapeOf(things, definitionsOf(things));

/** Returns the expected result, from the operator and the types of PostgreSQL alone. */
function expected(type: string, operator: string, operands: readonly string[]): string {
  const as = unordered.includes(type) ? "text" : type;
  const column = `${type}::${as}`;
  const list = operands.map((operand) => `'${operand.replaceAll("'", "''")}'::${as}`).join(", ");
  const signs: Readonly<Record<string, string>> = {
    eq: "=",
    ne: "<>",
    lt: "<",
    lte: "<=",
    gt: ">",
    gte: ">=",
  };
  if (operator === "null") return `${type} IS NULL`;
  if (operator === "between") return `${column} BETWEEN ${list.replace(", ", " AND ")}`;
  if (operator === "in") return `${column} IN (${list})`;
  if (operator === "not_in") return `${column} NOT IN (${list})`;
  return `${column} ${signs[operator]} ${list}`;
}

describe(`filters and orders of intervals and native types, with seed ${seed}`, () => {
  let database: TestDatabase;
  let client: Client;

  before(async () => {
    database = await createTestDatabase();
    client = new Client({ connectionString: database.url });
    await client.connect();
    await client.query("SET intervalstyle = iso_8601");
    await client.query(
      `CREATE TABLE things (id serial PRIMARY KEY, ${types.map((type) => `${type} ${type}`).join(", ")})`,
    );
    const random = createRandom(seed);
    for (let count = 0; count < 60; count += 1)
      await client.query(
        `INSERT INTO things (${types.join(", ")}) VALUES (${types.map((_, at) => `$${at + 1}`).join(", ")})`,
        types.map((type) => pick(random, [null, ...(values[type] ?? [])])),
      );
  });

  after(async () => {
    await client.end();
    await database.drop();
  });

  const idsOf = async (text: string, given: readonly unknown[] = []): Promise<unknown[]> =>
    (await client.query<{ id: number }>(text, [...given])).rows.map(({ id }) => id);

  it("are those of the same SQL written by hand, for 400 lists", async () => {
    const random = createRandom(seed + 1);
    for (let count = 0; count < 400; count += 1) {
      const type = pick(random, types);
      const operators = ["eq", "ne", "in", "not_in", "null"];
      if (!unordered.includes(type)) operators.push("lt", "lte", "gt", "gte", "between");
      const operator = pick(random, operators);
      const some = (): string => pick(random, values[type] ?? []);
      const operands = ["in", "not_in", "between"].includes(operator) ? [some(), some()] : [some()];
      const sorted = pick(
        random,
        types.filter((one) => !unordered.includes(one)),
      );
      const sign = pick(random, ["", "-"]);
      const written = operands.map((one) => one.replaceAll(",", "\\,")).join(",");
      const query = `filter[${type}][${operator}]=${operator === "null" ? "true" : encodeURIComponent(written)}&sort=${sign}${sorted}`;

      const { filter, sort = [] } = readListParameters(query, shape, { maxPerPage: 15 });
      const parameters = createParameters();
      const where = conditionText(filter, "t", parameters);
      const text = `SELECT id FROM things AS t WHERE ${where} ORDER BY ${orderText(sort, () => "t")}, id`;
      const byHand = `SELECT id FROM things WHERE ${expected(type, operator, operands)}
        ORDER BY ${sorted} ${sign === "-" ? "DESC" : "ASC"} NULLS LAST, id`;

      expect(await idsOf(text, parameters.values), query).to.deep.equal(await idsOf(byHand));
    }
  });
});
