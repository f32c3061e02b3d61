import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { createDeliveryHistory } from "../../src/deliveries/history.ts";
import { createDeliveryStore, type DeliveryStore } from "../../src/deliveries/store.ts";
import type { SubscriptionModel } from "../support/generated/models.ts";
import { coreOfSuite } from "../support/core-database.ts";
import { createWork, type Work } from "../support/work.ts";

describe("the queue", () => {
  const core = coreOfSuite();
  let work: Work;
  let store: DeliveryStore;
  let subscription: SubscriptionModel;

  before(async () => {
    work = createWork(core.prisma);
    store = createDeliveryStore({ sql: core.sql });
    subscription = await work.addSubscription();
  });

  const isRetry = async (id: bigint): Promise<unknown> => (await work.queued(id))?.isRetry;
  const retryOf = (delivery: { readonly id: bigint; readonly uuid: string }): Promise<unknown> =>
    store.record({
      outcomes: [
        {
          id: String(delivery.id),
          uuid: delivery.uuid,
          status: "retrying",
          attemptsBefore: 0,
          delayMs: 5_000,
          lastError: "refused",
          result: { startedAt: new Date(), durationMs: 1, isResponseTruncated: false },
        },
      ],
      endedFlights: [],
    });

  it("counts a new delivery that waits for a slot as pending", async () => {
    const event = await work.addEvent();
    const { ids } = await store.insert({
      events: [{ id: String(event.id), uuid: event.uuid, data: "{}" }],
      deliveries: [
        {
          uuid: randomUUID(),
          eventId: String(event.id),
          eventUuid: event.uuid,
          subscriptionId: subscription.id,
          userId: subscription.userId,
          resource: "notes",
          url: subscription.url,
          maxAttempts: 3,
          isTaken: false,
        },
      ],
      isComplete: true,
      flightMs: 60_000,
    });

    expect(await Promise.all([...ids.values()].map((id) => isRetry(BigInt(id))))).to.deep.equal([false]);
  });

  it("counts a manual retry as pending", async () => {
    const history = createDeliveryHistory({ sql: core.sql, listSql: core.sql, transact: core.transact });
    const failed = await work.addDelivery(subscription, { status: "failed" });

    const answer = await history.retry({ id: String(failed.id), limit: 5 });

    expect(answer.kind === "created" && (await isRetry(BigInt(answer.delivery.id)))).to.equal(false);
  });

  it("counts a failed attempt as retrying, also when the delivery is in the queue as pending", async () => {
    const flying = await work.addDelivery(subscription, { due: "nowhere" });
    const queued = await work.addDelivery(subscription, { due: "parked" });
    await core.sql("UPDATE svc.delivery_queue SET is_retry = false WHERE delivery_id = $1", [
      String(queued.id),
    ]);

    await retryOf(flying);
    await retryOf(queued);

    expect([await isRetry(flying.id), await isRetry(queued.id)]).to.deep.equal([true, true]);
  });

  it("counts returned deliveries by their status", async () => {
    const pending = await work.addDelivery(subscription, { due: "nowhere" });
    const retrying = await work.addDelivery(subscription, { due: "nowhere", status: "retrying" });

    const ids = [pending, retrying].map(({ id }) => String(id));
    const [flight] = await core.sql<{ readonly id: string }>(
      "INSERT INTO svc.flights (delivery_ids, ends_at) VALUES ($1, now() + interval '1 hour') RETURNING id",
      [ids],
    );
    const flightId = flight?.id ?? "";

    await store.putBack({
      returns: ids.map((id) => ({ id, flightId, delayMs: undefined })),
      endedFlights: [flightId],
    });

    expect([await isRetry(pending.id), await isRetry(retrying.id)]).to.deep.equal([false, true]);
  });

  it("does not decide the deliveries of an overdue flight, whose outcome may yet come", async () => {
    const { id } = await work.addDelivery(subscription, { due: "nowhere" });
    await core.sql("INSERT INTO svc.flights (delivery_ids, ends_at) VALUES ($1, now() - interval '1 hour')", [
      [String(id)],
    ]);

    await store.endOverdueFlights({ limit: 10, flightMs: 60_000 });

    expect(await isRetry(id)).to.equal(null);
  });
});
