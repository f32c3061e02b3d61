import { expect } from "chai";
import { Client } from "pg";
import { recordIdOf } from "../../src/events/record-id-sql.ts";
import { valueOf } from "../../src/querying/values.ts";
import { idOf } from "../../src/resources/record-id.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { definition, field } from "../support/definitions.ts";

const prices = definition({
  name: "prices",
  fields: [field("sku", "String", { isKey: true }), field("day", "Date", { isKey: true })],
});

describe("recordIdOf", () => {
  let database: TestDatabase;
  let client: Client;

  before(async () => {
    database = await createTestDatabase();
    client = new Client({ connectionString: database.url });
    await client.connect();
    // The capture functions set the same.
    await client.query("SET timezone = 'UTC'");
  });

  after(async () => {
    await client.end();
    await database.drop();
  });

  // The capture writes it within the writer's statement: NULL would refuse the write.
  for (const [day, shown] of [
    ["2026-03-28", "2026-03-28"],
    ["0044-03-15", "0044-03-15"],
    ["0044-03-15 BC", "0044-03-15%20BC"],
    ["infinity", "infinity"],
    ["-infinity", "-infinity"],
  ] as const)
    it(`writes the day ${day} of a key of several fields as ${shown}`, async () => {
      const { rows } = await client.query<{ id: string }>(
        `SELECT ${recordIdOf(prices, "t")} AS id FROM (SELECT 'A,1' AS sku, $1::date AS day) AS t`,
        [day],
      );

      expect(rows).to.deep.equal([{ id: `A%2C1,${shown}` }]);
    });

  it("encodes a text whose collation treats different texts as equal", async () => {
    await client.query(
      "CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
    );
    const { rows } = await client.query<{ id: string }>(
      `SELECT ${recordIdOf(prices, "t")} AS id FROM (SELECT 'aÄ,~1' COLLATE any_case AS sku, date '2026-03-28' AS day) AS t`,
    );

    expect(rows).to.deep.equal([{ id: "a%C3%84%2C~1,2026-03-28" }]);
  });

  it("keeps the blanks of a char(n), as answers do", async () => {
    const code = definition({ name: "codes", fields: [field("code", "String", { isKey: true })] });
    const { rows } = await client.query<{ one: string; of: string }>(
      `SELECT ${recordIdOf(code, "t")} AS one, ${recordIdOf(prices, "t")} AS of
       FROM (SELECT 'ab'::char(3) AS code, 'ab'::char(3) AS sku, date '2026-03-28' AS day) AS t`,
    );

    expect(rows).to.deep.equal([{ one: "ab ", of: "ab%20,2026-03-28" }]);
  });

  for (const [key, type, texts] of [
    [
      field("key", "Decimal", { isKey: true, scale: 2 }),
      "numeric",
      ["1.5", "1", "1.50", "1.234", "-0.005", "NaN"],
    ],
    [
      field("key", "Instant", { isKey: true }),
      "timestamptz",
      [
        "2026-03-28 14:30:00Z",
        "2026-03-28 14:30:00.12Z",
        "2026-03-28 14:30:00.1234Z",
        "2026-03-28 14:30:00.000001Z",
        "0044-03-15 BC",
        "infinity",
      ],
    ],
  ] as const)
    for (const text of texts)
      it(`writes the ${key.type} ${text} of a key as it is read`, async () => {
        const { rows } = await client.query<{ id: string; read: string }>(
          `SELECT ${recordIdOf(definition({ name: "prices", fields: [key] }), "t")} AS id, t.key::text AS read
           FROM (SELECT $1::${type} AS key) AS t`,
          [text],
        );
        const { id, read } = rows[0] as (typeof rows)[number];

        expect(id).to.equal(idOf(definition({ name: "prices", fields: [key] }), { key: valueOf(key, read) }));
      });
});
