import { expect } from "chai";
import { rmSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { applyMigration } from "../../src/app/apply-migration.ts";
import { planMigration } from "../../src/app/plan-migration.ts";
import type { Definitions } from "../../src/mapping/definition.ts";
import { checkDefinitions } from "../../src/mapping/load.ts";
import { loadHandMigrations } from "../../src/migration/hand-migrations.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { createMappingFolder } from "../mapping/mapping-folder.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { psql } from "../support/psql.ts";

const log = createLog({ level: "silent" });

const owners = "name: owners\nmodel: Owner\ntriggers: []\nfields: { id: { type: Int, id: true } }\n";
const pets = (table: string, { nick, size, paws, owner }: Readonly<Record<string, string>>): string => `
name: pets
model: Pet
table: ${table}
triggers: [on_create]
fields:
  id: { type: Int, id: true }
  ${nick}: { type: String, length: 40, unique: true }
  ${size}: { type: Enum, values: [s, m] }
  ${paws}: { type: Int, index: true }
  ${owner}: { type: Int, references: owners.id, as: owner }
unique: [[${nick}, ${paws}]]
indexes: [{ fields: [${paws}, ${size}], where: "${paws} > 2" }]
`;
const before = pets("pets", { nick: "nick", size: "size", paws: "paws", owner: "owner_id" });

const updated = (file: string): string => file.replace("[on_create]", "[on_create, on_update]");

describe("migrate, after a migration by hand that renames what svc made", () => {
  let database: TestDatabase;
  let folder: ReturnType<typeof createMappingFolder>;

  beforeEach(async () => {
    database = await createTestDatabase();
    folder = createMappingFolder({ "owners.yaml": owners, "pets.yaml": before });
    await applyMigration({ ...(await given()), allowDestructive: false, log });
    await psql(database.url, {
      sql: "INSERT INTO owners VALUES (1); INSERT INTO pets VALUES (1, 'Rex', 's', 4, 1)",
    });
  });
  afterEach(async () => {
    await database.drop();
    folder.remove();
  });

  async function given(): Promise<{ readonly url: string; readonly definitions: Definitions }> {
    const { definitions } = await checkDefinitions(folder.configDir);
    if (definitions === undefined) throw new Error("the files have faults");
    return { url: database.url, definitions };
  }
  const made = (): Promise<string> =>
    psql(database.url, { sql: `SELECT "table", kind, name, is_made FROM svc.made ORDER BY 1, 2, 3` });

  async function rename(sql: string, file: string): Promise<Awaited<ReturnType<typeof planMigration>>> {
    const migrations = join(folder.configDir, "migrations");
    rmSync(migrations, { recursive: true, force: true });
    mkdirSync(migrations);
    writeFileSync(join(migrations, "1_rename.sql"), sql);
    writeFileSync(join(folder.configDir, "resources/pets.yaml"), file);
    const byHand = await loadHandMigrations(folder.configDir);
    await applyMigration({ ...(await given()), byHand, allowDestructive: false, log });
    return planMigration({ ...(await given()), byHand });
  }

  it("still counts columns, indexes, checks and references as its own, and loses nothing", async () => {
    const plan = await rename(
      "ALTER TABLE pets RENAME nick TO nickname; ALTER TABLE pets RENAME size TO build; " +
        "ALTER TABLE pets RENAME paws TO feet; ALTER TABLE pets RENAME owner_id TO keeper_id;",
      pets("pets", { nick: "nickname", size: "build", paws: "feet", owner: "keeper_id" }),
    );

    expect(plan).to.deep.include({ steps: [], losses: [], impossible: [], leftAlone: [], notes: [] });
    expect(await made()).to.not.match(/\|f$/m);
    expect(await psql(database.url, { sql: "SELECT nickname, build, feet, keeper_id FROM pets" })).to.match(
      /Rex\|s\|4\|1/,
    );
  });

  it("keeps the capture running, also for the next file, and while the mapping files are refused", async () => {
    await rename("SELECT 1", updated(before));
    const migrations = join(folder.configDir, "migrations");
    writeFileSync(
      join(migrations, "2_rename.sql"),
      "ALTER TABLE pets RENAME nick TO spare; ALTER TABLE pets RENAME paws TO feet; ALTER TABLE pets RENAME spare TO nickname",
    );
    writeFileSync(join(migrations, "3_trim.sql"), "UPDATE pets SET nickname = 'Max'");
    writeFileSync(
      join(folder.configDir, "resources/pets.yaml"),
      updated(pets("pets", { nick: "nickname", size: "size", paws: "feet", owner: "owner_id" })).replace(
        "values: [s, m]",
        "values: [m]",
      ),
    );
    const byHand = await loadHandMigrations(folder.configDir);
    const migrate = async (): Promise<unknown> =>
      applyMigration({ ...(await given()), byHand, allowDestructive: false, log }).catch(String);

    const refused = await migrate();
    await psql(database.url, {
      sql: "INSERT INTO pets VALUES (2, 'Tom', 'm', 3, 1); DELETE FROM pets WHERE id = 1",
    });
    await migrate();
    await psql(database.url, { sql: "INSERT INTO pets VALUES (3, 'Kit', 'm', 3, 1)" });

    expect(refused).to.match(/1 row has another value/);
    const events =
      "SELECT trigger, snapshot ->> 'nick' AS nick, snapshot ->> 'nickname' AS nickname FROM svc.events ORDER BY id";
    expect(await psql(database.url, { sql: events })).to.match(
      /on_create\|Rex\|\non_update\|Max\|\non_create\|Tom\|\non_create\|\|Kit/,
    );
  });

  for (const [what, change, reason] of [
    ["renamed a column of it", "RENAME nick TO nickname", 'record "new" has no field "nick"'],
    ["given a column of it another type", "ALTER paws TYPE bigint", "type of parameter .* does not match"],
  ] as const)
    it(`reports the remedy when a file writes to a table after it has ${what}`, async () => {
      const changed = rename(
        `INSERT INTO pets VALUES (2, 'Tom', 'm', 3, 1); ALTER TABLE pets ${change}; INSERT INTO pets VALUES (3, 'Kit', 'm', 3, 1)`,
        before,
      );

      expect(await changed.catch(String)).to.match(
        new RegExp(`${reason}.* Put the writes first, or into another file\\.$`),
      );
    });

  it("follows two columns that change their names, and a table", async () => {
    const plan = await rename(
      "ALTER TABLE pets RENAME paws TO spare; ALTER TABLE pets RENAME owner_id TO paws; " +
        "ALTER TABLE pets RENAME spare TO owner_id; ALTER TABLE pets RENAME TO animals;",
      pets("animals", { nick: "nick", size: "size", paws: "owner_id", owner: "paws" }),
    );

    expect(plan).to.deep.include({ steps: [], losses: [], impossible: [], leftAlone: [] });
    expect(await made()).to.not.match(/^pets\||\|f$/m);
    expect(await psql(database.url, { sql: "SELECT owner_id, paws FROM animals" })).to.match(/4\|1/);
  });

  it("follows a column that takes the name of a dropped one", async () => {
    const fields = "id: { type: Int, id: true }, size: { type: String, length: 40, unique: true }";

    const plan = await rename(
      "ALTER TABLE pets DROP size; ALTER TABLE pets RENAME nick TO size",
      `name: pets\nmodel: Pet\ntriggers: [on_create]\nunique: [[size, paws]]\nfields: { ${fields}, paws: { type: Int, index: true }, owner_id: { type: Int, references: owners.id } }\n`,
    );

    expect(plan).to.deep.include({ steps: [], losses: [], impossible: [], leftAlone: [] });
    expect(await psql(database.url, { sql: "SELECT size, paws FROM pets" })).to.match(/Rex\|4/);
  });

  it("still counts an index that was made again in another way as theirs", async () => {
    await psql(database.url, {
      sql: "DROP INDEX pets_paws_idx; CREATE INDEX pets_paws_idx ON pets (paws DESC)",
    });

    const plan = await rename(
      "ALTER TABLE pets RENAME nick TO nickname",
      pets("pets", { nick: "nickname", size: "size", paws: "paws", owner: "owner_id" }).replace(
        ", index: true",
        "",
      ),
    );

    expect(plan.leftAlone.join()).to.match(/pets_paws_idx/);
    expect(plan).to.deep.include({ steps: [], losses: [] });
  });

  it("still counts references as its own where the role has another search path", async () => {
    await psql(database.url, {
      sql: `CREATE SCHEMA other; DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = other', current_database()); END $$`,
    });

    const plan = await rename("SELECT 1", before.replace("as: owner", "as: owner, onDelete: cascade"));

    expect(plan).to.deep.include({ steps: [], losses: [], impossible: [], leftAlone: [] });
  });

  it("still counts a column made by others as theirs under its new name", async () => {
    await psql(database.url, { sql: "ALTER TABLE pets ADD theirs text" });

    const plan = await rename("ALTER TABLE pets RENAME theirs TO hers", before);

    expect(plan.leftAlone.join()).to.match(/column hers/);
    expect(plan).to.deep.include({ steps: [], losses: [] });
  });
});
