import { groupBy } from "../../src/kit/group-by.ts";
import { matches, type Audience } from "../../test/support/ledger.ts";
import type { TriedChange } from "../../test/support/writers.ts";

/** One POST that a receiver got. */
export interface Arrival {
  readonly receiver: number;
  /** Path, which identifies the subscription. */
  readonly path: string;
  /** The change, as in the journal. */
  readonly change: string;
  /** `X-Service-Delivery`. */
  readonly delivery: string;
  /** `X-Service-Event`. */
  readonly event: string;
  /** Time of the change in the writer's transaction, by the database; ms since 1970. */
  readonly occurredAtMs: number;
  readonly receivedAtMs: number;
  /** Digest of the body's bytes. */
  readonly digest: string;
  /**
   * Whether the signature is that of the subscription, and the ids in the headers equal those in
   * the body.
   */
  readonly isGenuine: boolean;
  /**
   * 2xx and complete; 2xx with a body that did not end; another status; none or a partial answer.
   */
  readonly answer: "accepted" | "begun" | "refused" | "none";
}

/** The facts after the system has come to rest. */
export interface Facts {
  /** Committed changes of the database, recorded by the run's own trigger. */
  readonly journal: readonly { readonly change: string; readonly ownerId: number }[];
  readonly tried: readonly TriedChange[];
  readonly audiences: readonly Audience[];
  readonly arrivals: readonly Arrival[];
  /** All rows that ever were in `svc.events`. */
  readonly events: readonly {
    readonly uuid: string;
    readonly change: string;
    readonly isErased: boolean;
  }[];
  /** All rows that ever were in `svc.deliveries`. */
  readonly deliveries: readonly {
    readonly uuid: string;
    readonly event: string;
    readonly subscriptionId: number;
    readonly status: string;
    readonly reason: string | null;
    /** The replay that made the delivery. */
    readonly replayId: string | null;
    /** Whether retention removed it. */
    readonly isRemoved: boolean;
  }[];
  readonly replays: readonly {
    readonly id: string;
    readonly state: string;
    readonly reason: string | null;
    readonly done: number;
    readonly failed: number;
  }[];
}

export interface Ledger {
  readonly changes: {
    readonly committed: number;
    readonly acknowledged: number;
    /** Changes that were rolled back, or never received. */
    readonly refused: number;
    /** Changes without an answer to the writer; the database shows the outcome. */
    readonly unknown: { readonly committed: number; readonly not: number };
  };
  /** Number of rows that ever were in `svc.events`; equals the number of committed changes. */
  readonly events: number;
  /** Number of these events without a payload. */
  readonly erased: number;
  /** Number of deliveries that retention removed. */
  readonly removed: number;
  /** Replays by state, with the reason of those that the service ended. */
  readonly replays: Readonly<Record<string, number>>;
  /** Deliveries of replays by status, with the reason of those that did not arrive. */
  readonly replayed: Readonly<Record<string, number>>;
  /** Rows of `svc.deliveries` by status. */
  readonly deliveries: Readonly<Record<string, number>>;
  /** Pairs of a committed change and a subscription that matches it. */
  readonly due: number;
  /** Due pairs that a receiver answered with 2xx. */
  readonly delivered: number;
  /** Due pairs without a 2xx, by the reason in their row. */
  readonly explained: Readonly<Record<string, number>>;
  /**
   * Due pairs without a 2xx and without a reason: subscription and change. Includes deliveries of
   * replays, missing portions of replays, and deliveries that were removed unfinished.
   */
  readonly lost: readonly string[];
  /** Requests that were not due, or had a wrong signature. */
  readonly phantom: readonly string[];
  /** POSTs of a delivery after one that was answered with 2xx. */
  readonly duplicates: number;
  /** Pairs that arrived under more than one delivery UUID, without those of replays. */
  readonly doubled: readonly string[];
  /** Deliveries that arrived with different bytes. */
  readonly altered: readonly string[];
  /** Changes that were acknowledged and are missing in the database, or rolled back and present. */
  readonly broken: readonly string[];
}

