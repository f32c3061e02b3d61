import { expect } from "chai";
import type { EventModel } from "../support/generated/models.ts";
import type { AdminRule } from "../../src/mapping/definition.ts";
import { messageOf } from "../support/fan-out-scene.ts";
import { nobody, useKnownScene } from "../support/known-scene.ts";
import { notesEligibility } from "../support/notes-eligibility.ts";
import { until } from "../support/wait.ts";

// Fan-out to subscribers in memory; fan-out-changed.test.ts has their changes.
describe("createFanOut, with known subscribers", () => {
  const scene = useKnownScene();
  const { finderFor, startKnown, fanOut, fanOutTwo, fanOutTogether, deliveriesOf, expectWhole } = scene;

  it("looks up once for several events of one owner, with and without a webhook", async () => {
    startKnown({ kind: "flag" });
    const next = await fanOutTwo();

    expect(scene.lookUps).to.equal(1);
    expect(scene.inserts).to.deep.equal(["asked", "known"]);
    expect(await deliveriesOf(next)).to.deep.equal([[scene.subscription.id, "hook", "pending"]]);
    await expectWhole();

    const { id } = await scene.work.addUser();
    for (let turn = 0; turn < 3; turn++) await fanOut(await scene.work.addEvent({ ownerId: String(id) }));
    expect(scene.inserts.slice(2)).to.deep.equal(["asked", "known", "known"]);
    expect(scene.lookUps).to.equal(2);
  });

  it("combines the known answers for a batch of several owners", async () => {
    const other = await scene.work.addSubscription();
    const off = await scene.work.addSubscription({ userId: other.userId, isActive: false, resource: "*" });
    startKnown();
    await fanOut(scene.event);
    await fanOut(await scene.work.addEvent({ ownerId: String(other.userId) }));
    const [one, two] = await fanOutTogether(other.userId);

    expect(scene.lookUps).to.equal(2);
    expect(await deliveriesOf(one)).to.deep.equal([[scene.subscription.id, "hook", "pending"]]);
    expect(await deliveriesOf(two)).to.deep.equal([
      [other.id, "hook", "pending"],
      [off.id, "hook", "held"],
    ]);
  });

  it("finds the subscriptions that are off among the queried users, however many others are off", async () => {
    const own = await scene.work.addSubscription({ userId: scene.subscription.userId, isActive: false });
    const other = await scene.work.addSubscription({ isActive: false });
    await scene.core.sql(
      `INSERT INTO svc.subscriptions (user_id, url, resource, events, is_active, encrypted_secret, secret_hint)
       SELECT user_id, url, resource, events, is_active, encrypted_secret, secret_hint
       FROM svc.subscriptions CROSS JOIN generate_series(1, 100) WHERE id = $1`,
      [other.id],
    );
    startKnown();
    const next = await fanOutTwo();

    expect(scene.inserts).to.deep.equal(["asked", "known"]);
    expect(await deliveriesOf(next)).to.deep.equal([
      [scene.subscription.id, "hook", "pending"],
      [own.id, "hook", "held"],
    ]);
  });

  const rules: readonly AdminRule[] = [{ kind: "flag" }, { kind: "emails", emails: ["BOSS@example.com"] }];
  for (const rule of rules)
    it(`caches the webhooks of admins too, and of no other user (isAdmin: ${rule.kind})`, async () => {
      const { id: userId } = await scene.work.addUser({ email: "Boss@Example.com", isAdmin: true });
      const admins = await scene.work.addSubscription({ userId });
      await scene.work.addSubscription();
      startKnown(rule);
      const next = await fanOutTwo();

      expect(scene.inserts).to.deep.equal(["asked", "known"]);
      expect(await deliveriesOf(next)).to.deep.equal([
        [scene.subscription.id, "hook", "pending"],
        [admins.id, "hook", "pending"],
      ]);
    });

  it("asks again a second later", async () => {
    startKnown();
    scene.nowMs = 10_000;
    const [second, third] = await scene.addEvents(2);
    await fanOut(scene.event);
    scene.nowMs += 999;
    await fanOut(second as EventModel);
    scene.nowMs += 1;
    await fanOut(third as EventModel);

    expect(scene.inserts).to.deep.equal(["asked", "known", "asked"]);
  });

  it("looks up each time for a costly resource", async () => {
    startKnown(nobody, { subscribers: finderFor({ ...notesEligibility(), isCostly: () => true }) });
    await fanOutTwo();

    expect([scene.lookUps, scene.inserts]).to.deep.equal([2, ["asked", "asked"]]);
  });

  it("looks up each time for more deliveries than one statement writes, and filters them once", async () => {
    // Answers for more than 100 subscriptions of a user are not kept, so six users have 100 each.
    const emails = Array.from({ length: 5 }, (_, index) => `boss${index}@example.com`);
    const admins = await Promise.all(emails.map((email) => scene.work.addUser({ email, isAdmin: true })));
    const userIds = [scene.subscription.userId, ...admins.map(({ id }) => id)];
    await scene.core.sql(
      `INSERT INTO svc.subscriptions (user_id, url, resource, events, encrypted_secret, secret_hint)
       SELECT u.id, url || n, resource, events, encrypted_secret, secret_hint
       FROM svc.subscriptions CROSS JOIN unnest($1::integer[]) AS u (id) CROSS JOIN generate_series(1, 100) AS n
       WHERE u.id <> user_id OR n < 100`,
      [userIds],
    );
    startKnown({ kind: "emails", emails });
    const publish = async (): Promise<void> => {
      const event = await scene.work.addEvent({ ownerId: String(scene.subscription.userId) });
      await scene.broker.publish([messageOf(event)]);
      await until(async () => (await scene.work.outbox()).length === 1, { what: "600 deliveries" });
    };
    await publish();
    await publish();

    expect([scene.lookUps, scene.filterings]).to.deep.equal([2, 2]);
    expect(new Set(scene.inserts)).to.deep.equal(new Set(["asked"]));
    expect(await scene.work.deliveries()).to.have.length(1_200);
  });
});
