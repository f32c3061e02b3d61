import { expect } from "chai";
import { Client } from "pg";
import { coreSteps, loadCoreMigrations, runSteps } from "../../src/migration/core-migrations.ts";
import { useCoreScene } from "../support/core-scene.ts";
import { createTestDatabase } from "../support/database.ts";

type Row = Readonly<Record<string, string>>;

/** SQL of the columns of a valid row. */
const delivery: Row = {
  uuid: "gen_random_uuid()",
  event_id: "1",
  event_uuid: "gen_random_uuid()",
  subscription_id: "1",
  user_id: "1",
  resource: "'notes'",
  root_delivery_id: "1",
  trigger_kind: "'automatic'",
  max_attempts: "3",
  url: "'http://127.0.0.1:9/'",
};
const states: Readonly<Record<string, Row>> = {
  pending: { status: "'pending'" },
  retrying: { status: "'retrying'", attempt: "1", last_error: "'refused'" },
  held: { status: "'held'", held_at: "now()" },
  "held, and tried before": { status: "'held'", held_at: "now()", attempt: "2", last_error: "'refused'" },
  delivered: { status: "'delivered'", attempt: "3" },
  failed: { status: "'failed'", attempt: "3", last_error: "'refused'", dead_lettered_at: "now()" },
  "failed without an attempt": { status: "'failed'", last_error: "'given up'" },
  cancelled: { status: "'cancelled'", attempt: "1", last_error: "'gone'" },
  "of a replay": { trigger_kind: "'manual'", replay_id: "1" },
};

/** Mixed states, each beside a valid one: columns, and the constraint that refuses them. */
const mixed: readonly (readonly [state: string, columns: Row, constraint: string])[] = [
  ["pending", { status: "'lost'" }, "deliveries_status_check"],
  ["pending", { held_at: "now()" }, "deliveries_held_check"],
  ["held", { held_at: "NULL" }, "deliveries_held_check"],
  ["delivered", { held_at: "now()" }, "deliveries_held_check"],
  ...["pending", "retrying", "held", "delivered", "cancelled"].map(
    (state) => [state, { dead_lettered_at: "now()" }, "deliveries_dead_lettered_check"] as const,
  ),
  ["pending", { attempt: "1" }, "deliveries_attempt_check"],
  ["pending", { max_attempts: "0" }, "deliveries_attempt_check"],
  ["retrying", { attempt: "0" }, "deliveries_attempt_check"],
  ["retrying", { attempt: "3" }, "deliveries_attempt_check"],
  ["held, and tried before", { attempt: "3" }, "deliveries_attempt_check"],
  ["delivered", { attempt: "0" }, "deliveries_attempt_check"],
  ["failed", { attempt: "4" }, "deliveries_attempt_check"],
  ["cancelled", { attempt: "-1" }, "deliveries_attempt_check"],
  ["pending", { last_error: "'refused'" }, "deliveries_last_error_check"],
  ["delivered", { last_error: "'refused'" }, "deliveries_last_error_check"],
  ["held", { last_error: "'refused'" }, "deliveries_last_error_check"],
  ...["held, and tried before", "retrying", "failed", "cancelled"].map(
    (state) => [state, { last_error: "NULL" }, "deliveries_last_error_check"] as const,
  ),
  ["pending", { parent_delivery_id: "1" }, "deliveries_trigger_kind_check"],
  ["of a replay", { trigger_kind: "'automatic'" }, "deliveries_replay_check"],
];

const replay: Row = {
  subscription_id: "1",
  user_id: "1",
  asked: "'{}'",
  cursor: "0",
  until_id: "9",
  total: "5",
  is_estimate: "false",
};

const others: readonly (readonly [table: string, row: Row, columns: Row, constraint: string])[] = [
  ["replays", replay, { state: "'lost'" }, "replays_state_check"],
  ["replays", replay, { reason: "'gone'", state: "'paused'" }, "replays_reason_check"],
  ["replays", { ...replay, state: "'done'", done: "5" }, { reason: "'gone'" }, "replays_reason_check"],
  ["replays", { ...replay, state: "'done'", done: "5" }, { done: "4" }, "replays_counts_check"],
  ["replays", { ...replay, state: "'done'", done: "5" }, { is_estimate: "true" }, "replays_counts_check"],
  ["replays", { ...replay, done: "2", failed: "2" }, { failed: "3" }, "replays_counts_check"],
  ["replays", replay, { held_until: "now()" }, "replays_holder_check"],
];

