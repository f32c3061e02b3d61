import { expect } from "chai";
import type { Definitions, Field } from "../../src/mapping/definition.ts";
import { definition, definitionsOf, field } from "../support/definitions.ts";
import { openScene, sceneOfSuite, type Scene } from "../support/migration-scene.ts";

/** Seats whose key is the row and the number, or the row alone; `desk` is unique on a floor. */
function seats(unique: { readonly badge?: true; readonly desk?: true; readonly row?: true }): Definitions {
  return definitionsOf(
    definition({
      name: "seats",
      table: "hall.seats",
      fields: [
        field("row", "Int", { isKey: true }),
        field("number", "Int", { isKey: unique.row !== true }),
        field("badge", "String", { isOptional: true, ...(unique.badge && { isUnique: true }) }),
        field("floor", "Int"),
        field("desk", "String"),
      ],
      ...(unique.desk && { uniques: [["floor", "desk"]] }),
    }),
  );
}

describe("findDuplicates", function () {
  this.timeout(30_000);
  const scene = sceneOfSuite();

  before(async () => {
    await scene.migrate(seats({}));
    await scene.client.query(`
      INSERT INTO hall.seats ("row", number, badge, floor, desk) VALUES
        (1, 1, 'secret', 1, 'a'), (1, 2, NULL, 2, 'a'), (2, 1, NULL, 1, 'b'), (2, 2, 'secret', 1, 'a'),
        (3, 1, 'other', 2, 'c'), (3, 2, 'other', 3, 'c'), (3, 3, 'alone', 4, 'c')`);
  });

  it("counts the values of a column that occur more than once, and names rows by their keys", async () => {
    const { impossible, notes } = await scene.plan(seats({ badge: true }));

    expect(impossible).to.deep.equal([
      "The column badge of the table hall.seats must be unique, and 2 values occur more than once, for example in the rows with row 1, number 1 and row 2, number 2. Change the values first.",
    ]);
    expect(notes).to.deep.equal([]);
  });

  it("counts sets of values of several columns", async () => {
    expect((await scene.plan(seats({ desk: true }))).impossible).to.deep.equal([
      "The columns floor, desk together of the table hall.seats must be unique, and 1 value occurs more than once, for example in the rows with row 1, number 1 and row 2, number 2. Change the values first.",
    ]);
  });

  it("counts the values of a key of fewer columns", async () => {
    expect((await scene.plan(seats({ row: true }))).impossible).to.deep.equal([
      "The column row of the table hall.seats must be unique, and 3 values occur more than once, for example in the rows with row 1, number 1 and row 1, number 2. Change the values first.",
    ]);
  });

  it("lets the migration refuse before it changes anything, also when losses are allowed", async () => {
    const message = await scene.apply(seats({ badge: true, desk: true }), true);

    expect(message).to.match(
      /^The existing rows and objects do not allow the migration; nothing was changed:/,
    );
    expect(message).to.not.include("secret");
  });

  it("reports nothing once all values differ; several NULLs are no duplicates", async () => {
    await scene.client.query(
      `UPDATE hall.seats SET badge = concat("row", '-', number) WHERE badge IS NOT NULL`,
    );
    // A unique index leaves out tables that inherit.
    await scene.client.query(`
      CREATE TABLE hall.folding () INHERITS (hall.seats);
      INSERT INTO hall.folding VALUES (9, 1, 'same', 9, 'a'), (9, 2, 'same', 9, 'b')`);

    const { impossible, notes } = await scene.plan(seats({ badge: true }));
    expect({ impossible, notes }).to.deep.equal({ impossible: [], notes: [] });
    expect(await scene.apply(seats({ badge: true }))).to.equal("done");
  });
});

/** Prices with a number, a moment and more fields. */
const prices = (amount: Partial<Field>, moment: Partial<Field>, ...more: readonly Field[]): Definitions =>
  definitionsOf(
    definition({
      name: "prices",
      fields: [
        field("amount", "Decimal", { precision: 9, scale: 2, ...amount }),
        field("moment", "DateTime", moment),
        ...more,
      ],
    }),
  );

const sentence = (column: string): string =>
  `The column ${column} of the table prices must be unique, and 1 value occurs more than once, for example in the rows with id 1 and id 2. Change the values first.`;

describe("findDuplicates, of values that the same migration changes", function () {
  this.timeout(30_000);
  let scene: Scene;

  beforeEach(async () => {
    scene = await openScene();
  });

  afterEach(() => scene.close());

  const insert = `INSERT INTO prices (amount, moment) VALUES (1.1, '2026-01-01T08:00Z'), (1.2, '2026-01-01T09:00Z'), (7, '2026-01-02T09:00Z')`;

  for (const [what, unique] of [
    ["new", {}],
    ["there already", { isUnique: true }],
  ] as const) {
    it(`counts values that are equal in their new type, where the index is ${what}`, async () => {
      await scene.migrate(prices(unique, unique));
      await scene.client.query(insert);
      const next = prices({ isUnique: true, scale: 0 }, { isUnique: true, type: "Date" });

      expect((await scene.plan(next)).impossible).to.have.members([sentence("amount"), sentence("moment")]);
      await scene.client.query("DELETE FROM prices WHERE id = 1");
      expect((await scene.plan(next)).impossible).to.deep.equal([]);
      expect(await scene.apply(next, true)).to.equal("done");
    });
  }

  it("counts the rows that get the default of a new column", async () => {
    const next = prices(
      {},
      {},
      field("tag", "String", { isUnique: true, default: { kind: "literal", value: "a" } }),
    );
    const several = prices({}, {}, field("tag", "Uuid", { isUnique: true, default: { kind: "uuid" } }));
    await scene.migrate(prices({}, {}));
    await scene.client.query(insert);

    expect((await scene.plan(next)).impossible).to.deep.equal([sentence("tag").replace("id 2", "id 3")]);
    expect((await scene.plan(several)).impossible).to.deep.equal([]);
    await scene.client.query("DELETE FROM prices WHERE id > 1");
    expect(await scene.apply(next)).to.equal("done");
  });
});
