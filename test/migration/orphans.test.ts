import { expect } from "chai";
import type { Definition, Field } from "../../src/mapping/definition.ts";
import { findOrphans } from "../../src/migration/orphans.ts";
import { readStatement } from "../../src/migration/statements.ts";
import { definition, definitionsOf, field, keyField } from "../support/definitions.ts";
import { sceneOfSuite } from "../support/migration-scene.ts";

const coded = field("code", "String", { isUnique: true, isOptional: true, length: 9 });
const halls = definition({ name: "halls", table: "hall.halls", fields: [coded] });

/** Seats with a hall and a code of it; `given` changes either field. */
function seatsWith(given: Readonly<Record<string, Partial<Field>>> = {}): Definition {
  const fields = [
    keyField("number"),
    field("hall_id", "Int", { isOptional: true, ...given["hall_id"] }),
    field("code", "String", { isOptional: true, ...given["code"] }),
  ];
  return definition({ name: "seats", fields });
}

function to(resource: string, name = "id"): Pick<Field, "references"> {
  return { references: { resource, field: name, as: `${resource}_${name}`, onDelete: "restrict" } };
}

describe("findOrphans", function () {
  this.timeout(30_000);
  const scene = sceneOfSuite();
  const orphansOfHallId = (target: string): ReturnType<typeof findOrphans> => {
    const sql = `ALTER TABLE "seats" ADD CONSTRAINT "a" FOREIGN KEY ("hall_id") REFERENCES ${target}("id")`;
    return findOrphans({ client: scene.client, statements: [readStatement(sql)], objects: [] });
  };

  before(async () => {
    await scene.migrate(definitionsOf(halls, seatsWith()));
    await scene.client.query(`
      INSERT INTO hall.halls (id, code) VALUES (1, 'a'), (2, NULL);
      INSERT INTO seats (number, hall_id, code) VALUES (1, 1, 'a'), (2, NULL, NULL), (3, 7, 'secret'), (4, 8, 'a')`);
  });

  it("counts the rows without a target, and names one by its key", async () => {
    const byId = definitionsOf(halls, seatsWith({ hall_id: to("halls") }));
    const byCode = definitionsOf(halls, seatsWith({ code: to("halls", "code") }));

    const plans = [await scene.plan(byId), await scene.plan(byCode)];

    expect(plans.flatMap(({ impossible }) => impossible)).to.deep.equal([
      "The column hall_id of the table seats is to refer to id of the table hall.halls, and 2 rows have a value that is not there, for example the row with number 3. Change the values or add what they refer to first.",
      "The column code of the table seats is to refer to code of the table hall.halls, and 1 row has a value that is not there, for example the row with number 3. Change the values or add what they refer to first.",
    ]);
    expect(await scene.apply(byId, true)).to.match(/do not allow the migration; nothing was changed/);
  });

  it("counts the rows of a column that is altered in the same plan", async () => {
    const altered = seatsWith({ code: { length: 20, ...to("halls", "code") } });

    const { impossible } = await scene.plan(definitionsOf(halls, altered));

    expect(impossible).to.have.length(1);
    expect(impossible[0]).to.include("and 1 row has a value that is not there");
  });

  it("counts no rows of a table that inherits, and finds no value in one", async () => {
    await scene.client.query(`
      CREATE TABLE hall.annexes () INHERITS (hall.halls); INSERT INTO hall.annexes (id) VALUES (8);
      CREATE TABLE folding () INHERITS (seats); INSERT INTO folding (number, hall_id) VALUES (9, 9), (10, 9)`);
    const { impossible } = await scene.plan(definitionsOf(halls, seatsWith({ hall_id: to("halls") })));
    await scene.client.query("DROP TABLE hall.annexes, folding");

    expect(impossible).to.have.length(1);
    expect(impossible[0]).to.include("and 2 rows have a value that is not there");
  });

  it("reads none of the columns that are hidden from the role", async () => {
    const role = "svc_test_counts";
    await scene.client.query(`
      CREATE ROLE ${role}; GRANT USAGE ON SCHEMA hall TO ${role}; GRANT SELECT ON seats TO ${role};
      GRANT SELECT (id) ON hall.halls TO ${role}; SET ROLE ${role}`);
    try {
      expect(await orphansOfHallId('"hall"."halls"')).to.have.length(1);
    } finally {
      await scene.client.query(`RESET ROLE; DROP OWNED BY ${role}; DROP ROLE ${role}`);
    }
  });

  it("finds the values of partitions", async () => {
    await scene.client.query(`
      CREATE TABLE blocks (id int PRIMARY KEY) PARTITION BY RANGE (id);
      CREATE TABLE blocks_0 PARTITION OF blocks DEFAULT; INSERT INTO blocks VALUES (1), (7), (8)`);

    const found = await orphansOfHallId('"blocks"');

    await scene.client.query("DROP TABLE blocks");
    expect(found).to.deep.equal([]);
  });

  it("reports a target column that is unique only at the end of a transaction", async () => {
    const racks = { name: "racks", fields: [field("code", "Int", { isUnique: true })], isManaged: false };
    await scene.client.query("CREATE TABLE racks (id int PRIMARY KEY, code int UNIQUE DEFERRABLE)");
    const planned = await scene.plan(
      definitionsOf(halls, definition(racks), seatsWith({ hall_id: to("racks", "code") })),
    );
    await scene.client.query("DROP TABLE racks");

    expect(planned.impossible).to.deep.equal([
      "The column hall_id of the table seats is to refer to code of the table racks, and what makes that unique is DEFERRABLE: PostgreSQL refuses the reference. Make the constraint again without DEFERRABLE.",
    ]);
  });

  it("counts every value where the table is still to be made", async () => {
    const rooms = definition({ name: "rooms", fields: [] });

    const { impossible } = await scene.plan(definitionsOf(halls, rooms, seatsWith({ hall_id: to("rooms") })));

    expect(impossible).to.have.length(1);
    expect(impossible[0]).to.match(/of the table rooms, and 3 rows have .* with number 1\./);
  });

  it("reports no column that is new or made again, and none once all rows have a target", async () => {
    const rooms = definition({ name: "rooms", fields: [field("id", "Uuid", { isKey: true })] });
    const renamed = definitionsOf(halls, seatsWith({ hall_id: { column: "other_id", ...to("halls") } }));
    const retyped = definitionsOf(halls, rooms, seatsWith({ hall_id: { type: "Uuid", ...to("rooms") } }));

    expect((await scene.plan(renamed)).impossible).to.deep.equal([]);
    expect((await scene.plan(retyped)).impossible).to.deep.equal([]);

    await scene.client.query("DELETE FROM seats WHERE number > 2");

    expect(await scene.apply(definitionsOf(halls, seatsWith({ hall_id: to("halls") })))).to.equal("done");
  });
});