/** Closes the books. Pure. */
export function closeLedger(facts: Facts): Ledger {
  const { journal, tried, audiences, arrivals, events, deliveries } = facts;
  const committed = new Set(journal.map(({ change }) => change));
  const known = new Set(events.map(({ uuid }) => uuid));
  const comings = inOrder(arrivals);
  const byPair = groupBy(comings, ({ path, change }) => `${path} ${change}`);
  const byDelivery = groupBy(comings, ({ delivery }) => delivery);
  const eventOf = new Map(events.map((event) => [event.change, event]));
  const automatic = deliveries.filter(({ replayId }) => replayId === null);
  const rowOf = new Map(automatic.map((row) => [`${row.subscriptionId} ${row.event}`, row]));
  const replayed = new Set(deliveries.filter(({ replayId }) => replayId !== null).map(({ uuid }) => uuid));

  const due = new Set<string>();
  const explained: Record<string, number> = {};
  const lost: string[] = [];
  let delivered = 0;
  for (const { change, ownerId } of journal) {
    for (const audience of audiences.filter((one) => matches(one, change, ownerId))) {
      const pair = `${audience.path} ${change}`;
      due.add(pair);
      const event = eventOf.get(change);
      const reason = explanationOf(rowOf.get(`${audience.subscriptionId} ${event?.uuid}`), event?.isErased);
      if (byPair.get(pair)?.some(isReceived) === true) delivered += 1;
      else if (reason === undefined) lost.push(pair);
      else explained[reason] = (explained[reason] ?? 0) + 1;
    }
  }

  const receivedUuids = new Set(comings.filter(isReceived).map(({ delivery }) => delivery));
  const replays = bookReplays(facts, receivedUuids);
  const unfinished = deliveries.filter(({ isRemoved, status }) => isRemoved && !isFinished(status));
  const isPhantom = ({ path, change, event, isGenuine }: Arrival): boolean =>
    !isGenuine || !due.has(`${path} ${change}`) || !known.has(event);
  const unknown = tried.filter(({ outcome }) => outcome === "unanswered");
  const unknownCommitted = unknown.filter(({ change }) => committed.has(change)).length;
  return {
    changes: {
      committed: committed.size,
      acknowledged: countOf(tried, "acknowledged"),
      refused: countOf(tried, "refused"),
      unknown: { committed: unknownCommitted, not: unknown.length - unknownCommitted },
    },
    events: known.size,
    erased: events.filter(({ isErased }) => isErased).length,
    removed: deliveries.filter(({ isRemoved }) => isRemoved).length,
    replays: replays.states,
    replayed: replays.outcomes,
    deliveries: countBy(deliveries, ({ status }) => status),
    due: due.size,
    delivered,
    explained,
    lost: [...lost, ...replays.lost, ...unfinished.map(({ uuid }) => `${uuid} was removed unfinished`)],
    phantom: [...new Set(comings.filter(isPhantom).map(phantomLine))],
    duplicates: [...byDelivery.values()].reduce((sum, posts) => sum + repeatedIn(posts), 0),
    doubled: pairsWithSeveral(
      groupBy(
        comings.filter(({ delivery }) => !replayed.has(delivery)),
        ({ path, change }) => `${path} ${change}`,
      ),
      ({ delivery }) => delivery,
    ),
    altered: pairsWithSeveral(byDelivery, ({ digest }) => digest),
    broken: tried
      .filter(
        ({ change, outcome }) =>
          outcome !== "unanswered" && committed.has(change) !== (outcome === "acknowledged"),
      )
      .map(({ change, outcome }) => `${outcome}: ${change}`),
  };
}

type DeliveryFacts = Facts["deliveries"][number];

function isFinished(status: string): boolean {
  return status === "delivered" || status === "failed" || status === "cancelled";
}

