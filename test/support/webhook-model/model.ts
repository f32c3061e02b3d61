/** The deliveries that each subscription must get, and their states, according to the guide. */

export type Status = "retrying" | "held" | "delivered" | "failed" | "cancelled";
export type Manner = "ok" | "fail" | "gone";
export type Wanted = "notes" | "alerts" | "*";

/** Attempts of a delivery by the resource of its event. */
export const maxAttempts = { notes: 3, alerts: 1 } as const;
export type Resource = keyof typeof maxAttempts;
export const manualRetryLimit = 2;

export interface User {
  readonly id: number;
  readonly token: string;
  isDisabled: boolean;
}

export interface Subscription {
  readonly id: number;
  readonly path: string;
  readonly user: User;
  readonly wanted: Wanted;
  /** Whether its filter requires `paid`. */
  readonly isFiltered: boolean;
  isActive: boolean;
  /** Whether it has been off for so long that no delivery is held any more. */
  isOver: boolean;
  isDeleted: boolean;
  manner: Manner;
}

export interface Event {
  readonly id: string;
  readonly resource: Resource;
  readonly recordId: string;
  readonly text: string;
  readonly user: User;
  isErased: boolean;
}

/** A state that a delivery may have: one of several when the guide leaves it open. */
export interface State {
  readonly status: Status;
  readonly attempt: number;
}

export interface Delivery extends State {
  readonly id: string;
  readonly uuid: string;
  readonly subscription: Subscription;
  readonly event: Event;
  /** Id of the first delivery of its chain. */
  readonly rootId: string;
  readonly made: "automatic" | "retry" | "replay";
}

/** A delivery that must exist, or may exist. */
export interface Expected {
  readonly subscription: Subscription;
  readonly event: Event;
  readonly made: Delivery["made"];
  readonly rootId: string | undefined;
  readonly allowed: readonly State[];
  readonly isOptional: boolean;
}

export interface Model {
  readonly users: User[];
  readonly subscriptions: Subscription[];
  /** Events in the order of their ids, like the deliveries. */
  events: Event[];
  deliveries: Delivery[];
}

export function isOpen({ status }: State): boolean {
  return status === "retrying" || status === "held";
}

export function isOn({ isActive, isDeleted, user }: Subscription): boolean {
  return isActive && !isDeleted && !user.isDisabled;
}

export function wants({ wanted, user, isFiltered }: Subscription, event: Event): boolean {
  return (
    (wanted === "*" || wanted === event.resource) &&
    user === event.user &&
    (!isFiltered || event.text.startsWith("paid"))
  );
}

/**
 * Returns the possible states of a delivery after its due time.
 *
 * @param isAlone Whether no other delivery goes to the subscription: the first answer of 410
 *   switches it off, before or after the others.
 */
export function afterAttempt(
  { subscription, event, attempt }: Pick<Delivery, "subscription" | "event" | "attempt">,
  isAlone: boolean,
): readonly State[] {
  if (subscription.isDeleted) return [{ status: "cancelled", attempt }];
  if (!isOn(subscription)) return [{ status: subscription.isOver ? "cancelled" : "held", attempt }];
  const made = attempt + 1;
  if (subscription.manner === "ok") return [{ status: "delivered", attempt: made }];
  const failed: State = {
    status: made >= maxAttempts[event.resource] ? "failed" : "retrying",
    attempt: made,
  };
  return subscription.manner === "gone" && !isAlone ? [failed, { status: "held", attempt }] : [failed];
}

/** Returns the deliveries of an event to the current subscriptions. */
export function fannedOut(model: Model, events: readonly Event[]): readonly Expected[] {
  const pairs = events.flatMap((event) =>
    model.subscriptions
      .filter((one) => !one.isDeleted && !one.isOver && wants(one, event))
      .map((subscription) => ({ event, subscription })),
  );
  return pairs.map(({ event, subscription }) => {
    const isAlone = pairs.filter((other) => other.subscription === subscription).length === 1;
    const allowed = afterAttempt({ subscription, event, attempt: 0 }, isAlone);
    return { subscription, event, made: "automatic", rootId: undefined, allowed, isOptional: false };
  });
}

/** Returns the newest delivery of an event to a subscription. */
function newestOf(model: Model, subscription: Subscription, event: Event): Delivery | undefined {
  return model.deliveries.findLast((one) => one.subscription === subscription && one.event === event);
}

export type Replayed = "failed" | "delivered" | "cancelled" | "never";

/** Returns the events that a replay reads, including those without a payload. */
export function replayedOf(
  model: Model,
  subscription: Subscription,
  statuses: readonly Replayed[],
): readonly Event[] {
  return model.events.filter((event) => {
    const status = newestOf(model, subscription, event)?.status ?? "never";
    return wants(subscription, event) && statuses.some((one) => one === status);
  });
}
