import { type Command, on, openBecome, heldGo } from "./commands.ts";
import { ask, type World } from "./world.ts";
import { change } from "./steps-events.ts";
import {
  afterAttempt,
  type Expected,
  fannedOut,
  isOn,
  type State,
  type Subscription,
  type User,
} from "./model.ts";

export type Switch = "pause" | "resume" | "delete" | "disable the user of" | "enable the user of";

const switches: Readonly<
  Record<
    Switch,
    { readonly among: (one: Subscription) => boolean; readonly set: Partial<Subscription & User> }
  >
> = {
  pause: { among: (one) => isOn(one), set: { isActive: false } },
  resume: {
    among: ({ isActive, user }) => !isActive && !user.isDisabled,
    set: { isActive: true, isOver: false },
  },
  delete: { among: ({ user }) => !user.isDisabled, set: { isActive: false, isDeleted: true } },
  "disable the user of": { among: ({ user }) => !user.isDisabled, set: { isDisabled: true } },
  "enable the user of": { among: ({ user }) => user.isDisabled, set: { isDisabled: false } },
};

export function send(name: Switch, { id, user }: Subscription, world: World): Promise<unknown> {
  if (name === "delete") return ask(user, world, ["DELETE", `/webhooks/${id}`], 204);
  if (name === "pause" || name === "resume")
    return ask(user, world, ["PUT", `/webhooks/${id}`, { is_active: name === "resume" }], 200);
  const body = { is_disabled: name === "disable the user of" };
  return ask(world.admin, world, ["PUT", `/users/${user.id}`, body], 200);
}

/** Returns whether the answer of one of these subscriptions switches it off. */
function hasGone(subscriptions: readonly Subscription[], user: User): boolean {
  return subscriptions.some((one) => one.user === user && one.manner === "gone" && !one.isDeleted);
}

/**
 * Makes an event and a switch at the same time. Either may come first, and the switch may come
 * during an attempt.
 */
export const race = (name: Switch): ((at: number) => Command) =>
  on(
    `change a record, and at once ${name}`,
    ({ subscriptions }) =>
      subscriptions.filter(
        (one) => !one.isDeleted && switches[name].among(one) && !hasGone(subscriptions, one.user),
      ),
    async (one, model, world) => {
      const owner = model.users.indexOf(one.user);
      const [events] = await Promise.all([
        change(model, world, owner, [
          { resource: "notes", isPaid: true },
          { resource: "alerts", isPaid: true },
        ]),
        send(name, one, world),
      ]);
      const before = fannedOut(model, events);
      const thing = "isDisabled" in switches[name].set ? one.user : one;
      Object.assign(thing, switches[name].set);
      const after = fannedOut(model, events);
      const gone = name === "delete" ? openBecome(model, "cancelled", (own) => own.subscription === one) : {};
      const goes = isOn(one) ? heldGo(model, (other) => other.user === one.user && isOn(other)) : gone;
      return { ...goes, added: merge(before, after) };
    },
  );

function isSame(one: Expected): (other: Expected) => boolean {
  return ({ subscription, event }) => subscription === one.subscription && event === one.event;
}

/**
 * Merges the outcomes of both orders. Deliveries that one order holds have gone out in the other,
 * which finds the subscription on.
 */
export function merge(before: readonly Expected[], after: readonly Expected[]): readonly Expected[] {
  const pairs = [...after, ...before.filter((one) => !after.some(isSame(one)))];
  return pairs.map((one) => {
    const [early, late] = [before.find(isSame(one)), after.find(isSame(one))];
    const { isDeleted } = one.subscription;
    const states = [...(early?.allowed ?? []), ...(late?.allowed ?? [])];
    const cut: readonly State[] = isDeleted
      ? [0, 1].map((attempt) => ({ status: "cancelled", attempt }))
      : [];
    const left = [...states, ...cut].filter(
      ({ status }) => !(status === "held" && isOn(one.subscription) && one.subscription.manner !== "gone"),
    );
    const sent = isOn(one.subscription) ? afterAttempt({ ...one, attempt: 0 }, false) : [];
    return { ...one, allowed: [...left, ...sent], isOptional: early === undefined || late === undefined };
  });
}
