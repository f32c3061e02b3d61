import { expect } from "chai";
import { runAdmin } from "../../src/cli/program.ts";
import type { Transact } from "../../src/db/sql.ts";
import { countEvents, eraseRecord, type Erased } from "../../src/deliveries/erase.ts";
import { createDeliveryStore } from "../../src/deliveries/store.ts";
import type { SubscriptionModel } from "../support/generated/models.ts";
import { stateSql } from "../support/delivery-states.ts";
import { testOperator as actor } from "../support/actors.ts";
import { auditOf } from "../support/audit.ts";
import { coreOfSuite } from "../support/core-database.ts";
import { createMemoryTerminal, type MemoryTerminal } from "../support/memory-terminal.ts";
import { until } from "../support/wait.ts";
import { createWork, success, type DeliveryOverrides, type Work } from "../support/work.ts";

const canary = "whisper";
const nothing: Erased = {
  events: 0,
  unpublished: 0,
  payloads: 0,
  cancelled: 0,
  under_way: 0,
  answers: 0,
  kept_answers: 0,
};

describe("eraseRecord", () => {
  const core = coreOfSuite();
  let work: Work;
  let subscription: SubscriptionModel;

  before(async () => {
    work = createWork(core.prisma);
  });

  beforeEach(async () => {
    await work.clear();
    await core.sql("TRUNCATE svc.idempotency_keys");
    subscription = await work.addSubscription();
  });

  const erase = (recordId = "1", onProgress: (erased: Erased) => void = () => undefined): Promise<Erased> => {
    const record = { resource: "notes", recordId };
    return eraseRecord({ transact: core.transact, record, actor, onProgress });
  };

  const run = (terminal: MemoryTerminal, ...args: readonly string[]): Promise<number> => {
    const env = { DATABASE_URL: core.url };
    return runAdmin({ args: ["erase", "--resource", "notes", ...args], env, cwd: process.cwd(), terminal });
  };

  /** Adds a delivery with the canary in its payload and in the receiver's answer. */
  async function add(overrides: DeliveryOverrides = {}): Promise<bigint> {
    const { id, eventId } = await work.addDelivery(subscription, {
      data: JSON.stringify({ text: canary }),
      ...overrides,
    });
    await core.sql("UPDATE svc.events SET snapshot = $2 WHERE id = $1", [eventId, { text: canary }]);
    await core.sql(
      `INSERT INTO svc.attempts (delivery_id, number, started_at, duration_ms, response_headers, response_body, response_truncated)
       VALUES ($1, 1, now(), 7, $2, $3, true)`,
      [id, { "x-echo": canary }, Buffer.from(canary)],
    );
    return id;
  }

  /** Returns the tables that contain the canary. */
  async function leaks(): Promise<readonly string[]> {
    const tables = ["events", "event_data", "deliveries", "attempts", "idempotency_keys", "audit"];
    const found = await Promise.all(
      tables.map(async (table) => {
        const rows = await core.sql<{ text: string }>(`SELECT row::text AS text FROM svc.${table} AS row`);
        const hex = Buffer.from(canary).toString("hex");
        return rows.some(({ text }) => text.includes(canary) || text.includes(hex)) ? [table] : [];
      }),
    );
    return found.flat();
  }

  async function untilWaiting(): Promise<void> {
    const locks =
      "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    await until(async () => (await core.sql(locks)).length > 0, { what: "the erasure to wait" });
  }

  it("removes every payload, and keeps the rows", async () => {
    const delivered = await add({ status: "delivered", attempt: 1 });
    expect(await leaks()).to.have.members(["events", "event_data", "attempts"]);

    expect(await erase()).to.deep.equal({ ...nothing, events: 1, payloads: 1, answers: 1 });

    expect(await leaks()).to.deep.equal([]);
    expect(await work.deliveryOf(delivered)).to.include({ status: "delivered", attempt: 1 });
    const [attempt] = await work.attemptsOf(delivered);
    expect(attempt).to.include({ number: 1, durationMs: 7, responseTruncated: false });
    expect((await work.events())[0]).to.include({ recordId: "1", snapshot: null });
    expect(await erase()).to.deep.equal(nothing);
  });

  it("removes an answer that has only headers, such as one of 204", async () => {
    await add({ status: "delivered" });
    await core.sql("UPDATE svc.attempts SET response_body = NULL");

    expect(await erase()).to.include({ answers: 1 });

    expect(await leaks()).to.deep.equal([]);
  });

  it("leaves other records and resources alone", async () => {
    await add({ status: "delivered" });
    await core.sql("UPDATE svc.events SET record_id = '2'");
    await add({ status: "delivered" });
    await core.sql("UPDATE svc.events SET resource = 'orders' WHERE record_id = '1'");

    expect(await erase()).to.deep.equal(nothing);

    expect(await leaks()).to.have.members(["events", "event_data", "attempts"]);
    expect(await countEvents(core.sql, { resource: "notes", recordId: "2" })).to.equal(1);
  });

  it("cancels unfinished deliveries, and lets retention remove failed ones", async () => {
    const ids = [
      await add(),
      await add({ status: "retrying", attempt: 1, due: "parked" }),
      await add({ status: "held", heldAt: new Date() }),
    ];
    const failed = await add({ status: "failed", attempt: 3, lastError: "127.0.0.1:9 answered 500." });
    const deadLetteredAt = new Date("2026-01-01T00:00:00Z");
    const lettered = await add({ status: "failed", attempt: 3, deadLetteredAt });

    const erased = await erase();

    expect(erased).to.deep.equal({ ...nothing, events: 5, payloads: 5, cancelled: 3, answers: 5 });
    for (const id of ids) {
      const delivery = await work.deliveryOf(id);
      expect(delivery).to.include({ status: "cancelled", lastError: "The record was erased.", heldAt: null });
      expect(await work.queued(id)).to.equal(null);
    }
    const delivery = await work.deliveryOf(failed);
    expect(delivery).to.include({ status: "failed", lastError: "127.0.0.1:9 answered 500." });
    expect(delivery.deadLetteredAt).to.be.instanceOf(Date);
    expect((await work.deliveryOf(lettered)).deadLetteredAt).to.deep.equal(deadLetteredAt);
  });

  it("waits for an outcome that is being written, and leaves its status", async () => {
    const id = await add();
    const outcome = await core.database.pool.connect();
    await outcome.query("BEGIN");
    await outcome.query(`UPDATE svc.deliveries SET ${stateSql("'delivered'").set} WHERE id = $1`, [id]);

    const erasing = erase();
    await untilWaiting();
    await outcome.query("COMMIT");
    outcome.release();

    expect(await erasing).to.include({ events: 1, cancelled: 0 });
    expect(await work.deliveryOf(id)).to.include({ status: "delivered" });
  });

  for (const status of ["pending", "cancelled"] as const) {
    it(`keeps no answer of an attempt under way, of a delivery that is ${status}`, async () => {
      const id = await add();
      const store = createDeliveryStore({ sql: core.sql });
      const taken = await store.takeDue({ limit: 10, flightMs: 60_000, sinceMs: undefined });
      await core.sql(`UPDATE svc.deliveries SET ${stateSql("$1::text").set}`, [status]);

      const erased = await erase();
      expect(erased).to.include({ cancelled: status === "pending" ? 1 : 0, under_way: 1 });
      const result = {
        ...success(),
        responseHeaders: { "x-echo": canary },
        responseBody: Buffer.from(canary),
        isResponseTruncated: true,
      };
      const { uuid } = await work.deliveryOf(id);
      const outcome = { id: String(id), uuid, status: "delivered", attemptsBefore: 0, result } as const;
      await core.sql("DELETE FROM svc.attempts");
      await store.record({ outcomes: [outcome], endedFlights: [taken.flightId ?? ""], isWhole: true });

      expect(await work.attemptsOf(id)).to.have.length(1);
      expect(await work.deliveryOf(id)).to.include({ status: "cancelled", attempt: 1 });
      expect(await leaks()).to.deep.equal([]);
    });
  }

  it("waits in each portion for a page of a prune, which locks the same rows in another order", async () => {
    await add();
    let portions = 0;
    const transact: Transact = async (portion) => {
      portions += 1;
      // The first one writes the audit trail.
      if (portions === 1) return core.transact(portion);
      const page = await core.database.pool.connect();
      try {
        await page.query("BEGIN; SELECT pg_advisory_xact_lock(7001)");
        const erasing = core.transact(portion);
        await untilWaiting();
        await page.query("COMMIT");
        return await erasing;
      } finally {
        page.release();
      }
    };

    const record = { resource: "notes", recordId: "1" };
    await eraseRecord({ transact, record, actor, onProgress: () => undefined });

    expect(portions).to.equal(3);
    expect(await leaks()).to.deep.equal([]);
  });

  it("removes every payload when it is repeated after a death in any portion", async () => {
    await add();
    const record = { resource: "notes", recordId: "1" };
    for (let last = 1; last < 3; last += 1) {
      let portions = 0;
      const dying: Transact = (portion) => {
        portions += 1;
        return portions > last ? Promise.reject(new Error("died")) : core.transact(portion);
      };
      const erasing = eraseRecord({ transact: dying, record, actor, onProgress: () => undefined });
      expect(await erasing.catch(({ message }: Error) => message)).to.equal("died");
    }

    expect(await erase()).to.deep.equal({ ...nothing, cancelled: 1, answers: 1 });
    expect(await leaks()).to.deep.equal([]);
  });

  it("removes events that are not fanned out from the outbox, and sees the rows of a running fan-out", async () => {
    const waiting = await work.addEvent();
    const { id } = await work.addEvent({ snapshot: { text: canary } });
    const fanOut = await core.database.pool.connect();
    await fanOut.query("BEGIN");
    await fanOut.query("DELETE FROM svc.outbox WHERE event_id = $1", [id]);
    await fanOut.query("INSERT INTO svc.event_data (event_id, data) VALUES ($1, $2)", [id, canary]);

    const erasing = erase();
    await untilWaiting();
    await fanOut.query("COMMIT");
    fanOut.release();

    expect(await erasing).to.deep.equal({ ...nothing, events: 2, unpublished: 1, payloads: 1 });
    expect(await leaks()).to.deep.equal([]);
    expect(await work.outbox()).to.not.include(waiting.id);
  });

  it("replaces the answer kept for an Idempotency-Key, by the end of its Location", async () => {
    const keep = (key: string, location: string): Promise<unknown> =>
      core.sql(
        `INSERT INTO svc.idempotency_keys (user_id, key_hash, request_hash, status, headers, body, is_sealed, bytes, expires_at)
         VALUES (1, $1, '', 201, $2, $3, false, 7, now() + interval '1 hour')`,
        [Buffer.from(key), { Location: location }, Buffer.from(canary)],
      );
    await work.addEvent({ recordId: "a b" });
    await work.addEvent({ recordId: "1,a%20b" });
    await keep("one", "http://api.example/svc-api/resources/notes/a%20b");
    await keep("another", "http://api.example/svc-api/webhooks/notes/a%20b");
    await keep("several", "http://api.example/svc-api/resources/notes/1,a%20b");

    expect(await erase("a b")).to.include({ kept_answers: 1 });
    expect(await leaks()).to.deep.equal(["idempotency_keys"]);
    expect(await erase("1,a%20b")).to.include({ kept_answers: 1 });
    await core.sql("DELETE FROM svc.idempotency_keys WHERE headers ->> 'Location' LIKE '%/webhooks/%'");
    expect(await leaks()).to.deep.equal([]);
    const [row] = await core.sql<{ status: number; bytes: number; length: number }>(
      "SELECT status, bytes, length(body) AS length FROM svc.idempotency_keys LIMIT 1",
    );
    expect(row?.status).to.equal(404);
    expect(row?.bytes).to.equal(row?.length);
  });

  it("goes through many events and deliveries in portions", async () => {
    await core.sql(`
      WITH event AS (
        INSERT INTO svc.events (resource, trigger, record_id, snapshot)
        SELECT 'notes', 'on_update', '1', '{}' FROM generate_series(1, 250) RETURNING id, uuid
      )
      INSERT INTO svc.deliveries (uuid, event_id, event_uuid, subscription_id, user_id, resource, root_delivery_id, trigger_kind,
        max_attempts, url, status)
      SELECT gen_random_uuid(), id, uuid, number, 1, 'notes', 1, 'automatic', 3, '', 'pending' FROM event, generate_series(1, 25) AS number`);
    const progress: number[] = [];

    expect(await erase("1", ({ events }) => progress.push(events))).to.include({
      events: 250,
      cancelled: 6_250,
    });
    expect(progress).to.deep.equal([100, 200, 250]);
  });

  it("leaves a row of the audit trail, without the payload", async () => {
    await add();

    const [entry, ...more] = await auditOf(core.sql, () => erase());

    expect(more).to.deep.equal([]);
    expect(entry).to.include({
      action: "record.erased",
      subject_kind: "record",
      subject_id: "notes/1",
      actor_kind: "operator",
      actor_name: "ada",
    });
    expect(entry?.details).to.deep.equal({ events: 1 });
  });

  describe("as svc-admin erase", () => {
    it("prints the results, and that the record still exists", async () => {
      await add();
      const terminal = createMemoryTerminal();

      expect(await run(terminal, "--record", "1", "--yes", "--json")).to.equal(0);

      const { stdout, stderr } = terminal.read();
      const counts = { ...nothing, events: 1, payloads: 1, cancelled: 1, answers: 1 };
      expect(JSON.parse(stdout)).to.deep.equal({ resource: "notes", record_id: "1", ...counts });
      expect(stderr).to.include("The record in its table was not touched.");
    });

    it("asks first, and does nothing without a yes", async () => {
      await add();
      const unsure = createMemoryTerminal(["y"]);
      const alone = createMemoryTerminal();

      expect(await run(unsure, "--record", "1")).to.equal(1);
      expect(await run(alone, "--record", "1")).to.equal(1);
      expect(unsure.asked).to.deep.equal([
        "Erase every payload of the record 1 of notes, in 1 event, for good? Type yes: ",
      ]);
      expect(unsure.read().stderr).to.include("Nothing was erased.");
      expect(alone.read().stderr).to.include("Without a terminal, add --yes.");
      expect(await leaks()).to.not.deep.equal([]);
      expect(await run(createMemoryTerminal(["yes"]), "--record", "1")).to.equal(0);
      expect(await leaks()).to.deep.equal([]);
    });

    it("refuses a record without events, with a sentence", async () => {
      const terminal = createMemoryTerminal();

      expect(await run(terminal, "--record", "77", "--yes")).to.equal(1);
      expect(terminal.read().stderr).to.include("There are no events of the record 77 of notes.");
    });
  });
});
