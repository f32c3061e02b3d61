import { expect } from "chai";
import type { EventModel } from "../support/generated/models.ts";
import { createIndexSql } from "../../src/db/sql.ts";
import type { AdminRule } from "../../src/mapping/definition.ts";
import type { SubscriberFinder } from "../../src/subscriptions/find-subscribers.ts";
import { createSubscriptionStore } from "../../src/subscriptions/store.ts";
import type { NewSubscription } from "../../src/subscriptions/subscription.ts";
import { createUserStore } from "../../src/users/store.ts";
import { testOperator } from "../support/actors.ts";
import { nobody, useKnownScene } from "../support/known-scene.ts";
import { notesEligibility } from "../support/notes-eligibility.ts";
import { secretBox } from "../support/work.ts";

const flag: AdminRule = { kind: "flag" };
const boss: AdminRule = { kind: "emails", emails: ["boss@example.com"] };

const newWebhook: NewSubscription = {
  url: "http://127.0.0.1:9/new",
  resource: "notes",
  events: ["on_create"],
  filter: null,
  headers: new Map(),
  rateLimit: null,
  secret: undefined,
  isActive: true,
  description: null,
};

describe("createFanOut, with known subscribers that have changed since", () => {
  const scene = useKnownScene();
  const { finderFor, startKnown, fanOut, fanOutTwo, fanOutTogether, deliveriesOf, expectWhole } = scene;

  const store = (): ReturnType<typeof createSubscriptionStore> => {
    const { database, transact } = scene.core;
    const sql = createIndexSql(database.pool);
    return createSubscriptionStore({ sql, transact, secretBox, maxPerUser: 50 });
  };
  const users = (): ReturnType<typeof createUserStore> =>
    createUserStore({ ...scene.core, actor: testOperator });
  const sql = (text: string, ...values: readonly unknown[]): Promise<unknown> => scene.core.sql(text, values);

  let other: { readonly id: number; readonly userId: number };
  const own = (url = "hook", status = "pending"): readonly unknown[] => [scene.subscription.id, url, status];
  const theirs = (): readonly unknown[] => [other.id, "hook", "pending"];

  beforeEach(async () => {
    other = await scene.work.addSubscription();
  });

  const insertSql = `INSERT INTO svc.subscriptions (user_id, url, resource, events, encrypted_secret, secret_hint)
      SELECT user_id, 'http://127.0.0.1:9/new', resource, events, encrypted_secret, secret_hint FROM svc.subscriptions WHERE id = $1`;
  const made: readonly unknown[] = ["made", "new", "pending"];

  const cases: readonly (readonly [
    what: string,
    change: () => Promise<unknown>,
    expected: () => readonly (readonly unknown[])[],
    rule?: AdminRule,
  ])[] = [
    [
      "a webhook that was created",
      () => store().create({ id: scene.subscription.userId, isAdmin: false }, newWebhook, testOperator),
      () => [own(), made],
    ],
    ["a webhook that SQL created", () => sql(insertSql, scene.subscription.id), () => [own(), made]],
    [
      "a webhook with another URL",
      () =>
        store().update(
          scene.subscription.id,
          scene.subscription.userId,
          { url: newWebhook.url },
          testOperator,
        ),
      () => [own("new")],
    ],
    [
      "a webhook with another URL by SQL",
      () => sql("UPDATE svc.subscriptions SET url = 'http://127.0.0.1:9/new' WHERE id = $1", own()[0]),
      () => [own("new")],
    ],
    [
      "a webhook that was switched off",
      () =>
        store().update(scene.subscription.id, scene.subscription.userId, { isActive: false }, testOperator),
      () => [own("hook", "held")],
    ],
    [
      "a webhook that SQL switched off",
      () => sql("UPDATE svc.subscriptions SET is_active = false"),
      () => [own("hook", "held")],
    ],
    [
      "a webhook that was deleted",
      () => store().delete(scene.subscription.id, scene.subscription.userId, testOperator),
      () => [],
    ],
    ["a webhook that SQL deleted", () => sql("DELETE FROM svc.subscriptions"), () => []],
    ["all webhooks truncated", () => sql("TRUNCATE svc.subscriptions"), () => []],
    ["all users truncated", () => sql("TRUNCATE svc.users CASCADE"), () => []],
    [
      "a user who was disabled",
      () => users().setDisabled(scene.subscription.userId, true),
      () => [own("hook", "held")],
    ],
    [
      "a user whom SQL disabled",
      () => sql("UPDATE svc.users SET disabled_at = now()"),
      () => [own("hook", "held")],
    ],
    [
      "a user whom SQL deleted",
      () => sql("DELETE FROM svc.users WHERE id = $1", scene.subscription.userId),
      () => [],
    ],
    [
      "a user who was made an admin",
      () => users().update(other.userId, { isAdmin: true }, testOperator),
      () => [own(), theirs()],
      flag,
    ],
    [
      "a user whom SQL made an admin",
      () => sql("UPDATE svc.users SET is_admin = true WHERE id = $1", other.userId),
      () => [own(), theirs()],
      flag,
    ],
    [
      "a user with another e-mail",
      () => users().update(other.userId, { email: "Boss@example.com" }, testOperator),
      () => [own(), theirs()],
      boss,
    ],
    [
      "a user whose e-mail SQL changed",
      () => sql("UPDATE svc.users SET email = 'Boss@example.com' WHERE id = $1", other.userId),
      () => [own(), theirs()],
      boss,
    ],
  ];
  for (const [what, change, expected, rule] of cases)
    it(`writes nothing, looks up, and then writes once: ${what}`, async () => {
      startKnown(rule);
      const next = await fanOutTwo(change);

      expect(scene.inserts).to.deep.equal(["asked", "known, stale", "asked"]);
      const newest = (await scene.core.sql<{ id: number }>("SELECT max(id) AS id FROM svc.subscriptions"))[0];
      const rows = expected().map(([id, ...rest]) => [id === "made" ? newest?.id : id, ...rest]);
      expect(await deliveriesOf(next)).to.deep.equal(rows);
      expect(await deliveriesOf(scene.event)).to.have.length(1);
      await expectWhole();
    });

  it("finds a webhook that was switched on since, and drops all known answers", async () => {
    await scene.core.sql("UPDATE svc.subscriptions SET is_active = false WHERE id = $1", [own()[0]]);
    const stranger = await scene.work.addEvent({ ownerId: String(other.userId) });
    startKnown();
    await fanOut(stranger);
    const next = await fanOutTwo(() =>
      store().update(scene.subscription.id, scene.subscription.userId, { isActive: true }, testOperator),
    );
    expect(await deliveriesOf(next)).to.deep.equal([own()]);

    await fanOut(await scene.work.addEvent({ ownerId: String(other.userId) }));

    expect(scene.inserts).to.deep.equal(["asked", "asked", "known, stale", "asked", "asked"]);
  });

  it("sees a change whose transaction was open during the look-up, and that committed before the write", async () => {
    startKnown();
    const client = await scene.core.database.pool.connect();
    try {
      await client.query("BEGIN");
      await client.query("UPDATE svc.subscriptions SET url = 'http://127.0.0.1:9/new'");
      const next = await fanOutTwo(() => client.query("COMMIT"));

      expect(scene.inserts).to.deep.equal(["asked", "known, stale", "asked"]);
      expect(await deliveriesOf(next)).to.deep.equal([own("new")]);
    } finally {
      client.release();
    }
  });

  it("ignores a change after the write", async () => {
    startKnown();
    const client = await scene.core.database.pool.connect();
    try {
      await client.query("BEGIN");
      await client.query("UPDATE svc.subscriptions SET url = 'http://127.0.0.1:9/new'");
      const next = await fanOutTwo();
      await client.query("COMMIT");

      expect(scene.inserts).to.deep.equal(["asked", "known"]);
      expect(await deliveriesOf(next)).to.deep.equal([own()]);
    } finally {
      client.release();
    }
  });

  it("uses the oldest of its answers", async () => {
    startKnown();
    await fanOut(scene.event);
    await sql("UPDATE svc.subscriptions SET url = 'http://127.0.0.1:9/new'");
    // The query is after the change.
    await fanOut(await scene.work.addEvent({ ownerId: String(other.userId) }));
    const [one] = await fanOutTogether(other.userId);

    expect(scene.inserts).to.deep.equal(["asked", "asked", "known, stale", "asked"]);
    expect(await deliveriesOf(one)).to.deep.equal([own("new")]);
  });

  it("holds for each of two dispatchers", async () => {
    const finders = [finderFor(notesEligibility()), finderFor(notesEligibility())];
    const events = await scene.addEvents(4);
    const turn = async (finder: number, event: EventModel | undefined): Promise<void> => {
      startKnown(nobody, { subscribers: finders[finder] as SubscriberFinder });
      await fanOut(event as EventModel);
      await scene.stop();
    };
    await turn(0, scene.event);
    await turn(1, events[0]);
    await sql("UPDATE svc.subscriptions SET url = 'http://127.0.0.1:9/new'");
    await turn(0, events[1]);
    await turn(1, events[2]);
    // After a change, no cached answer is used for 100 ms.
    scene.nowMs += 100;
    await turn(0, events[3]);

    expect(scene.inserts).to.deep.equal([
      "asked",
      "asked",
      "known, stale",
      "asked",
      "known, stale",
      "asked",
      "known",
    ]);
    for (const event of events.slice(1)) expect(await deliveriesOf(event)).to.deep.equal([own("new")]);
  });

  it("leaves rate-limited deliveries to the queue when the grant was lost with the first try, and keeps no slot", async () => {
    await sql("UPDATE svc.subscriptions SET rate_limit = 1");
    let granted = 0;
    const rates = { take: async () => new Map([[scene.subscription.id, granted++ < 2 ? 1 : 0]]) };
    startKnown(nobody, { rates });
    const next = await fanOutTwo(() => sql("UPDATE svc.subscriptions SET url = url"));

    const [delivery] = (await scene.work.deliveries()).filter(({ eventId }) => eventId === next.id);
    expect(await scene.work.queued(delivery?.id ?? 0n)).to.include({ dueAt: null });
    expect(scene.started).to.have.length(1);
    expect(scene.admission.held).to.equal(1);
    expect(scene.parked).to.equal(1);
  });

  it("leaves rate-limited deliveries to the queue when the rates cannot be read, and starts the others", async () => {
    await sql(insertSql, scene.subscription.id);
    await sql("UPDATE svc.subscriptions SET rate_limit = 1 WHERE id = $1", scene.subscription.id);
    startKnown(nobody, { rates: { take: () => Promise.reject(new Error("a lock")) } });
    await fanOutTwo();

    expect(await scene.work.deliveries()).to.have.length(4);
    expect([scene.started.length, scene.admission.held, scene.parked]).to.deep.equal([2, 2, 2]);
  });
});
