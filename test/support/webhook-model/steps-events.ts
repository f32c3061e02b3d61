import { tuple, record, nat, constantFrom, boolean, array } from "fast-check";
import { until } from "../wait.ts";
import { type Command, choice, living, on, openBecome } from "./commands.ts";
import { agree } from "./compare.ts";
import { ask, type World } from "./world.ts";
import { type Event, type Expected, fannedOut, isOn, type Model, type Resource } from "./model.ts";

interface NewEvent {
  readonly resource: Resource;
  readonly isPaid: boolean;
}

/** Writes records of one user in one transaction, past the API. */
export async function change(
  model: Model,
  world: World,
  at: number,
  given: readonly NewEvent[],
): Promise<readonly Event[]> {
  const user = model.users[at % model.users.length];
  if (user === undefined) throw new Error("there is no user");
  return world.transact(async (sql) => {
    const made: Event[] = [];
    for (const { resource, isPaid } of given) {
      const text = `${isPaid ? "paid" : "open"} ${world.nextNumber()}`;
      const insert = `INSERT INTO ${resource} (text, user_id) VALUES ($1, $2) RETURNING id`;
      const [written] = await sql<{ id: number }>(insert, [text, user.id]);
      const recordId = String(written?.id);
      const [row] = await sql<{ id: string }>(
        "SELECT id FROM svc.events WHERE resource = $1 AND record_id = $2",
        [resource, recordId],
      );
      made.push({ id: row?.id ?? "", resource, recordId, text, user, isErased: false });
    }
    model.events.push(...made);
    return made;
  });
}

const newEvent = record<NewEvent>({
  resource: constantFrom<Resource>("notes", "alerts"),
  isPaid: boolean(),
});

export function changing(at: number, given: readonly NewEvent[]): Command {
  return {
    check: ({ users }) => users.length > 0,
    async run(model, world) {
      const events = await change(model, world, at, given);
      await agree(model, world, { added: fannedOut(model, events) });
    },
    toString: () =>
      `change ${given.map(({ resource, isPaid }) => `${isPaid ? "paid " : ""}${resource}`).join(", ")}`,
  };
}
export const changes = tuple(choice, array(newEvent, { minLength: 1, maxLength: 2 })).map(([at, given]) =>
  changing(at, given),
);

/** Kills a dispatcher during the fan-out or delivery of some events. */
export const crashes = tuple(choice, nat(40)).map(([at, waitMs]): Command => ({
  check: ({ users }) => users.length > 0,
  async run(model, world) {
    await world.victim?.untilReady();
    const events = await change(model, world, at, [
      { resource: "notes", isPaid: true },
      { resource: "alerts", isPaid: false },
      { resource: "notes", isPaid: false },
      { resource: "alerts", isPaid: true },
    ]);
    await world.crash(waitMs);
    await agree(model, world, { added: fannedOut(model, events) });
  },
  toString: () => `change four, and kill a dispatcher after ${waitMs} ms`,
}));

/** The answer arrives after the webhook was deleted. */
export const removeInFlight = on(
  "delete, in the middle of an attempt,",
  (model) => living(model).filter((one) => isOn(one) && one.wanted !== "alerts"),
  async (one, model, world) => {
    world.slowPath = one.path;
    const events = await change(model, world, model.users.indexOf(one.user), [
      { resource: "notes", isPaid: true },
    ]);
    const isThere = (): boolean => world.posts.some(({ text }) => text === events[0]?.text);
    await until(isThere, { what: "an attempt" });
    await ask(one.user, world, ["DELETE", `/webhooks/${one.id}`], 204);
    const added = fannedOut(model, events).map((made): Expected =>
      made.subscription === one ? { ...made, allowed: [{ status: "cancelled", attempt: 1 }] } : made,
    );
    Object.assign(one, { isDeleted: true, isActive: false });
    return { ...openBecome(model, "cancelled", ({ subscription }) => subscription === one), added };
  },
);
