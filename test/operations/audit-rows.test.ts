import { expect } from "chai";
import { readAudit } from "../../src/operations/audit-list.ts";
import { coreOfSuite } from "../support/core-database.ts";
import { createExplainingSql, type Plan } from "../support/plans.ts";

describe("readAudit", () => {
  const core = coreOfSuite();

  before(async () => {
    await core.sql(
      `INSERT INTO svc.audit (occurred_at, action, actor_kind, subject_kind, details)
       SELECT now() - interval '1 day' + number * interval '1 second',
         CASE WHEN number <= 3 THEN 'user.updated' WHEN number <= 5 THEN 'user.disabled' ELSE 'token.created' END, 'user', 'token', '{}'
       FROM generate_series(1, 20000) AS number`,
    );
  });

  for (const mode of ["custom", "generic"] as const)
    it(`reads none of the rows about other kinds, by a ${mode} plan`, async () => {
      await core.sql("ANALYZE svc.audit");
      const plans: Plan[] = [];
      const client = await core.database.pool.connect();
      const found: string[][] = [];
      try {
        const note = (plan: Plan): void => void plans.push(plan);
        const sql = createExplainingSql({ client, settings: "", mode, note });
        for (const action of ["user", "user.disabled"]) {
          const page = { filter: { action }, position: undefined, take: 16 };
          found.push((await readAudit(sql, page)).map((row) => row.action));
        }
      } finally {
        client.release();
      }

      const [disabled, updated] = [
        ["user.disabled", "user.disabled"],
        ["user.updated", "user.updated", "user.updated"],
      ];
      expect(found).to.deep.equal([[...(disabled ?? []), ...(updated ?? [])], disabled]);
      expect(plans.map(({ rowsRead }) => rowsRead)).to.deep.equal([5, 5]);
    });
});