describe("the CHECKs of the tables", () => {
  const scene = useCoreScene();
  beforeEach(() => scene.core.sql("DELETE FROM svc.replays"));

  /** Returns the constraint that refuses a row; undefined: none. */
  async function refusalOf(table: string, row: Row): Promise<string | undefined> {
    const text = `INSERT INTO svc.${table} (${Object.keys(row).join(", ")}) VALUES (${Object.values(row).join(", ")})`;
    try {
      await scene.core.sql(text);
      return undefined;
    } catch (error) {
      return (error as { readonly constraint?: string }).constraint ?? String(error);
    }
  }

  for (const [state, columns] of Object.entries(states))
    it(`accept a delivery that is ${state}`, async () => {
      expect(await refusalOf("deliveries", { ...delivery, ...columns })).to.equal(undefined);
    });

  for (const [state, columns, constraint] of mixed)
    it(`refuse a delivery that is ${state} with ${JSON.stringify(columns)}`, async () => {
      const row = { ...delivery, ...states[state], ...columns };
      expect(await refusalOf("deliveries", row)).to.equal(constraint);
    });

  for (const [table, row, columns, constraint] of others)
    it(`refuse a row of ${table} with ${JSON.stringify(columns)}`, async () => {
      expect(await refusalOf(table, row)).to.equal(undefined);
      expect(await refusalOf(table, { ...row, ...columns })).to.equal(constraint);
    });

  // A trigger sets `disabled_at` and `disabled_reason`, over any written values.
  for (const [change, constraint] of [
    ["is_active = false, disabled_reason = 'tired'", "subscriptions_disabled_check"],
    ["events = '{on_read}'", "subscriptions_events_check"],
    ["events = '{}'", "subscriptions_events_check"],
    ["rate_limit = 0", "subscriptions_rate_limit_check"],
    ["previous_until = now()", "subscriptions_previous_check"],
    ["encrypted_previous = ''", "subscriptions_previous_check"],
    ["header_names = '{X-Key}'", "subscriptions_headers_check"],
    ["header_names = '{X-Key}', encrypted_headers = ''", "subscriptions_headers_changed_check"],
  ] as const)
    it(`refuse a subscription with ${change}`, async () => {
      const user = await scene.work.addUser();
      const { id } = await scene.work.addSubscription({ userId: user.id });

      const changed = scene.core.sql(`UPDATE svc.subscriptions SET ${change} WHERE id = $1`, [id]);

      expect(await changed.catch((error: unknown) => error)).to.have.nested.property(
        "constraint",
        constraint,
      );
    });

  it("refuse a state of a subscription that fails since before its last success, or has a notice without a failure", async () => {
    const user = await scene.work.addUser();
    const { id } = await scene.work.addSubscription({ userId: user.id });
    for (const change of [
      "last_success_at = now(), failing_since = now() - interval '1 hour'",
      "failing_told_at = now()",
    ]) {
      const changed = scene.core.sql(
        `UPDATE svc.subscription_state SET ${change} WHERE subscription_id = $1`,
        [id],
      );

      expect(await changed.catch((error: unknown) => error)).to.have.nested.property(
        "constraint",
        "subscription_state_failing_check",
      );
    }
  });
});

describe("0022_states", () => {
  it("completes the unfinished parts of old rows, and leaves the others unchanged", async () => {
    const old = await createTestDatabase();
    const client = new Client({ connectionString: old.url });
    await client.connect();
    const add = (table: string, row: Row): Promise<unknown> =>
      client.query(
        `INSERT INTO svc.${table} (${Object.keys(row).join(", ")}) VALUES (${Object.values(row).join(", ")})`,
      );
    try {
      const migrations = await loadCoreMigrations();
      const at = migrations.findIndex(({ name }) => name === "0022_states");
      await runSteps(client, coreSteps(migrations.slice(0, at)));
      for (const columns of [
        { ...states["held"], last_error: "'refused'" },
        { ...states["held, and tried before"], last_error: "NULL" },
        { status: "'failed'" },
        { status: "'delivered'" },
      ])
        await add("deliveries", { ...delivery, trigger_kind: "'manual'", ...columns });
      await add("replays", { ...replay, state: "'done'", done: "4", is_estimate: "true" });
      await add("replays", { ...replay, reason: "'gone'" });

      await runSteps(client, coreSteps(migrations.slice(at)));

      const { rows: deliveries } = await client.query("SELECT last_error FROM svc.deliveries ORDER BY id");
      expect(deliveries.map(({ last_error }) => last_error as unknown)).to.deep.equal([
        null,
        "unknown",
        "unknown",
        null,
      ]);
      const { rows: replays } = await client.query(
        "SELECT total, is_estimate, reason FROM svc.replays ORDER BY id",
      );
      expect(replays).to.deep.equal([
        { total: "4", is_estimate: false, reason: null },
        { total: "5", is_estimate: false, reason: null },
      ]);
    } finally {
      await client.end();
      await old.drop();
    }
  });
});
