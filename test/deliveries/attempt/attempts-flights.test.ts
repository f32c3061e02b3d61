import { expect } from "chai";
import type { PoolClient } from "pg";
import type { Done } from "../../../src/deliveries/admission/admission.ts";
import type { DeliveryInFlight } from "../../../src/deliveries/attempt/delivery-in-flight.ts";
import { useAttemptsScene, type Visit } from "../../support/attempts-scene.ts";
import { until } from "../../support/wait.ts";
import { failure, success } from "../../support/work.ts";

const payload = { data: Buffer.from("{}") };

// Flights, faults and the stop; attempts.test.ts has the rest.
describe("createAttempts", () => {
  const scene = useAttemptsScene();
  const { open, take, reserved, free, startAll, current } = scene;

  const takeLate = async (): Promise<readonly DeliveryInFlight[]> => {
    const deliveries = await take();
    for (const { flight } of deliveries) flight.beganAtMs -= 30_000;
    return deliveries;
  };

  it("lets the delivery of one user pass waiting ones of another", async () => {
    for (let count = 0; count < 39; count++) await scene.work.addDelivery(scene.subscription);
    const theirs = await scene.work.addSubscription({ url: "https://other.example.com/" });
    open(success);
    const deliveries = await take();
    await scene.work.addDelivery(theirs);
    for (const one of [...deliveries, ...(await take())]) scene.attempts.start({ ...one, payload }, free);

    await scene.attempts.drain();

    expect(scene.posts).to.have.length(41);
    expect(scene.posts.findIndex(({ url }) => url.includes("other"))).to.be.within(8, 15);
  });

  for (const { what, count, size, most } of [
    { what: "eight attempts", count: 40, size: 2, most: 8 },
    { what: "one of a large record", count: 6, size: 600_000, most: 1 },
  ])
    it(`begins ${what} in a turn of the event loop, however many records one read returns`, async () => {
      const data = JSON.stringify("x".repeat(size));
      for (let one = 1; one < count; one++) await scene.work.addDelivery(scene.subscription, { data });
      let isOver = false;
      const begun = [0];
      const nextTurn = (): void => {
        begun.push(0);
        if (!isOver) setImmediate(nextTurn);
      };
      open(() => {
        begun[begun.length - 1] = (begun.at(-1) ?? 0) + 1;
        return success();
      });
      setImmediate(nextTurn);

      await startAll();
      await scene.attempts.drain();
      isOver = true;

      expect(scene.posts).to.have.length(count);
      // One turn of the test may have the ends of two.
      expect(Math.max(...begun)).to.be.at.most(2 * most);
    });

  describe("of several deliveries in one flight", () => {
    beforeEach(async () => {
      for (let count = 0; count < 2; count++) await scene.work.addDelivery(scene.subscription);
    });

    it("keeps the flight until the last is written", async () => {
      const answers: (() => void)[] = [];
      open(() => new Promise((resolve) => answers.push(() => resolve(success()))));
      await startAll();
      await until(() => answers.length === 3, { what: "the POSTs" });

      for (const stillOpen of [2, 1]) {
        answers.shift()?.();
        await until(
          async () =>
            (await scene.work.deliveries()).filter(({ status }) => status === "pending").length === stillOpen,
          {
            what: `${stillOpen} left`,
          },
        );
        expect(await scene.work.flights()).to.have.length(1);
      }
      answers.shift()?.();
      await scene.attempts.drain();

      expect(await scene.work.flights()).to.deep.equal([]);
    });

    it("ends the flight when outcomes and returns are written at once", async () => {
      let together: (() => void) | undefined;
      const both = new Promise<void>((resolve) => (together = resolve));
      let writes = 0;
      const meet = async <T>(write: Promise<T>): Promise<T> => {
        const written = await write;
        writes += 1;
        if (writes === 2) together?.();
        await both;
        return written;
      };
      open(success, {
        store: {
          ...scene.store,
          record: (options) => meet(scene.store.record(options)),
          putBack: (options) => meet(scene.store.putBack(options)),
        },
      });
      const [one, other, third] = (await take()) as [DeliveryInFlight, DeliveryInFlight, DeliveryInFlight];

      scene.attempts.start(one, free);
      scene.attempts.start(other, free);
      scene.attempts.putBack(third, { id: third.id, delayMs: undefined });
      await scene.attempts.drain();

      expect(await scene.work.flights()).to.deep.equal([]);
    });

    it("keeps the flight of the others when a dead letter cannot be recorded", async () => {
      await scene.core.sql(
        "UPDATE svc.deliveries SET status = 'retrying', attempt = 2, last_error = 'refused' WHERE id = $1",
        [String(scene.delivery.id)],
      );
      open(failure, { store: { ...scene.store, markDeadLettered: () => Promise.reject(new Error("no")) } });
      const [one] = (await take()) as [DeliveryInFlight];

      scene.attempts.start(one, free);
      await scene.attempts.drain();

      expect(await current()).to.include({ status: "failed", deadLetteredAt: null });
      expect(one.flight.unwritten).to.equal(2);
      expect(await scene.work.flights()).to.have.length(1);
    });
  });

  describe("of a flight that began long ago", () => {
    it("makes no attempt when it has ended, because another process may make it", async () => {
      open(success);
      const [late] = (await takeLate()) as [DeliveryInFlight];
      await scene.core.sql("UPDATE svc.flights SET ends_at = now() - interval '1 second'");
      await scene.store.endOverdueFlights({ limit: 10, flightMs: 60_000 });

      scene.attempts.start(late, free);
      await scene.attempts.drain();

      expect([scene.posts.length, scene.done]).to.deep.equal([0, [[undefined]]]);
      expect(scene.lines.filter(({ event }) => event === "delivery.late")).to.have.length(1);
      expect(await scene.work.queued(scene.delivery.id)).to.not.equal(null);
    });

    it("makes the attempts when it has not ended, and renews it once", async () => {
      for (let count = 0; count < 2; count++) await scene.work.addDelivery(scene.subscription);
      const renewed: unknown[] = [];
      open(success, {
        store: {
          ...scene.store,
          async renewFlight(given) {
            renewed.push(given);
            return scene.store.renewFlight(given);
          },
        },
      });
      const deliveries = await takeLate();
      await scene.core.sql("UPDATE svc.flights SET ends_at = now() + interval '1 second'");

      for (const one of deliveries) scene.attempts.start(one, free);
      await until(() => renewed.length > 0, { what: "the renewal" });
      await scene.attempts.drain();

      expect(scene.posts).to.have.length(3);
      expect(renewed).to.deep.equal([{ id: deliveries[0]?.flight.id, flightMs: 60_000 }]);
      expect(await scene.work.flights()).to.deep.equal([]);
    });
  });

  describe("when the database is away", () => {
    let other: PoolClient;

    beforeEach(async () => {
      other = await scene.core.database.pool.connect();
    });

    afterEach(async () => {
      await other.query("ROLLBACK");
      other.release();
    });

    it("writes the outcome of a POST later, and does not make the POST again", async () => {
      await other.query("BEGIN; LOCK TABLE svc.attempts IN ACCESS EXCLUSIVE MODE");
      open(success);
      await startAll();

      // Cuts the connection with the waiting outcome.
      await until(
        async () => {
          // A transaction would never see connections that are newer than its first look.
          const rows = await scene.core.sql<{ cut: boolean }>(
            "SELECT pg_terminate_backend(pid) AS cut FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
          );
          return rows.some(({ cut }) => cut);
        },
        { what: "the write of the outcome" },
      );
      await until(() => scene.lines.some(({ msg }) => msg === "outcome not written; trying again"), {
        what: "a retry",
      });
      await other.query("COMMIT");
      await scene.attempts.drain();

      expect(await current()).to.include({ status: "delivered", attempt: 1 });
      expect(scene.posts).to.have.length(1);
      expect(await scene.work.attemptsOf(scene.delivery.id)).to.have.length(1);
      expect(await scene.work.flights()).to.deep.equal([]);
    });
  });

  it("records the others at once while another transaction locks one row, and that one later", async () => {
    for (let count = 0; count < 2; count++) await scene.work.addDelivery(scene.subscription);
    const other = await scene.core.database.pool.connect();
    const delivered = async (): Promise<number> =>
      (await scene.work.deliveries()).filter(({ status }) => status === "delivered").length;
    try {
      await other.query("BEGIN");
      await other.query("SELECT FROM svc.deliveries WHERE id = $1 FOR UPDATE", [String(scene.delivery.id)]);
      open(success);
      await startAll();
      await until(async () => (await delivered()) === 2, { what: "the others" });

      await other.query("COMMIT");
      await scene.attempts.drain();
    } finally {
      other.release(true);
    }

    expect(await delivered()).to.equal(3);
    expect(scene.posts).to.have.length(3);
    expect(await scene.work.attemptsOf(scene.delivery.id)).to.have.length(1);
    expect(await scene.work.flights()).to.deep.equal([]);
  });

  it("puts back, with its flight ended, a delivery that the database refuses", async () => {
    open(success, { store: { ...scene.store, record: () => Promise.reject(new Error("a bug")) } });

    await startAll();
    await scene.attempts.drain();

    expect(await scene.work.queued(scene.delivery.id)).to.not.equal(null);
    expect(await scene.work.flights()).to.deep.equal([]);
    expect(scene.lines.some(({ err }) => (err as Error | undefined)?.message === "a bug")).to.equal(true);
  });

  describe("on stop", () => {
    it("waits for the attempts in flight, and records them", async () => {
      let answer: (() => void) | undefined;
      open(() => new Promise((resolve) => (answer = () => resolve(success()))));
      await startAll();
      await until(() => answer, { what: "the POST" });

      const stopped = scene.stop();
      answer?.();
      await stopped;

      expect(await current()).to.include({ status: "delivered", attempt: 1 });
      expect(await scene.work.flights()).to.deep.equal([]);
    });

    it("begins no more, and leaves deliveries that waited for a slot due at once", async () => {
      await scene.work.addDelivery(scene.subscription);
      const visits: Visit[] = [];
      let answer: (() => void) | undefined;
      open(() => new Promise((resolve) => (answer = () => resolve(success()))));
      const [first, second] = (await take()) as [DeliveryInFlight, DeliveryInFlight];
      // The second waits for the slot of the first.
      const slot: Done = () => visits[1]?.begin((...result) => scene.done.push(result));
      scene.attempts.start(
        first,
        reserved((visit) => (visits.push(visit), visit.begin(slot))),
      );
      scene.attempts.start(
        second,
        reserved((visit) => visits.push(visit)),
      );
      await until(() => answer, { what: "the POST" });

      const stopped = scene.stop();
      answer?.();
      await stopped;

      expect([scene.posts.length, scene.done]).to.deep.equal([1, [[undefined]]]);
      expect((await scene.work.queued(BigInt(second.id)))?.dueAt?.getTime()).to.be.at.most(Date.now() + 1);
      expect(await scene.work.flights()).to.deep.equal([]);
    });

    it("leaves waiting deliveries due at once", async () => {
      for (let count = 0; count < 19; count++) await scene.work.addDelivery(scene.subscription);
      open(success);
      for (const one of await take()) scene.attempts.start({ ...one, payload }, free);

      await scene.stop();

      const statuses = (await scene.work.deliveries()).map(({ status }) => status);
      const delivered = statuses.filter((status) => status === "delivered").length;
      expect([scene.posts.length, delivered, scene.done.length]).to.deep.equal([8, 8, 20]);
      const due = await scene.store.takeDue({ limit: 100, flightMs: 60_000, sinceMs: undefined });
      expect(due.deliveries).to.have.length(12);
    });

    it("frees the place of one that comes after it", async () => {
      open(success);
      const [one] = (await take()) as [DeliveryInFlight];
      await scene.stop();

      scene.attempts.start(one, free);
      await scene.attempts.drain();

      expect([scene.left, scene.posts.length]).to.deep.equal([1, 0]);
      expect(await scene.work.queued(scene.delivery.id)).to.not.equal(null);
      expect(await scene.work.flights()).to.deep.equal([]);
    });
  });
});
