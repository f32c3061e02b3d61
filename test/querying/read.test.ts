import { expect } from "chai";
import { createTextSql } from "../../src/db/text-sql.ts";
import type { Definition, Row } from "../../src/mapping/definition.ts";
import { always } from "../../src/querying/condition.ts";
import { linkOf } from "../../src/querying/links.ts";
import { readLinkedTo, readRecords } from "../../src/querying/read.ts";
import { rowOf, selectionOf } from "../../src/querying/selection.ts";
import { cpuMsOf } from "../support/cpu-time.ts";
import { databaseOfSuite } from "../support/own-database.ts";
import { definition, definitionsOf, field } from "../support/definitions.ts";

const definitions = definitionsOf(
  definition({ name: "places", isManaged: false, isView: true, fields: [field("town", "String")] }),
  definition({
    name: "visits",
    isManaged: false,
    fields: [
      field("place_id", "Int", {
        references: { resource: "places", field: "id", as: "place", onDelete: "restrict" },
      }),
    ],
  }),
);

describe("readRecords", () => {
  const database = databaseOfSuite({ poolSize: 1 });

  before(async () => {
    await database.pool.query(`
      CREATE VIEW places AS SELECT * FROM (VALUES (1, 'Ulm'), (1, 'Bonn'), (2, 'Kiel')) AS place (id, town);
      CREATE TABLE visits (id int PRIMARY KEY, place_id int NOT NULL);
      INSERT INTO visits VALUES (7, 1), (8, 1)`);
  });

  const places = definitions.get("places") as Definition;

  /** The places with the wanted fields of their visits. */
  async function placesWith(fields: ReadonlySet<string> | undefined): Promise<readonly Row[]> {
    const visits = { need: { fields, related: new Map() } };
    const need = { fields: undefined, related: new Map([["visits", visits]]) };
    const statement = selectionOf(places, definitions, need);
    const sql = createTextSql(database.pool, () => undefined);
    const rows = await readRecords(sql, statement, { condition: always });
    return rows.map((raw) => rowOf(statement.root, raw));
  }

  it("reads each related record once when two rows of a view have the same key", async () => {
    const visits = [
      { id: 7, place_id: 1 },
      { id: 8, place_id: 1 },
    ];

    expect(await placesWith(undefined)).to.deep.equal([
      { id: 1, town: "Ulm", visits },
      { id: 1, town: "Bonn", visits },
      { id: 2, town: "Kiel", visits: [] },
    ]);
  });

  it("counts related records without reading them", async () => {
    const rows = await placesWith(new Set());

    expect(rows.map(({ visits }) => visits)).to.deep.equal([[{}, {}], [{}, {}], []]);
  });

  it("takes time linear in the records of which it reads others", async () => {
    const [relation] = places.relations;
    if (relation === undefined) throw new Error("A place has no visits.");
    const link = linkOf(places, relation, definitions);
    const statement = selectionOf(link.target, definitions, { fields: undefined, related: new Map() });
    const values = Array.from({ length: 30_000 }, (_, index) => String(index + 1));
    const sql = createTextSql(database.pool, () => undefined);
    let lists: Awaited<ReturnType<typeof readLinkedTo>> = [];

    const cpuMs = await cpuMsOf(async () => {
      lists = await readLinkedTo(sql, { definition: places, link, statement }, values);
    });

    expect(lists.map(({ length }) => length).slice(0, 3)).to.deep.equal([2, 0, 0]);
    // Measured before: 1,500.
    expect(cpuMs).to.be.below(500);
  });
});