/**
 * Returns the reason why a delivery has not arrived; undefined without one. An erased event that
 * was not fanned out has no delivery.
 */
function explanationOf(row: DeliveryFacts | undefined, isErased: boolean | undefined): string | undefined {
  if (row === undefined) return isErased === true ? "erased before it was fanned out" : undefined;
  const { status, reason } = row;
  return (status === "failed" || status === "cancelled") && Boolean(reason)
    ? `${status}: ${reason}`
    : undefined;
}

/**
 * Returns the outcomes of replays and of their deliveries, each of which has arrived or has a
 * reason.
 */
function bookReplays(
  { replays, deliveries, events }: Facts,
  received: ReadonlySet<string>,
): {
  readonly states: Readonly<Record<string, number>>;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly lost: readonly string[];
} {
  const erased = new Set(events.filter(({ isErased }) => isErased).map(({ uuid }) => uuid));
  const ofReplays = deliveries.filter(({ replayId }) => replayId !== null);
  const made = groupBy(ofReplays, ({ replayId }) => replayId ?? "");
  const outcomeOf = (row: DeliveryFacts): string | undefined =>
    received.has(row.uuid) ? "arrived" : explanationOf(row, erased.has(row.event));
  const short = replays.filter(
    ({ id, state, done, failed }) => !isEnded(state) || (made.get(id)?.length ?? 0) !== done - failed,
  );
  return {
    states: countBy(replays, ({ state, reason }) => (reason === null ? state : `${state}: ${reason}`)),
    outcomes: countBy(ofReplays, (row) => outcomeOf(row) ?? "lost"),
    lost: [
      ...short.map(
        ({ id, state, done, failed }) =>
          `replay ${id} is ${state}: ${done} done, ${failed} failed, ${made.get(id)?.length ?? 0} made`,
      ),
      ...ofReplays
        .filter((row) => outcomeOf(row) === undefined)
        .map(({ uuid, replayId }) => `delivery ${uuid} of replay ${replayId}`),
    ],
  };
}

function isEnded(state: string): boolean {
  return state === "done" || state === "cancelled";
}

/** Returns whether the run passes: nothing lost, phantom or broken. */
export function isClean({ lost, phantom, broken }: Ledger): boolean {
  return lost.length === 0 && phantom.length === 0 && broken.length === 0;
}

/**
 * Returns whether the receiver has the delivery, as far as the sender knows. A 2xx answer may be
 * incomplete.
 */
export function isReceived({ isGenuine, answer }: Arrival): boolean {
  return isGenuine && (answer === "accepted" || answer === "begun");
}

/** Counts POSTs after the first complete answer: after a partial answer, a sender may try again. */
function repeatedIn(posts: readonly Arrival[]): number {
  const first = posts.findIndex(({ answer }) => answer === "accepted");
  return first === -1 ? 0 : posts.length - 1 - first;
}

function phantomLine({ path, change, delivery, isGenuine }: Arrival): string {
  return `${path} ${change} (delivery ${delivery}${isGenuine ? "" : ", not signed as it must be"})`;
}

function pairsWithSeveral(
  groups: ReadonlyMap<string, readonly Arrival[]>,
  read: (arrival: Arrival) => string,
): readonly string[] {
  return [...groups].filter(([, posts]) => new Set(posts.map(read)).size > 1).map(([key]) => key);
}

function inOrder(arrivals: readonly Arrival[]): readonly Arrival[] {
  return arrivals.toSorted((a, b) => a.receivedAtMs - b.receivedAtMs);
}

function countBy<T>(items: readonly T[], keyOf: (item: T) => string): Readonly<Record<string, number>> {
  return Object.fromEntries([...groupBy(items, keyOf)].map(([key, group]) => [key, group.length]));
}

function countOf(tried: readonly TriedChange[], outcome: TriedChange["outcome"]): number {
  return tried.filter((one) => one.outcome === outcome).length;
}
