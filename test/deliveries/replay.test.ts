import { expect } from "chai";
import { Command } from "commander";
import { addDeliveryCommands, type DeliveryCommandsContext } from "../../src/deliveries/commands.ts";
import { eraseRecord } from "../../src/deliveries/erase.ts";
import { messageOf } from "../../src/kit/errors.ts";
import { createIndexSql, createTransact } from "../../src/db/sql.ts";
import { testOperator as actor } from "../support/actors.ts";
import { auditOf } from "../support/audit.ts";
import { createMemoryTerminal } from "../support/memory-terminal.ts";
import { createNote, notesYaml, subscribe, unsubscribeAll, untilDelivery } from "../support/notes.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { serviceOfSuite, type Answer, type TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";

const since = "2020-01-01T00:00:00Z";
const never = { since, status: ["never"] };

describe("POST /webhooks/{id}/replay", () => {
  const service = serviceOfSuite({
    mode: "servers",
    resources: { "notes.yaml": notesYaml },
    webhooks: { maxAttempts: 1, timeoutMs: 2_000, backoffMs: [300] },
  });
  let receiver: TestReceiver;
  let ada: TestUser;

  beforeEach(async () => {
    receiver = await startReceiver();
    ada = await service.createUser();
  });
  afterEach(async () => {
    await unsubscribeAll(ada);
    await receiver.close();
  });

  const replay = (id: number, asked: Readonly<Record<string, unknown>>, by = ada): Promise<Answer> =>
    by.request("POST", `/webhooks/${id}/replay`, asked);
  const started = async (id: number, asked: Readonly<Record<string, unknown>>): Promise<number> => {
    const answer = await replay(id, asked);
    expect(answer.status, JSON.stringify(answer.body)).to.equal(202);
    return answer.body.id;
  };
  const untilState = (id: number, state: string): Promise<Answer["body"]> =>
    until(
      async () => {
        const { body } = await ada.request("GET", `/webhook-replays/${id}`);
        return body.state === state && body;
      },
      { what: `replay ${id} to be ${state}` },
    );
  const texts = (): readonly string[] =>
    receiver.received.map(({ rawBody }) => String(JSON.parse(rawBody.toString()).data.text));
  const createNotes = async (count: number): Promise<readonly string[]> => {
    const names = Array.from({ length: count }, (_, index) => `n${index + 1}`);
    for (const text of names) await createNote(ada, text);
    await untilFannedOut();
    return names;
  };
  const untilFannedOut = async (): Promise<void> => {
    await until(
      async () => (await service.infrastructure.sql("SELECT FROM svc.outbox LIMIT 1")).length === 0,
      { what: "the events to be fanned out" },
    );
  };
  const madeFor = async (id: number): Promise<readonly { readonly events: string; readonly all: string }[]> =>
    service.infrastructure.sql(
      "SELECT count(*) AS all, count(DISTINCT event_id) AS events FROM svc.deliveries WHERE subscription_id = $1",
      [id],
    );

  /** Runs `svc-admin deliveries replay`, at a terminal. */
  async function run(...given: readonly string[]): Promise<{ stdout: string; stderr: string }> {
    const { database, sql, transact } = service.infrastructure;
    const terminal = createMemoryTerminal([]);
    const program = new Command().exitOverride().configureOutput({ writeErr: () => undefined });
    const open = async (): Promise<DeliveryCommandsContext> => ({
      sql,
      listSql: createIndexSql(database.pool),
      transact,
      config: { webhooks: { manualRetryLimit: 5 } },
      actor,
      loadEligibility: () => Promise.reject(new Error("a replay asks for no right")),
      close: async () => undefined,
    });
    addDeliveryCommands(program, { open, terminal });
    await program.parseAsync(["deliveries", "replay", ...given], { from: "user" });
    return terminal.read();
  }

  it("sends events that the webhook never got, in their order, once each", async () => {
    const notes = await createNotes(5);
    const { id } = await subscribe(ada, receiver);

    const job = await started(id, never);

    await receiver.waitFor(notes.length);
    expect(texts()).to.deep.equal(notes);
    expect(await untilState(job, "done")).to.include({ webhook_id: id, done: 5, total: 5, failed: 0 });
    const sent = await untilDelivery(ada, id, "delivered");
    expect(sent).to.include({ trigger_kind: "manual", parent_delivery_id: null });
    expect(sent.attempts[0].trigger).to.equal("replay");
    expect((await replay(id, { ...never, dry_run: true })).body.count).to.equal(0);
  });

  it("sends failed deliveries again, as their children, and delivered ones only on request", async () => {
    const { id } = await subscribe(ada, receiver);
    const [good] = await createNotes(1);
    await untilDelivery(ada, id, "delivered");
    receiver.answer = { status: 500 };
    await createNote(ada, "bad");
    const failed = await untilDelivery(ada, id, "failed");
    receiver.answer = { status: 200 };
    const before = receiver.received.length;

    await untilState(await started(id, { since }), "done");

    await receiver.waitFor(before + 1);
    expect(texts().slice(before)).to.deep.equal(["bad"]);
    // The receiver has it before its outcome is written.
    const again = await until(
      async () => [await untilDelivery(ada, id, "delivered")].find((one) => one.parent_delivery_id !== null),
      { what: "the child to be delivered" },
    );
    expect(again).to.include({ parent_delivery_id: failed.id, root_delivery_id: failed.id });
    await untilState(await started(id, { since, status: ["delivered"] }), "done");
    await receiver.waitFor(before + 3);
    expect(texts().slice(before + 1)).to.deep.equal([good, "bad"]);
    // A replay does not change the number of manual retries.
    expect((await ada.request("POST", `/webhook-deliveries/${failed.id}/retry`)).status).to.equal(201);
  });

  it("counts its events, and returns the first ones, without a delivery", async () => {
    await createNotes(12);
    const other = await service.createUser();
    await createNote(other, "of another");
    const { id } = await subscribe(ada, receiver);

    const { status, body } = await replay(id, { ...never, dry_run: true });

    expect(status).to.equal(200);
    expect(body).to.include({ count: 12, is_estimate: false });
    expect(body.event_ids).to.have.length(10);
    expect(await madeFor(id)).to.deep.equal([{ all: "0", events: "0" }]);
    const updates = await replay(id, { ...never, events: ["on_update"], dry_run: true });
    expect(updates.body.count).to.equal(0);
    const before = await replay(id, { ...never, until: "2021-01-01", dry_run: true });
    expect(before.body.count).to.equal(0);
  });

  it("sends only events that the user may read now and that pass the webhook's filter", async () => {
    const other = await service.createUser();
    await createNote(other, "of another");
    await createNotes(3);
    const { id } = await subscribe(ada, receiver, { filter: { text: "n2" } });

    const job = await started(id, never);

    expect(await untilState(job, "done")).to.include({ done: 1, failed: 0 });
    await receiver.waitFor(1);
    expect(texts()).to.deep.equal(["n2"]);
    const admin = await service.createUser({ isAdmin: true });
    expect((await replay(id, { since, dry_run: true }, admin)).status).to.equal(200);
    for (const [method, path] of [
      ["POST", `/webhooks/${id}/replay`],
      ["GET", `/webhook-replays/${job}`],
      ["POST", `/webhook-replays/${job}/cancel`],
    ] as const)
      expect((await other.request(method, path, method === "GET" ? undefined : {})).status, path).to.equal(
        404,
      );
  });

  it("loses and doubles nothing when its process dies between two portions", async () => {
    const operations = Array.from({ length: 130 }, (_, n) => ({
      method: "create",
      data: { text: `n${n + 1}` },
    }));
    expect((await ada.request("POST", "/resources/notes/batch", { operations })).status).to.equal(200);
    const notes = operations.map(({ data }) => data.text);
    await untilFannedOut();
    const { id } = await subscribe(ada, receiver);
    const { sql } = service.infrastructure;
    await sql(`CREATE FUNCTION svc.test_die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF OLD.done > 0 AND NEW.cursor <> OLD.cursor THEN RAISE EXCEPTION 'killed'; END IF; RETURN NEW; END $$`);
    await sql(
      "CREATE TRIGGER test_die BEFORE UPDATE ON svc.replays FOR EACH ROW EXECUTE FUNCTION svc.test_die()",
    );
    const job = await started(id, never);
    // Some of the first hundred events are of other users.
    const first = await until(
      async () => Number((await ada.request("GET", `/webhook-replays/${job}`)).body.done),
      { what: "the first portion" },
    );
    expect(first).to.be.within(1, 129);
    // Simulates one whose process died and that was taken over.
    await sql(
      "UPDATE svc.replays SET holder = gen_random_uuid(), held_until = now() + interval '500 ms' WHERE id = $1",
      [job],
    );
    expect(await madeFor(id)).to.deep.equal([{ all: String(first), events: String(first) }]);
    await sql("DROP FUNCTION svc.test_die CASCADE");

    expect(await untilState(job, "done")).to.include({ done: 130, total: 130, failed: 0 });

    await receiver.waitFor(130);
    expect(texts()).to.deep.equal(notes);
    expect(await madeFor(id)).to.deep.equal([{ all: "130", events: "130" }]);
  });

  it("pauses, resumes and cancels, with one replay of a webhook at a time", async () => {
    await createNotes(4);
    const { id } = await subscribe(ada, receiver);
    await service.infrastructure
      .sql(`CREATE FUNCTION svc.test_stand() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF NEW.cursor <> OLD.cursor THEN RAISE EXCEPTION 'not yet'; END IF; RETURN NEW; END $$`);
    await service.infrastructure.sql(
      "CREATE TRIGGER test_stand BEFORE UPDATE ON svc.replays FOR EACH ROW EXECUTE FUNCTION svc.test_stand()",
    );
    const job = await started(id, never);
    const move = async (name: string): Promise<Answer> =>
      ada.request("POST", `/webhook-replays/${job}/${name}`);

    expect((await replay(id, never)).status).to.equal(409);
    expect((await move("pause")).body).to.include({ state: "paused", done: 0, total: 4 });
    expect((await replay(id, never)).body).to.deep.equal({
      code: "replay.conflict",
      message: `The replay ${job} of this webhook has not ended: cancel it first.`,
    });
    await service.infrastructure.sql("DROP FUNCTION svc.test_stand CASCADE");
    expect((await move("resume")).body.state).to.equal("running");
    await receiver.waitFor(4);
    await untilState(job, "done");
    expect((await move("cancel")).body.code).to.equal("replay.conflict");
    await until(
      async () =>
        (await ada.request("GET", `/webhook-deliveries?webhook_id=${id}&status=delivered`)).body.total === 4,
      { what: "the outcomes to be written" },
    );

    // Another dispatcher has the lane of held deliveries, and sends none.
    await service.infrastructure.sql(
      "INSERT INTO svc.lanes VALUES ($1, gen_random_uuid(), now() + interval '1 hour') ON CONFLICT (subscription_id) DO UPDATE SET held_until = EXCLUDED.held_until, holder = EXCLUDED.holder",
      [id],
    );
    const second = await started(id, { since, status: ["delivered"] });
    await untilState(second, "done");
    await service.infrastructure.sql("UPDATE svc.replays SET state = 'paused' WHERE id = $1", [second]);
    expect((await madeFor(id))[0]?.all).to.equal("8");
    const cancelled = await ada.request("POST", `/webhook-replays/${second}/cancel`);
    expect(cancelled.body.state).to.equal("cancelled");
    const { last_error: why } = await untilDelivery(ada, id, "cancelled");
    expect(why).to.equal("The replay was cancelled.");
    expect(
      (await ada.request("GET", `/webhook-deliveries?webhook_id=${id}&status=held`)).body.total,
    ).to.equal(0);
    expect(receiver.received).to.have.length(4);
  });

  it("only counts for a webhook that is off, and ends the replay of one that is switched off or deleted", async () => {
    await createNotes(1);
    const { id } = await subscribe(ada, receiver);
    const { sql } = service.infrastructure;
    const reopen = "UPDATE svc.replays SET state = 'paused', reason = NULL WHERE id = $1";
    const job = await started(id, { ...never, until: "2020-01-02" });
    await untilState(job, "done");
    await sql(reopen, [job]);
    await ada.request("PUT", `/webhooks/${id}`, { is_active: false });
    expect((await replay(id, never)).body.code).to.equal("replay.refused");
    expect((await replay(id, { ...never, dry_run: true })).status).to.equal(200);
    await ada.request("POST", `/webhook-replays/${job}/resume`);
    expect((await untilState(job, "cancelled")).reason).to.equal("The subscription was switched off.");
    await sql(reopen, [job]);
    await ada.request("DELETE", `/webhooks/${id}`);
    await ada.request("POST", `/webhook-replays/${job}/resume`);
    await until(async () => (await untilState(job, "cancelled")).reason.includes("deleted"), {
      what: "the reason",
    });
  });

  it("counts an event whose record was erased as failed", async () => {
    const { id } = await subscribe(ada, receiver);
    receiver.answer = { status: 500 };
    await createNote(ada, "erased");
    const failed = await untilDelivery(ada, id, "failed");
    const record = { resource: "notes", recordId: failed.record_id };
    const { pool } = service.infrastructure.database;
    await eraseRecord({ transact: createTransact(pool), record, actor, onProgress: () => undefined });
    const { id: other } = await subscribe(ada, receiver);

    const job = await started(id, { since });
    const ofOther = await started(other, never);

    expect(await untilState(job, "done")).to.include({ done: 1, failed: 1, total: 1 });
    expect(await untilState(ofOther, "done")).to.include({ done: 1, failed: 1, total: 1 });
  });

  it("refuses unknown values, by field", async () => {
    const { id } = await subscribe(ada, receiver, { events: ["on_create"] });
    for (const [asked, field] of [
      [{}, "since"],
      [{ since: "yesterday" }, "since"],
      [{ since, until: 5 }, "until"],
      [{ since: "2021-01-01", until: "2020-01-01" }, "since"],
      [{ since, status: [] }, "status"],
      [{ since, status: ["held"] }, "status"],
      [{ since, events: ["on_update"] }, "events"],
      [{ since, resource: "nothing" }, "resource"],
      [{ since, dry_run: "yes" }, "dry_run"],
      [{ since, sinse: since }, "sinse"],
    ] as const) {
      const answer = await replay(id, asked);
      expect(answer.status, JSON.stringify(asked)).to.equal(422);
      expect(Object.keys(answer.body.errors), JSON.stringify(asked)).to.deep.equal([field]);
    }
  });

  it("leaves a row of the audit trail for each action of its owner, and none for a no-op", async () => {
    const { id } = await subscribe(ada, receiver);
    const asked = { since, status: ["failed"] };
    // In the past: it ends at once. Paused again by hand, as a long one would be.
    const job = await started(id, { ...asked, until: "2020-01-02" });
    await untilState(job, "done");
    const { sql } = service.infrastructure;
    await sql("UPDATE svc.replays SET state = 'paused' WHERE id = $1", [job]);
    const move = (name: string): Promise<Answer> => ada.request("POST", `/webhook-replays/${job}/${name}`);

    const entries = await auditOf(sql, async () => {
      await move("pause");
      const { body } = await move("cancel");
      expect((await move("cancel")).body).to.deep.equal(body);
      await move("resume");
      await untilState(await started(id, asked), "done");
    });

    expect(entries.map(({ action, details }) => [action, details.replay])).to.deep.equal([
      ["webhook.replay_cancelled", job],
      ["webhook.replay_started", job + 1],
    ]);
    for (const entry of entries)
      expect(entry).to.include({ actor_kind: "user", actor_id: ada.id, subject_id: String(id) });
    expect(entries[1]?.details.asked).to.deep.include({ status: ["failed"] });
  });

  it("is steered by svc-admin", async () => {
    const { id } = await subscribe(ada, receiver);
    const { sql } = service.infrastructure;
    const job = await started(id, { since, until: "2020-01-02" });
    await untilState(job, "done");
    await sql("UPDATE svc.replays SET state = 'paused' WHERE id = $1", [job]);

    const list = await run("list", "--webhook", String(id));
    const json = JSON.parse((await run("list", "--webhook", String(id), "--json")).stdout);
    const entries = await auditOf(sql, () => run("cancel", String(job)));
    const cancelled = await ada.request("GET", `/webhook-replays/${job}`);
    const again = await run("cancel", String(job), "--json");

    expect(again.stderr).to.equal(`The replay ${job} is cancelled already: nothing was changed.\n`);
    expect(JSON.parse(again.stdout)).to.deep.equal(cancelled.body);
    expect(list.stdout).to.contain("paused").and.contain("0 of 0");
    expect(Math.max(...list.stdout.split("\n").map(({ length }) => length))).to.be.at.most(100);
    expect(json.map(({ id: one, state }: Answer["body"]) => [one, state])).to.deep.equal([[job, "paused"]]);
    expect(entries.map(({ action, actor_kind: kind }) => [action, kind])).to.deep.equal([
      ["webhook.replay_cancelled", "operator"],
    ]);
    for (const [given, fault] of [
      [["resume", String(job)], `The replay ${job} has ended: it is cancelled.`],
      [["pause", "999999"], "There is no replay with the id 999999"],
      [[String(id)], "required option '--since <time>'"],
    ] as const)
      expect(await run(...given).catch(messageOf)).to.contain(fault);
  });

  it("is a command too, with a bar on a terminal", async () => {
    const notes = await createNotes(2);
    const { id } = await subscribe(ada, receiver);

    const asked = ["--since", "1h", "--status", "never", "--resource", "notes"];
    const counted = await run(String(id), ...asked, "--dry-run", "--json");
    const { stdout, stderr } = await run(String(id), "--since", "1h", "--status", "never,failed");

    // An operator's count includes the events of all users.
    expect(JSON.parse(counted.stdout).count).to.be.at.least(2);
    expect(stderr).to.include("] 2 of 2 ");
    expect(stdout).to.match(/state +│ done/);
    await receiver.waitFor(2);
    expect(texts()).to.deep.equal(notes);
    for (const wrong of [
      ["--status", "held"],
      ["--resource", "nothing"],
      ["--until", "2h"],
    ])
      expect(await run(String(id), "--since", "1h", ...wrong).catch(String), wrong[0]).to.match(
        /OperatorError|CommanderError|Error: The/,
      );
  });
});
