import type { Log } from "../telemetry/log.ts";
import type { IncomingMessage } from "../broker/broker.ts";
import type { PublishedEvent } from "../events/event-message.ts";
import type { Subscriber } from "../subscriptions/subscriber.ts";
import type { KnownAt } from "../subscriptions/known-subscribers.ts";
import type { Eligibility } from "../subscriptions/eligibility.ts";
import type { Span } from "../telemetry/tracing.ts";
import type { Admission, Reservation } from "./admission/admission.ts";
import type { Attempts } from "./attempt/attempts.ts";
import type { DeliveryInFlight } from "./attempt/delivery-in-flight.ts";
import type { ScheduleOf } from "./attempt/schedule.ts";
import { grantsFor, type Rates } from "./admission/rates.ts";
import { deliveryUuidOf } from "./delivery-uuid.ts";
import type { Flight } from "./flights.ts";
import type { NewDelivery } from "./insert-deliveries.ts";
import type { DeliveryStore } from "./store.ts";

export interface WriteOptions {
  readonly store: Pick<DeliveryStore, "insert">;
  readonly scheduleOf: ScheduleOf;
  readonly admission: Pick<Admission, "reserve">;
  readonly rates: Pick<Rates, "take">;
  readonly attempts: Pick<Attempts, "start">;
  readonly flightMs: number;
  readonly eligibility: Pick<Eligibility, "judge">;
  readonly log: Pick<Log, "error">;
}

/** An event with its message and its span, as the fan-out received it. */
export interface Received {
  readonly message: IncomingMessage;
  readonly event: PublishedEvent;
  readonly span: Span;
}

/** A delivery that was written. */
export interface Written {
  readonly received: Received;
  readonly id: string;
  readonly uuid: string;
  /** Whether the delivery waits in the queue for a slot. */
  readonly isParked: boolean;
}

/** A delivery to be written. */
interface Planned {
  readonly received: Received;
  readonly subscriber: Subscriber;
  readonly reservation: Reservation | undefined;
  /** Columns that the delivery's row and its first attempt share. */
  readonly shared: Pick<
    NewDelivery & DeliveryInFlight,
    "uuid" | "eventId" | "eventUuid" | "subscriptionId" | "resource" | "maxAttempts" | "hasPrevious"
  >;
}

/** Most deliveries of one statement. */
export const portionSize = 500;

/** Subscribers that get the events of a batch. */
interface Recipients {
  /** Subscribers of each event, in the order of the events. */
  readonly subscribers: readonly (readonly Subscriber[])[];
  /** When the subscribers were read, if not just now. Only valid for one portion of deliveries. */
  readonly knownAt?: KnownAt | undefined;
}

/**
 * Writes the deliveries of events in portions, and starts the attempts of each portion when it is
 * written.
 *
 * @returns The new deliveries, and how many of the events were still in the outbox. When the
 *   subscribers may have changed since `knownAt`, nothing was written and no slot is reserved. The
 *   attempts that rate limits granted are then lost: those deliveries wait for the next permitted
 *   attempt.
 */
export async function writeDeliveries(
  options: WriteOptions,
  batch: readonly Received[],
  { subscribers, knownAt }: Recipients,
): Promise<{ readonly written: readonly Written[]; readonly eventCount: number; readonly isStale: boolean }> {
  const mayReadOld = await oldReaders(options, batch, subscribers);
  const planned = await limitToRates(
    options,
    batch.flatMap((received, index) =>
      (subscribers[index] ?? []).map((subscriber) =>
        plan(options, received, { subscriber, hasPrevious: mayReadOld(received.event, subscriber) }),
      ),
    ),
  );
  const written: Written[] = [];
  let eventCount = 0;
  let isStale = false;
  for (let start = 0; start === 0 || start < planned.length; start += portionSize) {
    try {
      // The count of the last portion covers all events.
      ({ eventCount, isStale } = await writePortion(options, { batch, planned, knownAt, written }, start));
    } catch (error) {
      for (const { reservation } of planned.slice(start)) reservation?.leave();
      throw error;
    }
  }
  return { written, eventCount, isStale };
}

function keyOf({ id }: PublishedEvent, { user }: Subscriber): string {
  return `${id} ${user.id}`;
}

/** Finds out which subscribers may read the old rows of updates as well. */
async function oldReaders(
  { eligibility }: WriteOptions,
  batch: readonly Received[],
  subscribers: readonly (readonly Subscriber[])[],
): Promise<(event: PublishedEvent, subscriber: Subscriber) => boolean> {
  const pairs = batch.flatMap(({ event }, index) =>
    event.previous === undefined
      ? []
      : (subscribers[index] ?? []).map((one) => ({ event, user: one.user, key: keyOf(event, one) })),
  );
  if (pairs.length === 0) return () => false;
  const verdicts = await eligibility.judge(pairs, "previous");
  // The error leaves the event in the outbox, and it is tried again.
  if (verdicts.includes(undefined)) throw new Error("Who may read an old row cannot be decided now.");
  const readers = new Set(pairs.flatMap(({ key }, index) => (verdicts[index] === true ? [key] : [])));
  return (event, subscriber) => readers.has(keyOf(event, subscriber));
}

