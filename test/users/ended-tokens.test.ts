import { expect } from "chai";
import type { Sql } from "../../src/db/sql.ts";
import { serviceActor } from "../../src/kit/actor.ts";
import { createTokenProvider } from "../../src/users/provider.ts";
import { createTokensPruner } from "../../src/users/prune-tokens.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { createMemoryLog } from "../support/http.ts";
import { createExplainingSql, type Plan, type PlanMode } from "../support/plans.ts";
import { until } from "../support/wait.ts";

const perKind = 10_000;
const mostRead = 1_500;

describe("revoked and expired tokens of a user", () => {
  let core: CoreDatabase;
  let plans: Plan[];
  let userId: number;
  const { log } = createMemoryLog();

  before(async () => {
    core = await openCoreDatabase();
    userId = (await core.prisma.user.create({ data: { name: "Eve", email: "eve@example.com" } })).id;
    await core.sql("ALTER TABLE svc.tokens DISABLE TRIGGER audit_change");
    await core.sql(
      `INSERT INTO svc.tokens (user_id, name, hash, revoked_at, expires_at)
       SELECT $1, 'spent', sha256((kind || ' ' || number)::bytea), CASE kind WHEN 1 THEN now() END, CASE kind WHEN 2 THEN now() END
       FROM generate_series(1, 2) AS kind CROSS JOIN generate_series(1, ${perKind}) AS number`,
      [userId],
    );
  });

  beforeEach(() => (plans = []));

  after(() => core.close());

  async function explained(mode: PlanMode, act: (sql: Sql) => Promise<unknown>): Promise<number> {
    const client = await core.database.pool.connect();
    try {
      await act(createExplainingSql({ client, settings: "", mode, note: (plan) => plans.push(plan) }));
    } finally {
      client.release();
    }
    expect(plans).not.to.deep.equal([]);
    return Math.max(...plans.map(({ rowsRead }) => rowsRead));
  }

  for (const statistics of ["none", "fresh"])
    for (const mode of ["custom", "generic"] as const) {
      it(`are not read for a new one, by a ${mode} plan with statistics: ${statistics}`, async () => {
        if (statistics === "fresh") await core.sql("ANALYZE svc.tokens");
        const read = await explained(mode, (sql) =>
          createTokenProvider({ sql, transact: (work) => work(sql), log }).issue({
            userId,
            name: "x",
            mostInForce: 100,
          }),
        );

        expect(read).to.be.lessThan(100);
      });

      it(`are not read to remove older ones, by a ${mode} plan with statistics: ${statistics}`, async () => {
        const stop = new AbortController();
        const read = await explained(mode, async (sql) => {
          const pruner = createTokensPruner({
            async sql(text, values) {
              // The explaining statement is rolled back, so that a loop would repeat it forever.
              stop.abort();
              return sql(text, values);
            },
            log,
            actor: serviceActor("dispatcher"),
            keepForMs: 60_000,
          });
          await pruner.run(stop.signal);
          await until(() => plans.length > 0, { what: "the plan" });
        });

        expect(read).to.be.lessThan(mostRead);
      });
    }
});
