import { PGlite } from "@electric-sql/pglite";
import { expect } from "chai";
import type { ClientBase } from "pg";
import type { Definition } from "../../src/mapping/definition.ts";
import { checkExistingTables } from "../../src/migration/existing-table.ts";
import { definition, field } from "../support/definitions.ts";

// PostgreSQL 18 has columns that are computed at each read; the embedded database is one.
describe("checkExistingTables of generated columns that are not stored", () => {
  let database: PGlite;

  before(async () => {
    database = await PGlite.create();
  });
  after(() => database.close());

  it("refuses them where events would show null in their place", async () => {
    await database.exec(`
      CREATE TABLE cards (id serial PRIMARY KEY, price int,
        gross int GENERATED ALWAYS AS (price + 19), net int GENERATED ALWAYS AS (price) STORED)`);
    const generated = { isGenerated: true, isOptional: true } as const;
    const cards = definition({
      name: "cards",
      isManaged: false,
      fields: [field("gross", "Int", generated), field("net", "Int", generated)],
    });
    const client = database as unknown as ClientBase;
    const faultsOf = async (one: Definition): Promise<readonly string[] | undefined> =>
      (await checkExistingTables(client, [one], [{ name: "cards", kind: "table", closed: null }]))[0]?.faults;

    const [fault, ...more] = (await faultsOf(cards)) ?? [];

    expect(more).to.deep.equal([]);
    expect(fault).to.match(/fields\.gross.*generated and not stored.*make it STORED/);
    expect(await faultsOf({ ...cards, triggers: [] })).to.deep.equal([]);
  });
});
