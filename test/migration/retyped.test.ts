import { expect } from "chai";
import { applyMigration } from "../../src/app/apply-migration.ts";
import { createLog } from "../../src/telemetry/log.ts";
import type { FieldType } from "../../src/mapping/definition.ts";
import { definition, definitionsOf, field } from "../support/definitions.ts";
import { openScene, titlesOf, type Scene } from "../support/migration-scene.ts";

const notes = (type: FieldType, length?: number): ReturnType<typeof definition> =>
  definition({
    name: "notes",
    fields: [field("text", type, { isOptional: true, ...(length !== undefined && { length }) })],
  });

describe("a change of a column's type, beside sessions that have written to the table", () => {
  let scene: Scene;

  beforeEach(async () => {
    scene = await openScene();
    await scene.migrate(definitionsOf(notes("String")));
    await write();
  });
  afterEach(() => scene.close());

  // PL/pgSQL caches the types that a session first saw, and fails for others.
  const write = (): Promise<unknown> => scene.rows("INSERT INTO notes (text) VALUES ('1')");
  const events = (): Promise<readonly unknown[]> => scene.rows("SELECT record_id FROM svc.events");

  for (const [what, next] of [
    ["another type", notes("String", 40)],
    ["a column that is made anew", notes("Int")],
  ] as const)
    it(`makes the capture again for ${what}`, async () => {
      const definitions = definitionsOf(next);
      expect(titlesOf(await scene.plan(definitions))).to.include("notes: capture trigger on notes");
      expect(await scene.apply(definitions, true)).to.equal("done");

      await write();

      expect(await events()).to.have.length(2);
    });

  for (const change of ["ALTER text TYPE varchar(40)", "DROP text, ADD text varchar(40)"])
    it(`updates a capture after a migration by hand: ${change}`, async () => {
      await applyMigration({
        url: scene.url,
        definitions: definitionsOf(notes("String")),
        byHand: [
          { name: "1_short", sql: `ALTER TABLE notes ${change}`, checksum: "c", isInTransaction: true },
        ],
        allowDestructive: false,
        log: createLog({ level: "silent" }),
      });

      await write();

      expect(await events()).to.have.length(2);
    });
});
