import { expect } from "chai";
import { definition, definitionsOf, field } from "../support/definitions.ts";
import { openScene, type Scene } from "../support/migration-scene.ts";
import { customers, withFields } from "../support/shop.ts";

const nick = field("nick", "String", { native: "citext", isOptional: true });

describe("findMissingTypes", function () {
  this.timeout(30_000);
  let scene: Scene;

  beforeEach(async () => {
    scene = await openScene();
    await scene.migrate(definitionsOf(customers));
  });

  afterEach(() => scene.close());

  for (const [what, table, definitions] of [
    ["a new table", "notes", definitionsOf(customers, definition({ name: "notes", fields: [nick] }))],
    ["a new column", "customers", definitionsOf(withFields(customers, [...customers.fields.slice(1), nick]))],
    [
      "another type",
      "customers",
      definitionsOf(withFields(customers, [{ ...nick, name: "name", column: "name" }])),
    ],
  ] as const) {
    it(`reports for ${what} that citext is not in the schema public, with the remedy`, async () => {
      const start = `The type citext, which ${table} would get, is`;
      const end = "and a migration takes types from the schema public only. First run";

      const absent = await scene.plan(definitions);
      await scene.client.query(`CREATE SCHEMA "my ext"; CREATE EXTENSION citext SCHEMA "my ext"`);
      const elsewhere = await scene.plan(definitions);

      expect(absent.impossible).to.deep.equal([
        `${start} not in the database, ${end} CREATE EXTENSION citext SCHEMA public.`,
      ]);
      expect(elsewhere.impossible).to.deep.equal([
        `${start} in the schema "my ext", ${end} ALTER EXTENSION citext SET SCHEMA public.`,
      ]);
      await scene.client.query("ALTER EXTENSION citext SET SCHEMA public");
      expect(await scene.apply(definitions)).to.equal("done");
      // A column that already has the type needs no change.
      await scene.client.query(`ALTER EXTENSION citext SET SCHEMA "my ext"`);
      expect(await scene.plan(definitions)).to.deep.include({ steps: [], impossible: [] });
    });
  }
});
