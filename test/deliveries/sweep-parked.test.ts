import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { exchanges, queues } from "../../src/broker/topology.ts";
import type { DeliveryModel } from "../support/generated/models.ts";
import { deliveryMessage } from "../../src/deliveries/messages.ts";
import type { DeliveryStore } from "../../src/deliveries/store.ts";
import type { Sweep } from "../../src/deliveries/sweep.ts";
import { never, useSweepScene } from "../support/sweep-scene.ts";
import { createOwnSlots } from "../support/shared-slots.ts";
import { until } from "../support/wait.ts";
import { success } from "../support/work.ts";
import { createAdmission, type Reservation } from "../../src/deliveries/admission/admission.ts";
import type { DeliveryInFlight } from "../../src/deliveries/attempt/delivery-in-flight.ts";

// Deliveries that wait for a slot, and messages that announce them; sweep.test.ts has the rest.
describe("createSweep", () => {
  const scene = useSweepScene();
  const { start, startedIds, untilStarted, watchTurns } = scene;

  const addParked = async (count: number, of = scene.subscription): Promise<readonly DeliveryModel[]> => {
    const deliveries = [];
    for (let one = 0; one < count; one++)
      deliveries.push(await scene.work.addDelivery(of, { due: "parked" }));
    return deliveries;
  };

  describe("of deliveries that wait for a slot", () => {
    it("attempts them although more are due all the time", async () => {
      const [parked] = await addParked(1);

      start({
        store: {
          ...scene.store,
          async takeDue({ limit }) {
            await setImmediate();
            return { flightId: undefined, beganAtMs: 0, deliveries: [], removed: limit };
          },
        },
      });
      await untilStarted(1);

      expect(startedIds()).to.deep.equal([String(parked?.id)]);
    });

    it("finds one at the next interval whose message the broker has lost", async () => {
      const { store, next } = watchTurns();
      start({ intervalMs: 50, store });
      await next(2);

      const [parked] = await addParked(1);
      await untilStarted(1);

      expect(startedIds()).to.deep.equal([String(parked?.id)]);
    });

    it("stops only when the attempts that have begun have ended", async () => {
      let end: (() => void) | undefined;
      const drain = (): Promise<void> => new Promise((resolve) => (end = resolve));
      await addParked(1);
      start({ attempts: { ...scene.attempts, drain } });
      await untilStarted(1);
      let isStopped = false;

      const stopped = scene.stop().then(() => (isStopped = true));
      await until(() => end !== undefined, { what: "the wait for the attempts" });
      await setImmediate();
      expect(isStopped).to.equal(false);
      end?.();
      await stopped;
    });

    it("attempts as many as there are slots for, from both ends, and leaves no place reserved", async () => {
      const line = await addParked(6);
      let slots = 3;
      const isFree = (): boolean => scene.admission.held < slots;
      scene.admission.refuses = () => (isFree() ? undefined : "busy");
      const wanted: unknown[] = [];
      const takeParked: DeliveryStore["takeParked"] = (asked) => {
        wanted.push(...asked.wanted);
        return scene.store.takeParked(asked);
      };
      const sweep = start({ intervalMs: never, store: { ...scene.store, takeParked } });
      await untilStarted(3);
      expect(wanted).to.deep.equal([{ subscriptionId: scene.subscription.id, oldest: 2, newest: 1 }]);
      expect(startedIds()).to.have.members([line[0], line[1], line[5]].map((one) => String(one?.id)));
      expect(scene.admission.held).to.equal(3);
      expect(scene.returns).to.deep.equal([]);

      slots = 6;
      sweep.onFree();

      await untilStarted(6);
      expect(new Set(startedIds()).size).to.equal(6);
    });

    it("retries them while the slots of first attempts are taken", async () => {
      const parked = await scene.work.addDelivery(scene.subscription, {
        status: "retrying",
        attempt: 1,
        due: "parked",
      });
      scene.admission.refuses = ({ lane }) => (lane === "first" ? "busy" : undefined);

      start({ intervalMs: never });
      await untilStarted(1);

      expect(startedIds()).to.deep.equal([String(parked.id)]);
    });

    it("takes the two ends in turn at a single slot", async () => {
      const line = await addParked(4);
      let slots = 1;
      scene.admission.refuses = () => (scene.admission.held < slots ? undefined : "busy");
      const sweep = start({ intervalMs: never });

      for (; slots <= 4; slots += 1) {
        sweep.onFree();
        await untilStarted(slots);
      }

      expect(startedIds()).to.deep.equal([0, 3, 1, 2].map((at) => String(line[at]?.id)));
    });

    it("divides the slots among the subscriptions", async () => {
      const other = await scene.work.addSubscription();
      await addParked(10);
      await addParked(10, other);
      scene.admission.refuses = () => (scene.admission.held < 4 ? undefined : "busy");

      start({ intervalMs: never });
      await untilStarted(4);

      expect(
        scene.started.map(({ subscriptionId }) => subscriptionId).toSorted((one, next) => one - next),
      ).to.deep.equal([scene.subscription.id, scene.subscription.id, other.id, other.id]);
    });

    it("gives users turns at a receiver of both, however many older ones of one wait", async () => {
      const other = await scene.work.addSubscription();
      await addParked(20);
      await addParked(1, other);
      const admission = createAdmission({
        concurrency: 4,
        perReceiver: 1,
        sharedSlots: createOwnSlots(),
        hasBreakers: false,
        timeoutMs: 30_000,
        sql: scene.core.sql,
        log: scene.log,
        drained: () => Promise.resolve(),
        now: () => performance.now(),
        random: Math.random,
      });
      const places: Reservation[] = [];
      const attempts = {
        ...scene.attempts,
        start(delivery: DeliveryInFlight, place: Reservation) {
          scene.started.push(delivery);
          places.push(place);
        },
      };

      const sweep = start({ intervalMs: never, admission, attempts });
      for (let count = 1; count <= 3; count += 1) {
        await untilStarted(count);
        places.pop()?.enter({ begin: (done) => done(success()), giveUp: () => expect.fail("gave up") });
        sweep.onFree();
      }

      const users = scene.started.slice(0, 3).map(({ subscriptionId }) => subscriptionId);
      expect(users).to.include(other.id);
    });

    it("holds them when their subscription is off, with any others waiting", async () => {
      const [delivery] = await addParked(1);
      await scene.core.sql("UPDATE svc.subscriptions SET is_active = false");
      start();

      await until(
        async () => (await scene.work.deliveryOf((delivery as DeliveryModel).id)).status === "held",
        {
          what: "the hold",
        },
      );
      expect(scene.started).to.deep.equal([]);
    });

    for (const [what, withdraw] of [
      [
        "paused subscriptions have something",
        () => scene.core.sql("UPDATE svc.subscriptions SET is_active = false"),
      ],
      [
        "other dispatchers have slots of the receivers",
        async () => {
          scene.admission.refuses = () => "busy";
          scene.admission.isForOthers = true;
        },
      ],
    ] as const)
      it(`makes no turn for a free slot while only ${what}`, async () => {
        await addParked(1);
        await withdraw();
        let looks = 0;
        const sweep = start({
          intervalMs: never,
          store: {
            ...scene.store,
            findParked(options) {
              looks += 1;
              return scene.store.findParked(options);
            },
          },
        });
        await until(() => looks > 0, { what: "the first look" });
        await sleep(100);

        sweep.onFree();
        await sleep(100);

        expect(looks).to.equal(1);
      });

    it("takes them after notice of a waiting delivery and a free slot", async () => {
      const turns = watchTurns();
      const sweep = start({ intervalMs: never, store: turns.store });
      await turns.next(0);
      await until(async () => scene.lines.length === 0, { what: "nothing" });
      await addParked(1);

      sweep.onQueued(undefined);
      sweep.onFree();

      await untilStarted(1);
    });

    it("takes them when the dispatchers have other shares of the slots", async () => {
      scene.admission.refuses = () => "busy";
      scene.admission.isForOthers = true;
      await addParked(1);
      const turns = watchTurns();
      const sweep = start({ intervalMs: never, store: turns.store });
      await turns.next(0);

      scene.admission.refuses = () => undefined;
      scene.admission.isForOthers = false;
      sweep.onShares();

      await untilStarted(1);
    });

    it("remembers notices that arrive during its turn", async () => {
      let isFirst = true;
      const sweep: Sweep = start({
        intervalMs: never,
        store: {
          ...scene.store,
          async findParked(options) {
            const found = await scene.store.findParked(options);
            if (isFirst) {
              isFirst = false;
              await addParked(1);
              sweep.onQueued(undefined);
            }
            return found;
          },
        },
      });
      await until(() => !isFirst, { what: "a look" });
      await until(() => scene.started.length > 0 || (sweep.onFree(), false), { what: "the attempt" });
    });

    it("walks through all subscriptions with waiting deliveries", async () => {
      await scene.core.sql(
        `INSERT INTO svc.subscriptions (user_id, url, resource, events, encrypted_secret, secret_hint, is_active)
         SELECT user_id, url, resource, events, encrypted_secret, secret_hint, false FROM svc.subscriptions CROSS JOIN generate_series(1, 250)`,
      );
      await scene.core.sql(
        `INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id)
         SELECT 1000000 + id, id, user_id FROM svc.subscriptions WHERE NOT is_active`,
      );
      const last = await scene.work.addSubscription();
      await addParked(1, last);

      start({ intervalMs: never });

      await untilStarted(1);
      expect(scene.started[0]?.subscriptionId).to.equal(last.id);
    });
  });

  describe("of messages", () => {
    it("reads the queue when another dispatcher announces a delivery", async () => {
      const turns = watchTurns();
      start({ intervalMs: never, store: turns.store });
      await turns.next(0);
      const { id, uuid } = await scene.work.addDelivery(scene.subscription, { due: "parked" });

      await scene.broker.publish([deliveryMessage({ id: String(id), uuid }, "retry")]);

      await untilStarted(1);
      expect(await scene.broker.depth(queues.retry)).to.equal(0);
    });

    it("moves a message without a delivery to svc.dead, and requeues it until that is confirmed", async () => {
      scene.broker.refuses = ({ exchange }) => exchange === exchanges.dead;
      const body = Buffer.from("what is this?");
      start({ intervalMs: never });
      await scene.broker.publish([
        { exchange: exchanges.deliveries, routingKey: "first", messageId: "theirs", body },
      ]);
      await until(() => scene.broker.published.length > 1, { what: "the try" });

      scene.broker.refuses = () => false;

      await until(async () => (await scene.broker.depth(queues.dead)) === 1, { what: "the dead letter" });
      expect(scene.broker.published.at(-1)).to.deep.include({
        messageId: "theirs",
        body,
        headers: { "x-svc-reason": "not a delivery" },
      });
    });
  });
});
