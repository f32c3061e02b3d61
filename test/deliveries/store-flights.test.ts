import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { createDeliveryStore, type DeliveryStore } from "../../src/deliveries/store.ts";
import type { Sql } from "../../src/db/sql.ts";
import type { Outcome } from "../../src/deliveries/outcome.ts";
import type { DeliveryModel } from "../support/generated/models.ts";
import { expectNear, flightMs, useStoreScene } from "../support/store-scene.ts";
import { until } from "../support/wait.ts";
import { inSeconds } from "../support/work.ts";

// What leaves a flight and what ends one; store.test.ts has the rest.
const result = { startedAt: new Date(), durationMs: 1, isResponseTruncated: false };
const retried = { status: "retrying", delayMs: 60_000, lastError: "refused", result } as const;

describe("createDeliveryStore", () => {
  const scene = useStoreScene();
  const { addFlight } = scene;

  const putBack = (
    delivery: DeliveryModel,
    delayMs: number | undefined,
    flightId: string,
    endedFlights: string[] = [],
  ): Promise<void> =>
    scene.store.putBack({ returns: [{ id: String(delivery.id), flightId, delayMs }], endedFlights });

  const takeDue = (): ReturnType<DeliveryStore["takeDue"]> =>
    scene.store.takeDue({ limit: 100, flightMs, sinceMs: undefined });
  it("writes one of two outcomes of the same delivery, and those of others", async () => {
    const [twice, other] = [
      await scene.work.addDelivery(scene.subscription),
      await scene.work.addDelivery(scene.subscription),
    ];
    const { flightId } = await takeDue();
    const [two, one] = [twice, other].map(({ id, uuid }) => ({
      id: String(id),
      uuid,
      attemptsBefore: 0,
      result,
    }));
    const delivered = { status: "delivered" } as const;
    const outcomes = [
      { ...two, ...delivered },
      { ...two, ...retried },
      { ...one, ...delivered },
    ] as Outcome[];

    await scene.store.record({ outcomes, endedFlights: [flightId ?? ""], isWhole: true });

    for (const { id } of [twice, other]) {
      expect(await scene.work.deliveryOf(id)).to.include({ status: "delivered", attempt: 1 });
      expect(await scene.work.attemptsOf(id)).to.have.length(1);
    }
    expect(await scene.work.flights()).to.deep.equal([]);
  });

  it("renews a flight, but none that has ended", async () => {
    const delivery = await scene.work.addDelivery(scene.subscription);
    const id = await addFlight(delivery);

    expect(await scene.store.renewFlight({ id, flightMs: 90_000 })).to.equal(true);
    const [flight] = await scene.work.flights();
    expectNear(flight?.endsAt, 90);
    expect(await scene.store.renewFlight({ id: randomUUID(), flightMs })).to.equal(false);
  });

  it("requires no right to an old row that is not kept", async () => {
    const { eventId } = await scene.work.addDelivery(scene.subscription, { hasPrevious: true });
    await scene.work.addDelivery(scene.subscription, { hasPrevious: true });
    await scene.core.sql("UPDATE svc.event_data SET previous = '{}' WHERE event_id = $1", [eventId]);

    const { deliveries } = await takeDue();

    expect(deliveries.map(({ hasPrevious }) => hasPrevious)).to.deep.equal([true, false]);
  });

  it("keeps the error of the last attempt of a delivery that is held afterwards", async () => {
    const delivery = await scene.work.addDelivery(scene.subscription, { status: "retrying" });
    const { flightId } = await takeDue();
    const { uuid } = delivery;
    const outcome = { id: String(delivery.id), uuid, status: "held", attemptsBefore: 1 } as const;

    await scene.store.record({ outcomes: [outcome], endedFlights: [flightId ?? ""] });

    const stored = await scene.work.deliveryOf(delivery.id);
    expect(stored).to.include({ status: "held", attempt: 1, lastError: "refused" });
  });

  it("dead-letters an old row only with a delivery that shows it", async () => {
    for (const hasPrevious of [true, false])
      await scene.work.addDelivery(scene.subscription, { status: "failed", hasPrevious });
    await scene.core.sql("UPDATE svc.event_data SET previous = '{}'");

    const dead = await scene.store.findUndeadLettered({ after: "0", limit: 9, olderThanMs: -60_000 });

    expect(dead.map(({ previous }) => previous)).to.deep.equal(["{}", null]);
  });

  it("makes the deliveries of a take without an answer due at once", async () => {
    const event = await scene.work.addEvent();
    await scene.work.addDelivery(scene.subscription);
    await scene.work.addDelivery(scene.subscription, { due: "parked" });
    let isCut = true;
    const cut: Sql = async (text, values) => {
      const rows = await scene.core.sql(text, values);
      if (isCut) throw new Error("Connection terminated unexpectedly");
      return rows as never;
    };
    const store = createDeliveryStore({ sql: cut });
    const wanted = [{ subscriptionId: scene.subscription.id, oldest: 1, newest: 0 }];
    const events = [{ id: String(event.id), uuid: event.uuid, data: "{}" }];
    const deliveries = [scene.newDelivery(event)];
    for (const take of [
      () => store.takeDue({ limit: 10, flightMs, sinceMs: undefined }),
      () => store.takeParked({ wanted, flightMs }),
      () => store.insert({ events, deliveries, isComplete: true, flightMs }),
    ])
      expect(await take().catch(({ message }: Error) => message)).to.match(/^Connection terminated/);
    expect(await scene.work.flights()).to.have.length(3);

    isCut = false;
    expect(await store.endOverdueFlights({ limit: 2, flightMs })).to.equal(2);
    expect(await store.endOverdueFlights({ limit: 10, flightMs })).to.equal(1);

    expect(await scene.work.flights()).to.deep.equal([]);
    expect((await takeDue()).deliveries).to.have.length(3);
    expect(await store.endOverdueFlights({ limit: 10, flightMs })).to.equal(0);
  });

  const untilBlocked = (): Promise<unknown> =>
    until(
      async () =>
        (
          await scene.core.sql(
            "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
          )
        ).length > 0,
      { what: "the statement to wait" },
    );

  const land = (act: "record" | "putBack", flight: string): Promise<unknown> =>
    act === "record"
      ? scene.store.record({ outcomes: [], endedFlights: [flight] })
      : scene.store.putBack({ returns: [], endedFlights: [flight] });

  /** Runs `act` in a transaction that stays open until another statement waits for it. */
  async function whileOpen(
    open: (other: DeliveryStore) => Promise<unknown>,
    act: () => Promise<unknown>,
    beforeCommit: (sql: Sql) => Promise<unknown> = async () => undefined,
  ): Promise<void> {
    const client = await scene.core.database.pool.connect();
    const sql: Sql = async (text, values = []) => (await client.query(text, [...values])).rows;
    try {
      await sql("BEGIN");
      await open(createDeliveryStore({ sql }));
      const acting = act();
      await untilBlocked();
      await beforeCommit(sql);
      await sql("COMMIT");
      await acting;
    } finally {
      client.release(true);
    }
  }

  describe("putBack", () => {
    it("puts deliveries into the queue, for their time or for a slot, and ends flights", async () => {
      const [later, parked] = [
        await scene.work.addDelivery(scene.subscription, {
          due: "nowhere",
          status: "retrying",
          attempt: 1,
          lastError: "x",
        }),
        await scene.work.addDelivery(scene.subscription, { due: "nowhere" }),
      ];
      const flight = await addFlight(later, parked);

      await putBack(later, 30_000, flight);
      expect(await scene.work.flights()).to.have.length(1);
      await putBack(parked, undefined, flight, [flight]);

      expectNear((await scene.work.queued(later.id))?.dueAt, 30);
      expect(await scene.work.queued(parked.id)).to.include({
        dueAt: null,
        userId: scene.subscription.userId,
      });
      expect(await scene.work.flights()).to.deep.equal([]);
      expect(await scene.work.deliveryOf(later.id)).to.deep.equal(later);
    });

    it("does not put back a finished delivery, and leaves a queued one unchanged", async () => {
      const dueAt = inSeconds(-5);
      const [done, queued] = [
        await scene.work.addDelivery(scene.subscription, { status: "cancelled" }),
        await scene.work.addDelivery(scene.subscription, { due: dueAt }),
      ];
      const flight = await addFlight(done, queued);

      await putBack(done, undefined, flight);
      await putBack(queued, undefined, flight, [flight]);

      expect(await scene.work.queued(done.id)).to.equal(null);
      expect(await scene.work.queued(queued.id)).to.deep.include({ dueAt });
    });

    it("puts nothing of an ended flight back: another process may have it", async () => {
      const delivery = await scene.work.addDelivery(scene.subscription, { due: "nowhere" });
      const other = await addFlight(delivery);

      await putBack(delivery, undefined, randomUUID());

      expect(await scene.work.queued(delivery.id)).to.equal(null);
      expect((await scene.work.flights()).map(({ id }) => id)).to.deep.equal([other]);
    });

    it("puts a delivery back once, when the answer to the first was lost and it is taken again", async () => {
      const [delivery, rest] = [
        await scene.work.addDelivery(scene.subscription),
        await scene.work.addDelivery(scene.subscription),
      ];
      const { flightId = "" } = await takeDue();
      await putBack(delivery, 0, flightId);
      await takeDue();

      await putBack(delivery, 0, flightId);

      expect(await scene.work.queued(delivery.id)).to.equal(null);
      expect((await scene.work.flights()).map(({ deliveryIds }) => deliveryIds)).to.have.deep.members([
        [rest.id],
        [delivery.id],
      ]);
    });

    it("waits for the running end of the flight, and leaves the delivery to its new process", async () => {
      const delivery = await scene.work.addDelivery(scene.subscription, { due: "nowhere" });
      const flight = await addFlight(delivery);

      await whileOpen(
        (sweep) => sweep.endAllFlights(),
        () => putBack(delivery, 60_000, flight),
        // Taken again before this process sees the end of the flight.
        (sql) => sql("DELETE FROM svc.delivery_queue"),
      );

      expect(await scene.work.queued(delivery.id)).to.equal(null);
    });
  });

  describe("record, of a whole flight", () => {
    it("leaves a flight until its time is up when another process has written a part of it", async () => {
      const [own, others] = [
        await scene.work.addDelivery(scene.subscription, { due: "nowhere" }),
        await scene.work.addDelivery(scene.subscription, { due: "nowhere", status: "retrying", attempt: 1 }),
      ];
      const endedFlights = [await addFlight(own, others)];
      const outcomes = [own, others].map(({ id, uuid }) => ({
        id: String(id),
        uuid,
        attemptsBefore: 0,
        status: "delivered" as const,
        result,
      }));

      expect((await scene.store.record({ outcomes, endedFlights, isWhole: true })).size).to.equal(1);
      expect((await scene.work.flights()).map(({ id }) => id)).to.deep.equal(endedFlights);

      await scene.store.endAllFlights();
      expect(await scene.work.queued(others.id)).to.not.equal(null);
      expect(await scene.work.queued(own.id)).to.equal(null);
    });

    it("ends it with its outcomes", async () => {
      const delivery = await scene.work.addDelivery(scene.subscription, { due: "nowhere" });
      const { id, uuid } = delivery;
      const retry = { id: String(id), uuid, attemptsBefore: 0, ...retried };

      await scene.store.record({
        outcomes: [retry],
        endedFlights: [await addFlight(delivery)],
        isWhole: true,
      });

      expect(await scene.work.flights()).to.deep.equal([]);
      expectNear((await scene.work.queued(id))?.dueAt, 60);
    });
  });

  for (const act of ["record", "putBack"] as const)
    describe(`${act}, which ends a flight`, () => {
      it("makes the rest of the flight due, because a crash has undone writes", async () => {
        const [pending, retrying, done] = [
          await scene.work.addDelivery(scene.subscription, { due: "nowhere" }),
          await scene.work.addDelivery(scene.subscription, {
            due: "nowhere",
            status: "retrying",
            attempt: 1,
          }),
          await scene.work.addDelivery(scene.subscription, { status: "delivered" }),
        ];

        await land(act, await addFlight(pending, retrying, done));

        for (const { id } of [pending, retrying]) expectNear((await scene.work.queued(id))?.dueAt, 0);
        expect(await scene.work.queued(done.id)).to.equal(null);
        expect(await scene.work.flights()).to.deep.equal([]);
      });

      it("keeps the time of a retry that is written simultaneously", async () => {
        const delivery = await scene.work.addDelivery(scene.subscription, { due: "nowhere" });
        const flight = await addFlight(delivery);
        const { uuid } = delivery;

        await whileOpen(
          (other) =>
            other.record({
              outcomes: [{ id: String(delivery.id), uuid, attemptsBefore: 0, ...retried }],
              endedFlights: [],
            }),
          () => land(act, flight),
        );

        expectNear((await scene.work.queued(delivery.id))?.dueAt, 60);
      });

      it("ignores deliveries in the queue, and in another flight", async () => {
        const dueAt = inSeconds(50);
        const [queued, parked, taken] = [
          await scene.work.addDelivery(scene.subscription, { due: dueAt }),
          await scene.work.addDelivery(scene.subscription, { due: "parked" }),
          await scene.work.addDelivery(scene.subscription, { due: "nowhere" }),
        ];
        const other = await addFlight(taken);

        await land(act, await addFlight(queued, parked, taken));

        expect(await scene.work.queued(queued.id)).to.deep.include({ dueAt });
        expect(await scene.work.queued(parked.id)).to.include({ dueAt: null });
        expect(await scene.work.queued(taken.id)).to.equal(null);
        expect((await scene.work.flights()).map(({ id }) => id)).to.deep.equal([other]);
      });
    });
});
