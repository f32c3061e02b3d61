import { randomUUID } from "node:crypto";
import { expect } from "chai";
import type { AttemptResult } from "../../src/deliveries/delivery.ts";
import { createDeliveryStore, type DeliveryStore } from "../../src/deliveries/store.ts";
import type { Outcome } from "../../src/deliveries/outcome.ts";
import type { DeliveryModel } from "../support/generated/models.ts";
import { expectNear, flightMs, useStoreScene } from "../support/store-scene.ts";
import { inSeconds } from "../support/work.ts";

const result: AttemptResult = {
  startedAt: new Date("2026-03-28T14:30:00.123Z"),
  durationMs: 42,
  error: "http",
  detail: "example.com answered 500 Internal Server Error.",
  statusCode: 500,
  responseHeaders: { "content-type": "text/plain", "set-cookie": ["a=1", "b=2"] },
  responseBody: Buffer.from([0, 255, 10]),
  isResponseTruncated: true,
};

const outcomeOf = (
  { id, uuid, attempt }: DeliveryModel,
  rest: Omit<Outcome, "id" | "uuid" | "attemptsBefore">,
): Outcome => ({ id: String(id), uuid, attemptsBefore: attempt, ...rest });

describe("createDeliveryStore", () => {
  const scene = useStoreScene();
  const { newDelivery, insert, addFlight } = scene;

  const record = (...outcomes: readonly Outcome[]): ReturnType<DeliveryStore["record"]> =>
    scene.store.record({ outcomes, endedFlights: [] });
  it("writes new deliveries to disk before the commit, but not those that a crash recovers", async () => {
    const seen: Record<string, unknown> = {};
    const client = await scene.core.database.pool.connect();
    /** The setting in force at the commit of the statement. */
    const watched = createDeliveryStore({
      async sql(text, values = []) {
        await client.query("BEGIN; SET LOCAL synchronous_commit = on");
        const { rows } = await client.query(text, [...values]);
        seen["last"] = (await client.query("SHOW synchronous_commit")).rows[0].synchronous_commit;
        await client.query("ROLLBACK");
        return rows;
      },
    });
    const modeOf = async (act: Promise<unknown>): Promise<unknown> => {
      await act;
      return seen["last"];
    };
    try {
      const event = await scene.work.addEvent();
      const rest = { flightMs, isComplete: true };
      const given = {
        events: [{ id: String(event.id), uuid: event.uuid, data: "{}" }],
        deliveries: [newDelivery(event)],
      };
      expect(await modeOf(watched.insert({ ...given, ...rest })), "insert").to.equal("on");
      const delivery = await scene.work.addDelivery(scene.subscription);
      const outcomes = [outcomeOf(delivery, { status: "delivered", result })];
      expect(await modeOf(watched.record({ outcomes, endedFlights: [] })), "record").to.equal("off");
      const returns = [{ id: String(delivery.id), flightId: randomUUID(), delayMs: undefined }];
      expect(await modeOf(watched.putBack({ returns, endedFlights: [randomUUID()] })), "putBack").to.equal(
        "off",
      );
      const due = { limit: 1, flightMs, sinceMs: undefined };
      expect(await modeOf(watched.takeDue(due)), "takeDue").to.equal("off");
    } finally {
      client.release();
    }
  });

  describe("insert", () => {
    it("makes a delivery in flight, its own root, with the record of its event, which leaves the outbox", async () => {
      const event = await scene.work.addEvent();
      const given = newDelivery(event, { traceparent: "00-1" });

      const { flightId, ids, databaseTimeMs } = await insert([event], [given]);

      const [row, ...more] = await scene.work.deliveries();
      expect(more).to.deep.equal([]);
      expect(ids).to.deep.equal(new Map([[given.uuid, String(row?.id)]]));
      expect(row).to.include({
        uuid: given.uuid,
        rootDeliveryId: row?.id,
        parentDeliveryId: null,
        eventId: event.id,
        eventUuid: event.uuid,
        triggerKind: "automatic",
        status: "pending",
        attempt: 0,
        traceparent: "00-1",
      });
      const [flight] = await scene.work.flights();
      expect(flight).to.deep.include({ id: flightId, deliveryIds: [row?.id] });
      expectNear(flight?.endsAt, 60);
      expect(await scene.work.queued(row?.id ?? 0n)).to.equal(null);
      expect(await scene.work.outbox()).to.deep.equal([]);
      const none = { eventId: "9", eventUuid: randomUUID() };
      expect(await scene.store.dataOf([newDelivery(event), none])).to.deep.equal(
        new Map([[event.uuid, { data: Buffer.from(`{"of":${event.id}}`), previous: undefined }]]),
      );
      expect(databaseTimeMs).to.be.closeTo(Date.now(), 5_000);
    });

    it("puts a delivery without a slot into the queue instead, without a time", async () => {
      const event = await scene.work.addEvent();

      const { flightId, ids } = await insert([event], [newDelivery(event, { isTaken: false })]);

      expect(flightId).to.equal(undefined);
      const [id] = [...ids.values()];
      expect(await scene.work.queued(BigInt(id ?? 0))).to.include({
        subscriptionId: scene.subscription.id,
        userId: scene.subscription.userId,
        dueAt: null,
      });
      expect(await scene.work.flights()).to.deep.equal([]);
    });

    it("removes an event without subscribers from the outbox, and keeps no record of it", async () => {
      const event = await scene.work.addEvent();

      await scene.store.insert({
        events: [{ id: String(event.id), uuid: event.uuid, data: undefined }],
        deliveries: [],
        isComplete: true,
        flightMs,
      });

      expect(await scene.work.outbox()).to.deep.equal([]);
      expect((await scene.store.dataOf([newDelivery(event)])).size).to.equal(0);
    });

    it("makes nothing of an event that is not in the outbox, and continues with the others", async () => {
      const [done, fresh] = [await scene.work.addEvent(), await scene.work.addEvent()];
      await insert([done], [newDelivery(done)]);
      const [again, other] = [newDelivery(done), newDelivery(fresh)];
      const stranger = newDelivery({ id: 9_000_000n, uuid: randomUUID() });

      const { ids } = await insert(
        [done, fresh, { id: 9_000_000n, uuid: randomUUID() }],
        [again, stranger, other],
      );

      expect([...ids.keys()]).to.deep.equal([other.uuid]);
      expect(await scene.work.deliveries()).to.have.length(2);
      expect((await scene.work.flights()).map(({ deliveryIds }) => deliveryIds.length)).to.deep.equal([1, 1]);
      expect((await scene.store.dataOf([stranger])).size).to.equal(0);
    });

    it("leaves events in the outbox while more of their deliveries follow, and makes each delivery once", async () => {
      const event = await scene.work.addEvent();
      const other = await scene.work.addSubscription();
      const [first, second] = [newDelivery(event), newDelivery(event, { subscriptionId: other.id })];

      await insert([event], [first], false);
      expect(await scene.work.outbox()).to.deep.equal([event.id]);
      // The state after a crash between the two.
      const { ids } = await insert([event], [{ ...first, uuid: randomUUID() }, second]);

      expect([...ids.keys()]).to.deep.equal([second.uuid]);
      expect(await scene.work.deliveries()).to.have.length(2);
      expect(await scene.work.outbox()).to.deep.equal([]);
    });

    it("lets only one of several simultaneous dispatchers make it", async () => {
      const event = await scene.work.addEvent();

      const made = await Promise.all(Array.from({ length: 4 }, () => insert([event], [newDelivery(event)])));

      expect(made.flatMap(({ ids }) => [...ids])).to.have.length(1);
      expect(await scene.work.deliveries()).to.have.length(1);
      expect(await scene.work.flights()).to.have.length(1);
    });
  });

  describe("record", () => {
    it("writes a retry and its attempt, puts it into the queue, and ends flights", async () => {
      const delivery = await scene.work.addDelivery(scene.subscription, { due: "nowhere" });
      const [ended, other] = [await addFlight(delivery), await addFlight()];

      const written = await scene.store.record({
        outcomes: [
          outcomeOf(delivery, { status: "retrying", delayMs: 30_000, lastError: "HTTP 500", result }),
        ],
        endedFlights: [ended],
      });

      expect([...written]).to.deep.equal([[String(delivery.id), "retrying"]]);
      expect(await scene.work.deliveryOf(delivery.id)).to.include({
        status: "retrying",
        attempt: 1,
        lastError: "HTTP 500",
        problem: null,
      });
      expectNear((await scene.work.queued(delivery.id))?.dueAt, 30);
      expect((await scene.work.flights()).map(({ id }) => id)).to.deep.equal([other]);
      const [attempt, ...more] = await scene.work.attemptsOf(delivery.id);
      expect(more).to.deep.equal([]);
      expect(attempt).to.deep.include({
        number: 1,
        startedAt: result.startedAt,
        durationMs: 42,
        statusCode: 500,
        error: "http",
        responseHeaders: result.responseHeaders,
        responseTruncated: true,
      });
      expect(Buffer.from(attempt?.responseBody ?? [])).to.deep.equal(result.responseBody);
    });

    it("writes many outcomes at once, and clears an old error on success", async () => {
      const deliveries = [];
      for (let count = 0; count < 3; count++)
        deliveries.push(
          await scene.work.addDelivery(scene.subscription, {
            status: "retrying",
            lastError: "old",
            due: "nowhere",
          }),
        );
      const [a, b, c] = deliveries as [DeliveryModel, DeliveryModel, DeliveryModel];
      const { error: _, ...success } = result;

      await record(
        outcomeOf(a, { status: "delivered", result: { ...success, statusCode: 204 } }),
        outcomeOf(b, { status: "failed", lastError: "spent", result }),
        outcomeOf(c, { status: "cancelled", lastError: "no right" }),
      );

      expect(
        (await scene.work.deliveries()).map(({ status, attempt, lastError, problem }) => [
          status,
          attempt,
          lastError,
          problem,
        ]),
      ).to.deep.equal([
        ["delivered", 2, null, null],
        ["failed", 2, "spent", "failed"],
        ["cancelled", 1, "no right", "cancelled"],
      ]);
      const attempts = await Promise.all(deliveries.map(({ id }) => scene.work.attemptsOf(id)));
      expect(
        attempts.map((made) => made.map(({ number, statusCode }) => [number, statusCode])),
      ).to.deep.equal([[[2, 204]], [[2, 500]], []]);
      for (const { id } of deliveries) expect(await scene.work.queued(id)).to.equal(null);
    });

    for (const [what, change] of [
      ["when another process has made one since", { attemptsBefore: 1 }],
      ["of a delivery that got the id after a crash", { uuid: randomUUID() }],
    ] as const) {
      it(`writes nothing of an attempt ${what}`, async () => {
        const delivery = await scene.work.addDelivery(scene.subscription, { due: "nowhere" });
        const late = outcomeOf(delivery, { status: "retrying", delayMs: 0, lastError: "late", result });

        expect((await record({ ...late, ...change })).size).to.equal(0);

        expect(await scene.work.deliveryOf(delivery.id)).to.deep.equal(delivery);
        expect(await scene.work.attemptsOf(delivery.id)).to.deep.equal([]);
        expect(await scene.work.queued(delivery.id)).to.equal(null);
      });
    }

    it("writes the same outcome once, when the answer to the first was lost", async () => {
      const delivery = await scene.work.addDelivery(scene.subscription);
      const outcome = outcomeOf(delivery, { status: "delivered", result });
      await record(outcome);

      expect((await record(outcome)).size).to.equal(0);
      expect(await scene.work.attemptsOf(delivery.id)).to.have.length(1);
    });

    for (const next of [
      { status: "retrying", delayMs: 0, lastError: "HTTP 500" },
      { status: "held", lastError: "HTTP 500" },
    ] as const) {
      it(`keeps a delivery cancelled that was cancelled during its POST and were ${next.status}, and still keeps the attempt`, async () => {
        const delivery = await scene.work.addDelivery(scene.subscription, { due: "nowhere" });
        await scene.core.sql("UPDATE svc.deliveries SET status = 'cancelled', last_error = 'gone'");

        const written = await record(outcomeOf(delivery, { ...next, result }));

        expect(written.size).to.equal(1);
        expect(await scene.work.deliveryOf(delivery.id)).to.include({
          status: "cancelled",
          attempt: 1,
          lastError: "gone",
        });
        expect(await scene.work.attemptsOf(delivery.id)).to.have.length(1);
        expect(await scene.work.queued(delivery.id)).to.equal(null);
      });
    }

    it("postpones a retry that the end of its flight had made due", async () => {
      const delivery = await scene.work.addDelivery(scene.subscription, { due: inSeconds(-1) });

      await record(outcomeOf(delivery, { status: "retrying", delayMs: 30_000, lastError: "x", result }));

      expectNear((await scene.work.queued(delivery.id))?.dueAt, 30);
    });
  });
});
