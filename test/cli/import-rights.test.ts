import { expect } from "chai";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { createMappingFolder } from "../mapping/mapping-folder.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { admin, mappingFiles, type AdminRun } from "../support/import.ts";
import { psql } from "../support/psql.ts";

const shop = `
  CREATE TABLE customers (id serial PRIMARY KEY, email varchar(80) NOT NULL UNIQUE, note text, gone text);
  CREATE TABLE orders (id serial PRIMARY KEY, customer_id int NOT NULL REFERENCES customers, total numeric(10, 2) NOT NULL,
    user_id int NOT NULL)`;

describe("svc-admin import as a role that lacks rights", function () {
  this.timeout(120_000);
  let database: TestDatabase;
  let folder: ReturnType<typeof createMappingFolder>;
  let role: string;

  const valueIn = async (file: string, key: string): Promise<unknown> =>
    parse(await readFile(join(folder.configDir, "resources", file), "utf8"))[key];
  const asRole = (...args: readonly string[]): Promise<AdminRun> => {
    const url = new URL(database.url);
    url.searchParams.set("options", `-c role=${role}`);
    return admin({ url: url.href, configDir: folder.configDir }, "import", ...args);
  };

  beforeEach(async () => {
    database = await createTestDatabase();
    role = `import_${new URL(database.url).pathname.slice(1)}`;
    await psql(database.url, { sql: `${shop}; CREATE ROLE ${role}` });
    folder = createMappingFolder({});
  });
  afterEach(async () => {
    await psql(database.url, { sql: `DROP OWNED BY ${role}; DROP ROLE ${role}` });
    await database.drop();
    folder.remove();
  });

  it("leaves out creates whose sequence the role may not use, with a note until it may", async () => {
    await psql(database.url, {
      sql: `GRANT ALL ON customers, orders TO ${role};
        GRANT USAGE ON customers_id_seq TO ${role}`,
    });
    const { stdout } = await asRole();
    const before = [
      await valueIn("customers.yaml", "supportsCreate"),
      await valueIn("orders.yaml", "supportsCreate"),
    ];
    await psql(database.url, { sql: `GRANT USAGE ON orders_id_seq TO ${role}` });
    await asRole("--update");

    expect(stdout).to.contain(
      "  public.orders: The role of svc lacks the privilege USAGE on orders_id_seq: no record can be created.\n",
    );
    expect(before).to.deep.equal([undefined, false]);
    expect(await valueIn("orders.yaml", "supportsCreate")).to.equal(undefined);
  });

  it("leaves columns that the role may not write out of the rules, with a note until it may", async () => {
    await psql(database.url, {
      sql: `GRANT ALL ON SEQUENCE customers_id_seq, orders_id_seq TO ${role};
        ALTER TABLE customers ADD tags text[], ADD level int DEFAULT 1, ADD born date;
        GRANT SELECT, INSERT (email, born), UPDATE (note, born), DELETE ON customers TO ${role};
        GRANT SELECT, INSERT (total), UPDATE ON orders TO ${role}`,
    });
    const { stdout } = await asRole();
    const rules = [
      await valueIn("customers.yaml", "createRules"),
      await valueIn("customers.yaml", "updateRules"),
      await valueIn("orders.yaml", "supportsCreate"),
    ];
    const fields = (await valueIn("customers.yaml", "fields")) as object;
    await psql(database.url, { sql: `GRANT INSERT, UPDATE ON customers, orders TO ${role}` });
    await asRole("--update");

    expect(stdout).to.contain(
      "  public.customers: No create sets note, gone, tags, level: the role of svc lacks the privilege INSERT on them.\n" +
        "  public.customers: No update sets email, gone, tags, level: the role of svc lacks the privilege UPDATE on them.\n",
    );
    expect(stdout).to.contain(
      "  public.orders: No record can be created: customer_id, user_id must have a value, and no request can set it.\n",
    );
    expect(rules).to.deep.equal([
      {
        email: "required|string|max:80|unique:customers,email",
        born: "sometimes|nullable|date_format:Y-m-d",
      },
      { note: "sometimes|nullable|string", born: "sometimes|nullable|date_format:Y-m-d" },
      false,
    ]);
    expect(fields).to.deep.include({
      note: { type: "String", optional: true },
      gone: { type: "String", optional: true, generated: true },
      tags: { type: "String", list: true, generated: true },
      level: { type: "Int", optional: true, generated: true },
    });
    for (const key of ["createRules", "updateRules"])
      expect(await valueIn("customers.yaml", key)).to.equal(undefined);
    expect(await valueIn("orders.yaml", "supportsCreate")).to.equal(undefined);
    expect((await mappingFiles(folder.configDir))["customers.yaml"]).not.to.match(/generated|No create/);
  });

  it("writes no rules where the role may only update or only insert, whichever the columns", async () => {
    await psql(database.url, {
      sql: `GRANT ALL ON SEQUENCE customers_id_seq, orders_id_seq TO ${role};
        GRANT SELECT, UPDATE ON customers TO ${role}; GRANT SELECT, INSERT ON orders TO ${role}`,
    });
    const { status, stdout } = await asRole();
    const files = await mappingFiles(folder.configDir);

    expect([status, stdout.includes(" sets ")]).to.deep.equal([0, false]);
    expect(files["customers.yaml"]).to.match(/supportsCreate: false/);
    expect(files["orders.yaml"]).to.match(/supportsUpdate: false/);
    for (const text of Object.values(files)) expect(text).not.to.match(/Rules|generated|database/);
  });
});
