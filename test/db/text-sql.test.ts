import { expect } from "chai";
import { openDatabase, type Database } from "../../src/db/client.ts";
import { createStatementNames, createTextSql } from "../../src/db/text-sql.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

describe("createTextSql", () => {
  let created: TestDatabase;
  let database: Database;

  before(async () => {
    created = await createTestDatabase();
    database = await openDatabase({ url: created.url, poolSize: 1, isEmbedded: false });
    await database.pool.query("CREATE TABLE things (size int); INSERT INTO things VALUES (5)");
  });
  after(async () => {
    await database.close();
    await created.drop();
  });

  it("goes on after a column of a prepared statement has got another type", async () => {
    const sql = createTextSql(database.pool, createStatementNames(false));
    const text = "SELECT size FROM things";
    await sql(text, []);
    await database.pool.query("ALTER TABLE things ALTER size TYPE text USING size || ' cm'");

    expect([await sql(text, []), await sql(text, [])]).to.deep.equal([[["5 cm"]], [["5 cm"]]]);
  });
});