function plan(
  { admission, scheduleOf }: WriteOptions,
  received: Received,
  { subscriber, hasPrevious }: { readonly subscriber: Subscriber; readonly hasPrevious: boolean },
): Planned {
  const { event } = received;
  const { subscriptionId, user, url } = subscriber;
  const { id: eventId, event_id: eventUuid, resource } = event;
  const uuid = deliveryUuidOf(eventUuid, subscriptionId);
  const { maxAttempts } = scheduleOf(resource);
  return {
    received,
    subscriber,
    shared: { uuid, eventId, eventUuid, subscriptionId, resource, maxAttempts, hasPrevious },
    reservation: subscriber.isActive
      ? admission.reserve({
          userId: user.id,
          url,
          lane: "first",
          bytes: event.data.length + (hasPrevious ? (event.previous?.length ?? 0) : 0),
          isUrgent: false,
        })
      : undefined,
  };
}

/** Leaves deliveries to the queue that a rate limit does not permit now. */
async function limitToRates(options: WriteOptions, planned: readonly Planned[]): Promise<readonly Planned[]> {
  const isLimited = ({ reservation, subscriber }: Planned): boolean =>
    reservation !== undefined && subscriber.rateLimit !== null;
  if (!planned.some(isLimited)) return planned;
  const subscribers = planned.filter(isLimited).map(({ subscriber }) => subscriber);
  const useGrant = await grantsFor(options, subscribers);
  return planned.map((one) => {
    const { reservation, subscriber } = one;
    if (!isLimited(one) || useGrant?.(subscriber.subscriptionId, subscriber.rateLimit) === true) return one;
    reservation?.leave();
    return { ...one, reservation: undefined };
  });
}

/** The events of a batch, their deliveries, and those that are written already. */
interface Writing extends Pick<Recipients, "knownAt"> {
  readonly batch: readonly Received[];
  readonly planned: readonly Planned[];
  readonly written: Written[];
}

/** Writes the portion from `start` on, starts its attempts, and adds the new ones to `written`. */
async function writePortion(
  { store, attempts, flightMs }: WriteOptions,
  { batch, planned, knownAt, written }: Writing,
  start: number,
): Promise<{ readonly eventCount: number; readonly isStale: boolean }> {
  const portion = planned.slice(start, start + portionSize);
  // The last portion takes the events out of the outbox.
  const isComplete = start + portionSize >= planned.length;
  const beganAtMs = performance.now();
  const withDeliveries = new Set(portion.map(({ received }) => received));
  const { flightId, ids, stored, databaseTimeMs, eventCount, isStale } = await store.insert({
    events: (isComplete ? batch : [...withDeliveries]).map((received) => ({
      id: received.event.id,
      uuid: received.event.event_id,
      data: withDeliveries.has(received) ? received.event.data.toString() : undefined,
      previous: withDeliveries.has(received) ? received.event.previous?.toString() : undefined,
    })),
    deliveries: portion.map(toNewDelivery),
    isComplete,
    flightMs,
    knownAt,
  });
  const flight: Flight = {
    id: flightId ?? "",
    beganAtMs,
    unwritten: portion.filter(({ shared, reservation }) => reservation !== undefined && ids.has(shared.uuid))
      .length,
  };
  for (const one of portion) {
    const { uuid } = one.shared;
    const id = ids.get(uuid);
    if (id !== undefined)
      written.push({
        received: one.received,
        id,
        uuid,
        isParked: one.reservation === undefined && one.subscriber.isActive,
      });
    if (one.reservation === undefined) continue;
    if (id === undefined) one.reservation.leave();
    else {
      const happenedAtMs = performance.now() - databaseTimeMs + Date.parse(one.received.event.timestamp);
      // Another fan-out may have stored the record of an earlier message. All deliveries send that
      // record, which may show other related records than this message.
      const payload = stored.has(one.shared.eventId) ? one.received.event : undefined;
      attempts.start(toDelivery(one, { id, flight, happenedAtMs, payload }), one.reservation);
    }
  }
  return { eventCount, isStale };
}

function toNewDelivery({ received: { span }, subscriber, reservation, shared }: Planned): NewDelivery {
  return {
    ...shared,
    userId: subscriber.user.id,
    url: subscriber.url,
    traceparent: span.traceparent,
    isTaken: subscriber.isActive ? reservation !== undefined : null,
  };
}

function toDelivery(
  { received: { event, span }, subscriber, shared }: Planned,
  rest: Pick<DeliveryInFlight, "id" | "flight" | "happenedAtMs" | "payload">,
): DeliveryInFlight {
  const { url, signing, rateLimit, user } = subscriber;
  return {
    ...rest,
    ...shared,
    event: event.event,
    timestamp: event.timestamp,
    attempt: 0,
    isPaced: rateLimit !== null,
    trigger: "scheduled",
    traceparent: span.traceparent ?? null,
    subscription: { url, signing, rateLimit, user },
  };
}
