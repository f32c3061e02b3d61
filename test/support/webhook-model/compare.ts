import { expect } from "chai";
import type { Delivery, Expected, Model, State, Status } from "./model.ts";
import type { World } from "./world.ts";

interface Row extends Record<string, unknown> {
  readonly id: string;
  readonly uuid: string;
  readonly eventId: string;
  readonly subscriptionId: number;
  readonly status: Status;
  readonly attempt: number;
  readonly reason: string | null;
  readonly made: Delivery["made"];
  readonly rootId: string;
  readonly attempts: number;
}

const rowsText = `
  SELECT id, uuid, event_id AS "eventId", subscription_id AS "subscriptionId", status, attempt, last_error AS reason, root_delivery_id AS "rootId",
    CASE WHEN replay_id IS NOT NULL THEN 'replay' WHEN trigger_kind = 'manual' THEN 'retry' ELSE 'automatic' END AS made,
    (SELECT count(*)::int FROM svc.attempts WHERE delivery_id = delivery.id) AS attempts
  FROM svc.deliveries AS delivery WHERE subscription_id = ANY($1::int[]) ORDER BY id`;

/**
 * Changes that a command may make: states of deliveries, and new deliveries. Nothing else may
 * change.
 */
export interface Changes {
  readonly states?: ReadonlyMap<Delivery, readonly State[]>;
  readonly added?: readonly Expected[];
}

/**
 * Waits until all work is done, compares the database and the receiver with the model, and takes
 * over the outcomes that the guide leaves open.
 */
export async function agree(
  model: Model,
  world: World,
  { states = new Map(), added = [] }: Changes,
): Promise<void> {
  await world.settle();
  const rows = await world.sql<Row>(rowsText, [model.subscriptions.map(({ id }) => id)]);
  const known = new Map(rows.map((row) => [row.id, row]));
  for (const delivery of model.deliveries) {
    const row = known.get(delivery.id);
    expect(row, `${nameOf(delivery)} is gone`).to.not.equal(undefined);
    if (row === undefined) continue;
    isAllowed(row, states.get(delivery) ?? [delivery], nameOf(delivery));
    Object.assign(delivery, { status: row.status, attempt: row.attempt });
    known.delete(delivery.id);
  }
  const left = [...known.values()];
  for (const one of added) {
    const at = left.findIndex((row) => isOf(one, row));
    if (at === -1) expect(one.isOptional, `${nameOf(one)} is missing`).to.equal(true);
    for (const row of left.splice(at, at === -1 ? 0 : 1)) {
      isAllowed(row, one.allowed, nameOf(one));
      const { id, uuid, status, attempt, rootId } = row;
      const { subscription, event, made } = one;
      model.deliveries.push({ id, uuid, status, attempt, rootId, subscription, event, made });
    }
  }
  expect(left, "deliveries that nothing accounts for").to.deep.equal([]);
  await followSwitches(model, world);
  agreeWithReceiver(model, world);
}

function isOf({ subscription, event, made, rootId }: Expected, row: Row): boolean {
  return (
    row.subscriptionId === subscription.id &&
    row.eventId === event.id &&
    row.made === made &&
    (rootId === undefined || row.rootId === rootId)
  );
}

function isAllowed(
  { status, attempt, reason, attempts }: Row,
  allowed: readonly State[],
  name: string,
): void {
  const texts = allowed.map((state) => `${state.status} after ${state.attempt}`);
  expect(texts, name).to.include(`${status} after ${attempt}`);
  expect(attempts, `rows of attempts of ${name}`).to.equal(attempt);
  if (status === "failed" || status === "cancelled")
    expect(reason, `the reason of ${name}`).to.be.a("string");
}

/** A receiver that answered 410 to any delivery has its webhook switched off, within a second. */
async function followSwitches({ subscriptions, deliveries }: Model, world: World): Promise<void> {
  for (const one of subscriptions.filter(({ isActive, isDeleted }) => isActive && !isDeleted)) {
    const own = new Set(
      deliveries.flatMap((delivery) => (delivery.subscription === one ? [delivery.uuid] : [])),
    );
    const isGone = world.posts.some(({ delivery, status }) => status === 410 && own.has(delivery));
    if (!isGone) continue;
    one.isActive = false;
    await world.untilOff(one.id);
    // The service knows this 410 now. A later 410 counts separately.
    world.forgetGone(one.path);
  }
}

function agreeWithReceiver({ deliveries }: Model, { posts, faults, hasCrashed }: World): void {
  expect(faults).to.deep.equal([]);
  for (const delivery of deliveries) {
    const own = posts.filter((post) => post.delivery === delivery.uuid);
    const name = `POSTs of ${nameOf(delivery)}`;
    if (hasCrashed) expect(own.length, name).to.be.at.least(delivery.attempt);
    else expect(own.length, name).to.equal(delivery.attempt);
    const accepted = own.filter(({ status }) => status < 300).length;
    // A webhook may be deleted during an attempt.
    if (delivery.status !== "cancelled")
      expect(accepted > 0, `${name} that were accepted`).to.equal(delivery.status === "delivered");
    expect(
      own.every(({ path, text }) => path === delivery.subscription.path && text === delivery.event.text),
    ).to.equal(true, `${name} have its text`);
  }
  const uuids = new Set(deliveries.map(({ uuid }) => uuid));
  expect(
    posts.filter(({ delivery }) => !uuids.has(delivery)),
    "POSTs that nothing accounts for",
  ).to.deep.equal([]);
}

function nameOf({ made, event, subscription }: Pick<Expected, "made" | "event" | "subscription">): string {
  return `the ${made} delivery of ${event.resource} "${event.text}" to ${subscription.path}`;
}
