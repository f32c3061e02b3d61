import { expect } from "chai";
import { serviceActor } from "../../src/kit/actor.ts";
import { createTokensPruner, type TokensPrunerOptions } from "../../src/users/prune-tokens.ts";
import { createMemoryLog } from "../support/http.ts";
import { useCoreScene } from "../support/core-scene.ts";
import { until } from "../support/wait.ts";

const dayMs = 24 * 3_600_000;

describe("createTokensPruner", () => {
  const scene = useCoreScene();
  const stops: AbortController[] = [];
  let userId: number;

  const names = async (): Promise<readonly string[]> => {
    const rows = await scene.core.sql<{ name: string }>("SELECT name FROM svc.tokens ORDER BY name");
    return rows.map(({ name }) => name);
  };
  /** @param ended Ages in days of the revocation and of the expiry; null: none. */
  async function add(
    name: string,
    [revoked, expired]: readonly [number | null, number | null],
    parent: number | null = null,
  ): Promise<number> {
    const [row] = await scene.core.sql<{ id: number }>(
      `INSERT INTO svc.tokens (user_id, name, hash, parent_id, revoked_at, expires_at)
       VALUES ($1, $2::text, sha256($2::text::bytea), $3, now() - $4 * interval '1 day', now() - $5 * interval '1 day') RETURNING id`,
      [userId, name, parent, revoked, expired],
    );
    return row?.id ?? 0;
  }
  const run = (changes: Partial<TokensPrunerOptions> = {}): { readonly turns: number } => {
    const done = { turns: 0 };
    const stop = new AbortController();
    stops.push(stop);
    void createTokensPruner({
      async sql(text, values) {
        const rows = await scene.core.sql<never>(text, values);
        done.turns += 1;
        return rows;
      },
      log: createMemoryLog().log,
      actor: serviceActor("dispatcher"),
      keepForMs: 30 * dayMs,
      portion: 2,
      ...changes,
    }).run(stop.signal);
    return done;
  };

  beforeEach(async () => {
    const { userId: owner } = await scene.work.addSubscription();
    userId = owner;
    await scene.core.sql("DELETE FROM svc.tokens");
  });
  afterEach(() => {
    for (const stop of stops.splice(0)) stop.abort();
  });

  it("removes in batches those that ended longer ago, children first, and records it in the audit trail", async () => {
    await add("in force", [null, null]);
    await add("young", [29, 40 - 11.5]);
    await add("future", [null, -1]);
    for (const name of ["a", "b", "c"]) await add(name, [31, null]);
    const parent = await add("parent", [null, 31]);
    await add("child", [null, 31], parent);
    const kept = await add("kept", [31, null]);
    await add("kept's", [null, null], kept);

    run();

    const left = ["future", "in force", "kept", "kept's", "young"];
    await until(async () => (await names()).length === left.length, { what: "the others to be gone" });
    expect(await names()).to.deep.equal(left);
    const trail = await scene.core.sql(
      "SELECT actor_kind, count(*)::int AS count FROM svc.audit WHERE action = 'token.deleted' AND actor_kind = 'service' GROUP BY 1",
    );
    expect(trail).to.deep.equal([{ actor_kind: "service", count: 5 }]);
  });

  it("removes none where removal is off", async () => {
    await add("old", [1000, null]);

    run({ keepForMs: 0 });
    const other = run({ keepForMs: 2000 * dayMs });

    await until(() => other.turns > 0, { what: "a turn" });
    await scene.core.sql("SELECT pg_sleep(0.1)");
    expect(await names()).to.deep.equal(["old"]);
    expect(other.turns, "statements, of which the last one found none").to.equal(1);
  });
});
