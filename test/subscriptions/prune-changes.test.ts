import { expect } from "chai";
import type { Sql } from "../../src/db/sql.ts";
import { createChangesPruner } from "../../src/subscriptions/prune-changes.ts";
import { agePool } from "../support/known-subscribers.ts";
import { until } from "../support/wait.ts";
import { useWorkerScene } from "../support/worker-scene.ts";

describe("createChangesPruner", () => {
  const scene = useWorkerScene();
  let turns = 0;

  beforeEach(async () => {
    await agePool(scene.core.sql);
    await scene.core.sql("TRUNCATE svc.subscription_changes");
    turns = 0;
  });

  const change = (): Promise<unknown> => scene.work.addUser();
  const changes = async (): Promise<readonly string[]> =>
    (
      await scene.core.sql<{ id: string }>(
        "SELECT transaction_id AS id FROM svc.subscription_changes ORDER BY 1",
      )
    ).map(({ id }) => id);
  const counting: Sql = async (text, values) => {
    const rows = await scene.core.sql(text, values);
    turns += 1;
    return rows as never;
  };
  const start = (
    options: { readonly sql?: Sql; readonly intervalMs?: number; readonly portion?: number } = {},
  ): void => scene.run(createChangesPruner({ sql: counting, log: scene.log, intervalMs: 30, ...options }));
  /** Simulates a new session for each statement. */
  const forgetful: Sql = async (text, values) => {
    await Promise.all(
      Array.from({ length: 4 }, () =>
        scene.core.sql("SELECT set_config('svc.session_since', '', false), pg_sleep(0.02)"),
      ),
    );
    return counting(text, values) as never;
  };
  const untilTurns = (count: number): Promise<unknown> =>
    until(() => turns >= count, { what: `${count} turns` });

  it("deletes rows that the turn before has seen, and none in its first", async () => {
    for (let count = 0; count < 3; count++) await change();
    start({ intervalMs: 86_400_000 });
    await untilTurns(1);
    expect(await changes()).to.have.length(3);
    await scene.stop();

    start();
    await until(async () => (await changes()).length === 0, { what: "the changes pruned" });
  });

  it("deletes them in portions", async () => {
    for (let count = 0; count < 5; count++) await change();
    const asked: unknown[][] = [];
    start({
      portion: 2,
      sql(text, given = []) {
        asked.push([given[0], given[2]]);
        return counting(text, given);
      },
    });

    await until(async () => (await changes()).length === 0, { what: "the changes pruned" });
    // The first turn, and the second with the rows that the first has seen.
    const [[first], [seen]] = asked as [unknown[], unknown[]];
    expect(first).to.equal(null);
    expect(asked.slice(1, 4)).to.deep.equal(Array.from({ length: 3 }, () => [seen, 2]));
  });

  it("keeps a change that was committed after the turn before, in a transaction of any age", async () => {
    const client = await scene.core.database.pool.connect();
    let end: (() => void) | undefined;
    const over = new Promise<void>((resolve) => (end = resolve));
    const between: Sql = async (text, values) => {
      if (turns === 1) await Promise.all([client.query("COMMIT"), change()]);
      if (turns === 2) await over;
      return counting(text, values) as never;
    };
    try {
      await client.query("BEGIN");
      await client.query("UPDATE svc.users SET name = name");
      await client.query("INSERT INTO svc.users (name, email) VALUES ('A', 'a@example.com')");
      await change();
      start({ sql: between });
      await untilTurns(2);

      expect(await changes()).to.have.length(2);
    } finally {
      end?.();
      client.release();
    }
  });

  it("deletes nothing that was read before its session, since a crash gives out numbers twice", async () => {
    await change();
    start({ sql: forgetful });
    await untilTurns(4);

    expect(await changes()).to.have.length(1);
  });

  it("goes on after a fault", async () => {
    await change();
    let isAway = true;
    start({ sql: (text, values) => (isAway ? Promise.reject(new Error("cut")) : counting(text, values)) });
    await until(() => scene.lines.length > 0, { what: "the line" });
    isAway = false;

    await until(async () => (await changes()).length === 0, { what: "the changes pruned" });
    expect(scene.lines[0]).to.include({ msg: "changes of subscriptions not pruned; trying again" });
  });

  it("skips rows that another process deletes", async () => {
    await change();
    await change();
    const client = await scene.core.database.pool.connect();
    try {
      const [first] = await changes();
      await client.query("BEGIN");
      await client.query("DELETE FROM svc.subscription_changes WHERE transaction_id = $1", [first]);
      start();

      await until(async () => (await changes()).length === 1, { what: "the other one pruned" });
      expect(await changes()).to.deep.equal([first]);
    } finally {
      await client.query("ROLLBACK");
      client.release();
    }
  });
});
