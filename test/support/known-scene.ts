import { expect } from "chai";
import type { EventModel } from "./generated/models.ts";
import type { FanOutOptions } from "../../src/deliveries/fan-out.ts";
import type { AdminRule } from "../../src/mapping/definition.ts";
import type { Eligibility } from "../../src/subscriptions/eligibility.ts";
import { createSubscriberFinder, type SubscriberFinder } from "../../src/subscriptions/find-subscribers.ts";
import type { Mutable } from "./core-scene.ts";
import { messageOf, useFanOutScene, type FanOutScene } from "./fan-out-scene.ts";
import { agePool } from "./known-subscribers.ts";
import { notesEligibility } from "./notes-eligibility.ts";
import { until } from "./wait.ts";
import { unfiltered } from "./work.ts";

export const nobody: AdminRule = { kind: "nobody" };

/** A fan-out that records its queries for subscribers and its writes. */
interface KnownScene extends FanOutScene {
  /** Fixed time, so that nothing expires on a slow machine. */
  nowMs: number;
  readonly lookUps: number;
  /** Number of batches to which filters were applied. */
  readonly filterings: number;
  /**
   * For each insert: whether the subscribers were known or queried, and whether they were stale.
   */
  readonly inserts: readonly string[];
  /** Runs once, before the next insert for known subscribers. */
  meanwhile: (() => Promise<unknown>) | undefined;
  readonly finderFor: (eligibility: Eligibility) => SubscriberFinder;
  readonly startKnown: (rule?: AdminRule, overrides?: Partial<FanOutOptions>) => void;
  readonly fanOut: (event: EventModel) => Promise<void>;
  /**
   * Fans out the event of the scene, for which the database is queried, and then another one of the
   * same owner, which is returned.
   */
  readonly fanOutTwo: (change?: () => Promise<unknown>) => Promise<EventModel>;
  /** Fans out two events together: one of the scene's owner, and one of another. */
  readonly fanOutTogether: (ownerId: number) => Promise<readonly [EventModel, EventModel]>;
  /** Returns subscription, last part of the URL and status of each delivery of the event. */
  readonly deliveriesOf: (event: EventModel) => Promise<readonly unknown[]>;
  /** Expects one slot and one attempt for each delivery, and no other slots. */
  readonly expectWhole: () => Promise<void>;
}

/** Registers the hooks of the surrounding `describe`. */
export function useKnownScene(): KnownScene {
  const scene: Mutable<KnownScene> = Object.assign(useFanOutScene() as KnownScene, {
    finderFor: (eligibility: Eligibility) =>
      createSubscriberFinder({
        sql: (text, values) => {
          scene.lookUps += 1;
          return scene.core.sql(text, values);
        },
        eligibility,
        filters: {
          passing(...given) {
            scene.filterings += 1;
            return unfiltered.passing(...given);
          },
        },
        holdForMs: 604_800_000,
        now: () => scene.nowMs,
      }),
    startKnown(rule: AdminRule = nobody, overrides: Partial<FanOutOptions> = {}) {
      const eligibility = notesEligibility(rule);
      const subscribers = scene.finderFor(eligibility);
      scene.start({ eligibility, subscribers, store: watchedStore(scene), ...overrides });
    },
    async fanOut(event: EventModel) {
      await scene.broker.publish([messageOf(event)]);
      await untilFannedOut(scene, [event]);
      expect(await scene.work.outbox()).not.to.include(event.id);
    },
    async fanOutTwo(change?: () => Promise<unknown>) {
      const [next] = await scene.addEvents(1);
      await scene.fanOut(scene.event);
      scene.meanwhile = change;
      await scene.fanOut(next as EventModel);
      return next as EventModel;
    },
    async fanOutTogether(ownerId: number) {
      const [one] = await scene.addEvents(1);
      const both = [one as EventModel, await scene.work.addEvent({ ownerId: String(ownerId) })] as const;
      await scene.broker.publish(both.map(messageOf));
      await untilFannedOut(scene, both);
      return both;
    },
    deliveriesOf: async ({ id }: EventModel) =>
      (await scene.work.deliveries())
        .filter(({ eventId }) => eventId === id)
        .toSorted((one, other) => one.subscriptionId - other.subscriptionId)
        .map(({ subscriptionId, url, status }) => [subscriptionId, url.split("/").at(-1), status]),
    async expectWhole() {
      const taken = (await scene.work.flights()).flatMap(({ deliveryIds }) => deliveryIds.map(String));
      expect(scene.started.map(({ id }) => id)).to.have.members(taken);
      expect(new Set(taken).size).to.equal(taken.length);
      expect(scene.admission.held).to.equal(taken.length);
    },
  });
  beforeEach(async () => {
    await agePool(scene.core.sql);
    Object.assign(scene, { nowMs: 0, lookUps: 0, filterings: 0, inserts: [], meanwhile: undefined });
  });
  return scene;
}

/** Waits for the end of the turn of each event, which is after the answer of its insert. */
async function untilFannedOut({ lines }: FanOutScene, events: readonly EventModel[]): Promise<void> {
  const isNoted = ({ uuid }: EventModel): boolean =>
    lines.some(({ eventUuids }) => [eventUuids].flat().includes(uuid));
  await until(() => events.every(isNoted), { what: "the turn's end" });
}

function watchedStore(scene: Mutable<KnownScene>): FanOutOptions["store"] {
  return {
    async insert(options) {
      const isKnown = options.knownAt !== undefined;
      if (isKnown) {
        const change = scene.meanwhile;
        scene.meanwhile = undefined;
        await change?.();
      }
      const { isStale, ...answer } = await scene.store.insert(options);
      scene.inserts = [...scene.inserts, `${isKnown ? "known" : "asked"}${isStale ? ", stale" : ""}`];
      return { isStale, ...answer };
    },
  };
}
