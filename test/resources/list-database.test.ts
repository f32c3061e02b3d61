import { expect } from "chai";
import { createStatementNames } from "../../src/db/statement-name.ts";
import { createTurns } from "../../src/kit/turns.ts";
import { createListDatabase, type ListDatabase } from "../../src/resources/list-database.ts";
import { databaseOfSuite } from "../support/own-database.ts";
import { until } from "../support/wait.ts";

describe("createListDatabase", () => {
  const database = databaseOfSuite({ poolSize: 4 });
  let lists: ListDatabase;

  before(async () => {
    await database.pool.query("CREATE TABLE things (id int)");
    lists = createListDatabase({
      pool: database.pool,
      names: createStatementNames(false),
      users: createTurns(1),
      places: { ofAll: 1, ofEach: 1 },
    });
  });

  const run = async (userId: number, text: string): Promise<number> => {
    await lists.sql({ userId, resource: "things" })(text, []);
    return userId;
  };

  it("leaves connections beside the places to users whose lists end soon", async () => {
    await run(1, "SELECT pg_sleep(0.5)");
    const client = await database.pool.connect();
    const ended: number[] = [];
    const note = (userId: number): void => void ended.push(userId);
    const isWaiting = async (): Promise<boolean> =>
      (await client.query("SELECT FROM pg_locks WHERE NOT granted")).rows.length > 0;
    try {
      await client.query("BEGIN; LOCK TABLE things");
      const all = [run(2, "SELECT * FROM things").then(note)];
      await until(isWaiting, { what: "the list that waits in the only place" });
      all.push(run(1, "SELECT 1").then(note));
      await run(3, "SELECT 1").then(note);
      await run(3, "SELECT 1").then(note);

      expect(ended).to.deep.equal([3, 3]);
      await client.query("COMMIT");
      await Promise.all(all);
      expect(ended).to.deep.equal([3, 3, 2, 1]);
    } finally {
      client.release();
    }
  });
});
