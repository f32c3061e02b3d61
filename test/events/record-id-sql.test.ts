import { expect } from "chai";
import { Client } from "pg";
import { recordIdOf } from "../../src/events/record-id-sql.ts";
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
});
