import { expect } from "chai";
import { pruneEvents } from "../../../src/deliveries/prune.ts";
import { eraseRecord } from "../../../src/deliveries/erase.ts";
import { serviceActor } from "../../../src/kit/actor.ts";
import { type Command, living, on, openBecome, attemptsOf } from "./commands.ts";
import { agree } from "./compare.ts";
import { ask } from "./world.ts";
import {
  afterAttempt,
  type Event,
  type Expected,
  isOpen,
  manualRetryLimit,
  type Replayed,
  replayedOf,
  type State,
  type Subscription,
} from "./model.ts";

/** Ends the waits of the schedule. */
export const letTimePass: Command = {
  check: ({ deliveries }) => deliveries.some(({ status }) => status === "retrying"),
  async run(model, world) {
    await world.sql("UPDATE svc.delivery_queue SET due_at = date_trunc('milliseconds', now())");
    await agree(model, world, {
      states: attemptsOf(model.deliveries.filter(({ status }) => status === "retrying")),
    });
  },
  toString: () => "let two hours pass",
};

export const retry = on(
  "retry",
  ({ deliveries }) => deliveries.filter(({ subscription }) => !subscription.user.isDisabled),
  async (one, model, world) => {
    const { id, subscription, event, rootId, status } = one;
    const chain = model.deliveries.filter((other) => other.rootId === rootId && other.made === "retry");
    const isRefused =
      subscription.isDeleted ||
      status === "held" ||
      event.isErased ||
      (status !== "retrying" && chain.length >= manualRetryLimit);
    const expected = isRefused ? 422 : status === "retrying" ? 200 : 201;
    await ask(world.admin, world, ["POST", `/webhook-deliveries/${id}/retry`, {}], expected);
    if (isRefused) return {};
    if (status === "retrying") return { states: attemptsOf([one]) };
    const fresh = { subscription, event, attempt: 0 };
    const added = { made: "retry", rootId, allowed: afterAttempt(fresh, true), isOptional: false } as const;
    return { added: [{ subscription, event, ...added }] };
  },
);

function replayOf(
  one: Subscription,
  events: readonly Event[],
  { isStopped }: { readonly isStopped: boolean },
): readonly Expected[] {
  const going = events.filter(({ isErased }) => !isErased);
  return going.map((event) => {
    const states = afterAttempt({ subscription: one, event, attempt: 0 }, going.length === 1);
    const allowed: readonly State[] = isStopped ? [...states, { status: "cancelled", attempt: 0 }] : states;
    // A receiver that answers 410 switches the webhook off, which ends the replay.
    const isOptional = isStopped || one.manner === "gone";
    return { subscription: one, event, made: "replay", rootId: undefined, allowed, isOptional };
  });
}

export const since = new Date(Date.now() - 100 * 86_400_000).toISOString();
export const replays = (
  status: readonly Replayed[],
  then: "end" | "resume" | "cancel",
): ((at: number) => Command) =>
  on(`replay ${status.join(", ")} (${then}) of`, living, async (one, model, world) => {
    const path = `/webhooks/${one.id}/replay`;
    if (!one.isActive) {
      await ask(world.admin, world, ["POST", path, { since, status }], 422);
      return {};
    }
    const found = replayedOf(model, one, status);
    const plan = await ask(world.admin, world, ["POST", path, { since, status, dry_run: true }], 200);
    // It is unknown whether an erased event passes the filter.
    if (!one.isFiltered)
      expect(plan["event_ids"], "events of a dry run").to.deep.equal(
        found.slice(0, 10).map(({ id }) => Number(id)),
      );
    if (then === "end") await ask(world.admin, world, ["POST", path, { since, status }], 202);
    else {
      const { id } = await ask(world.admin, world, ["POST", path, { since, status }], 202);
      await world.tryMoving(String(id), "pause");
      await world.tryMoving(String(id), then);
    }
    return { added: replayOf(one, found, { isStopped: then === "cancel" }) };
  });

export const erase = on(
  "erase the record of",
  ({ events }) => events.filter(({ isErased }) => !isErased),
  async (event, model, { transact }) => {
    const record = { resource: event.resource, recordId: event.recordId };
    await eraseRecord({ transact, record, actor: serviceActor("test"), onProgress: () => undefined });
    event.isErased = true;
    return openBecome(model, "cancelled", (one) => one.event === event);
  },
);

/** Runs retention, a month later. */
export const prune: Command = {
  check: ({ events }) => events.length > 0,
  async run(model, world) {
    const ids = model.events.map(({ id }) => id);
    const back = "- interval '40 days'";
    await world.sql(`UPDATE svc.events SET occurred_at = occurred_at ${back} WHERE id = ANY($1::bigint[])`, [
      ids,
    ]);
    await world.sql(
      `UPDATE svc.deliveries SET updated_at = updated_at ${back} WHERE event_id = ANY($1::bigint[])`,
      [ids],
    );
    const olderThanMs = 30 * 86_400_000;
    await pruneEvents({ transact: world.transact, olderThanMs, isPlan: false, onProgress: () => undefined });
    const isKept = (event: Event): boolean =>
      model.deliveries.some((one) => one.event === event && isOpen(one));
    model.events = model.events.filter(isKept);
    const gone = model.deliveries.filter(({ event }) => !model.events.includes(event));
    model.deliveries = model.deliveries.filter(({ event }) => model.events.includes(event));
    world.forget(gone.map(({ uuid }) => uuid));
    await agree(model, world, {});
  },
  toString: () => "let a month pass, and prune",
};
