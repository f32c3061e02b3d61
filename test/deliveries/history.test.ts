import { expect } from "chai";
import type { DeliveryModel, SubscriptionModel } from "../../src/db/generated/models.ts";
import {
  createDeliveryHistory,
  type DeliveryHistory,
  type RetryAnswer,
} from "../../src/deliveries/history.ts";
import { createDeliveryStore } from "../../src/deliveries/store.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { createWork, type Work } from "../support/work.ts";

const reasonOf = (answer: RetryAnswer): string => (answer.kind === "refused" ? answer.reason : "created");
const getCreated = (answer: RetryAnswer) => {
  if (answer.kind === "refused") throw new Error(answer.reason);
  return answer.delivery;
};

describe("createDeliveryHistory", () => {
  let core: CoreDatabase;
  let work: Work;
  let history: DeliveryHistory;
  let subscription: SubscriptionModel;

  before(async () => {
    core = await openCoreDatabase();
    work = createWork(core.database.prisma);
    history = createDeliveryHistory({ prisma: core.database.prisma });
  });

  beforeEach(async () => {
    await work.clear();
    subscription = await work.addSubscription();
  });

  after(() => core.close());

  const addFailed = (overrides = {}): Promise<DeliveryModel> =>
    work.addDelivery(subscription, { status: "failed", attempt: 3, ...overrides });
  const retry = (id: bigint, limit = 3): Promise<RetryAnswer> => history.retry({ id, limit });
  const fail = (): Promise<unknown> => core.sql("UPDATE svc.deliveries SET status = 'failed'");
  const found = async (filter: Parameters<DeliveryHistory["list"]>[0]["filter"]): Promise<unknown> => {
    const { rows, total } = await history.list({ filter, skip: 0, take: 10 });
    expect(total).to.equal(rows.length);
    return rows.map(({ id }) => id);
  };

  describe("list", () => {
    it("gives the newest first, a page at a time, with the number of all, and without payloads", async () => {
      const ids: bigint[] = [];
      for (let count = 0; count < 5; count++) ids.unshift((await work.addDelivery(subscription)).id);

      const { rows, total } = await history.list({ filter: {}, skip: 1, take: 2 });

      expect(rows.map(({ id }) => id)).to.deep.equal(ids.slice(1, 3));
      expect(total).to.equal(5);
      expect(rows[0]).not.to.have.property("body");
    });

    it("filters by user, subscription, status and event, and by all of them at once", async () => {
      const other = await work.addSubscription();
      const mine = await work.addDelivery(subscription, { status: "failed" });
      await work.addDelivery(subscription);
      const theirs = await work.addDelivery(other, { status: "failed" });

      expect(await found({ userId: other.userId })).to.deep.equal([theirs.id]);
      expect(await found({ subscriptionId: other.id })).to.deep.equal([theirs.id]);
      expect(await found({ status: "failed" })).to.deep.equal([theirs.id, mine.id]);
      expect(await found({ eventId: mine.eventId })).to.deep.equal([mine.id]);
      expect(
        await found({
          userId: mine.userId,
          subscriptionId: subscription.id,
          status: "failed",
          eventId: mine.eventId,
        }),
      ).to.deep.equal([mine.id]);
      expect(await found({ userId: mine.userId, subscriptionId: other.id })).to.deep.equal([]);
    });
  });

  it("finds a delivery without its payload, and its attempts in order", async () => {
    const { id } = await work.addDelivery(subscription);
    for (const number of [2, 1])
      await core.database.prisma.attempt.create({
        data: { deliveryId: id, number, startedAt: new Date(), durationMs: 1 },
      });

    expect(await history.find(id)).to.have.property("id", id);
    expect(await history.find(id)).not.to.have.property("body");
    expect((await history.attemptsOf(id)).map(({ number }) => number)).to.deep.equal([1, 2]);
    expect(await history.find(id + 1n)).to.equal(undefined);
    expect(await history.attemptsOf(id + 1n)).to.deep.equal([]);
  });

  describe("retry", () => {
    it("makes a delivery of its own for the sweep, of the same payload, to the URL of today", async () => {
      const failed = await addFailed({
        body: Buffer.from(`{"event":"on_create","delivery_id":"old","data":{"2":1,"text":"é"}}`),
      });
      await core.sql("UPDATE svc.subscriptions SET url = 'http://127.0.0.1:9/corrected'");

      const made = getCreated(await retry(failed.id));

      expect(made).not.to.have.property("body");
      const row = await work.deliveryOf(made.id);
      expect(row).to.include({
        eventId: failed.eventId,
        eventUuid: failed.eventUuid,
        userId: failed.userId,
        parentDeliveryId: failed.id,
        rootDeliveryId: failed.id,
        triggerKind: "manual",
        status: "pending",
        attempt: 0,
        maxAttempts: 3,
        url: "http://127.0.0.1:9/corrected",
      });
      expect(row.uuid).not.to.equal(failed.uuid);
      expect(Buffer.from(row.body).toString()).to.equal(
        `{"event":"on_create","delivery_id":"${row.uuid}","data":{"2":1,"text":"é"}}`,
      );
      const due = await createDeliveryStore({ sql: core.sql }).claimDue({ limit: 10, queuedForMs: 1_000 });
      expect(due.map(({ uuid }) => uuid)).to.deep.equal([row.uuid]);
    });

    it("counts the retries of the whole chain, whichever of its deliveries is retried", async () => {
      const root = await addFailed();
      const second = getCreated(await retry(root.id));
      await fail();
      const third = getCreated(await retry(second.id));
      await fail();

      expect(third).to.include({ parentDeliveryId: second.id, rootDeliveryId: root.id });
      for (const { id } of [root, second, third])
        expect(reasonOf(await retry(id, 2))).to.equal(
          "The manual retry limit of 2 for this delivery has been reached.",
        );
      expect(reasonOf(await retry(third.id, 3))).to.equal("created");
      expect(reasonOf(await retry((await addFailed()).id, 1))).to.equal("created");
    });

    it("lets no more in than the limit when many come at once, from anywhere in the chain", async () => {
      const root = await addFailed();
      const second = getCreated(await retry(root.id));
      await fail();

      const answers = await Promise.all([root, second, root, second].map(({ id }) => retry(id, 2)));

      expect(answers.map(({ kind }) => kind).toSorted((a, b) => a.localeCompare(b))).to.deep.equal([
        "created",
        "refused",
        "refused",
        "refused",
      ]);
      expect(await work.deliveries()).to.have.length(3);
    });

    for (const status of ["pending", "retrying", "delivered", "cancelled"]) {
      it(`refuses a delivery that is ${status}`, async () => {
        const { id } = await addFailed({ status });

        expect(reasonOf(await retry(id))).to.equal(
          `Only a failed delivery can be retried; this one is ${status}.`,
        );
        expect(await work.deliveries()).to.have.length(1);
      });
    }

    it("refuses when the subscription was deleted", async () => {
      const { id } = await addFailed();
      await core.sql("DELETE FROM svc.subscriptions");

      expect(reasonOf(await retry(id))).to.equal("The subscription of this delivery was deleted.");
    });

    it("refuses every retry when the limit is 0", async () => {
      expect(reasonOf(await retry((await addFailed()).id, 0))).to.contain("limit of 0");
    });
  });
});
