import { expect } from "chai";
import { createExpiry, deleteExpired, forgetKey, keepAnswer } from "../../src/http/idempotency-keys.ts";
import { coreOfSuite, type CoreDatabase } from "../support/core-database.ts";
import { createMemoryLog } from "../support/http.ts";
import { until } from "../support/wait.ts";

/** Stores answers of user 9. */
async function keep({ sql }: CoreDatabase, count: number, expiresIn: string): Promise<void> {
  await sql(
    `INSERT INTO svc.idempotency_keys (user_id, key_hash, request_hash, status, headers, body, bytes, is_sealed, expires_at)
     SELECT 9, sha256(($2 || n)::bytea), '', 201, '{}', '', 0, false, now() + $2::interval FROM generate_series(1, $1::int) AS n`,
    [count, expiresIn],
  );
}

describe("kept answers", () => {
  const core = coreOfSuite();
  const { log } = createMemoryLog();
  const countOf = async (): Promise<number> => (await core.sql("SELECT FROM svc.idempotency_keys")).length;

  beforeEach(() => core.sql("TRUNCATE svc.idempotency_keys"));

  it("stay when the first request fails, whose time was over before another one was answered", async () => {
    const key = { userId: 1, keyHash: Buffer.alloc(32) };
    const answer = { requestHash: key.keyHash, status: 201, headers: {}, isSealed: false };
    await keepAnswer(core.sql, key, { ...answer, body: Buffer.from("{}") });

    await forgetKey(core.sql, key);

    expect(await countOf()).to.equal(1);
  });

  it("are deleted in batches of 100 when they have expired; others stay", async () => {
    await keep(core, 150, "-1 second");
    await keep(core, 10, "1 hour");

    expect([await deleteExpired(core.sql), await deleteExpired(core.sql)]).to.deep.equal([100, 50]);
    expect(await countOf()).to.equal(10);
  });

  it("are deleted by a worker, which ends when it is stopped", async () => {
    await keep(core, 250, "-1 second");
    const stopping = new AbortController();
    const running = createExpiry({ sql: core.sql, log }).run(stopping.signal);

    await until(async () => (await countOf()) === 0, { what: "an empty table" });
    stopping.abort();
    await running;
  });
});
