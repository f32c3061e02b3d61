import { nat, type AsyncCommand } from "fast-check";
import { agree, type Changes } from "./compare.ts";
import { afterAttempt, type Delivery, isOpen, type Model, type State, type Subscription } from "./model.ts";
import type { World } from "./world.ts";

export const choice = nat(99);

export type Command = AsyncCommand<Model, World>;

/**
 * Creates a command on one of its possible objects, which a number chooses.
 *
 * @param among Returns the possible objects; without any, the command is skipped.
 * @param act Runs the command, and returns the permitted changes.
 */
export function on<Thing>(
  name: string,
  among: (model: Model) => readonly Thing[],
  act: (thing: Thing, model: Model, world: World) => Promise<Changes>,
): (at: number) => Command {
  return (at) => {
    let done = "";
    return {
      check: (model) => among(model).length > 0,
      async run(model, world) {
        const things = among(model);
        const thing = things[at % things.length] as Thing;
        done = ` ${wordOf(thing)}`;
        await agree(model, world, await act(thing, model, world));
      },
      toString: () => `${name}${done}`,
    };
  };
}

function wordOf(thing: unknown): string {
  const { path, text, id } = thing as {
    readonly path?: string;
    readonly text?: string;
    readonly id?: unknown;
  };
  return String(path ?? text ?? id ?? thing);
}

export const living = ({ subscriptions }: Model): readonly Subscription[] =>
  subscriptions.filter(({ isDeleted, user }) => !isDeleted && !user.isDisabled);

/** Moves all open states of some deliveries to one state, keeping their attempts. */
export function openBecome(
  model: Model,
  status: "cancelled",
  isMeant: (delivery: Model["deliveries"][number]) => boolean,
): Changes {
  return {
    states: new Map(
      model.deliveries
        .filter((one) => isOpen(one) && isMeant(one))
        .map((one) => [one, [{ status, attempt: one.attempt }]]),
    ),
  };
}

/**
 * Sends the held deliveries of a subscription one after the other: with 410, none or some of them.
 */
export function heldGo(model: Model, isMeant: (one: Subscription) => boolean): Changes {
  const held = model.deliveries.filter(
    ({ status, subscription }) => status === "held" && isMeant(subscription),
  );
  return { states: attemptsOf(held) };
}

export function attemptsOf(going: readonly Delivery[]): ReadonlyMap<Delivery, readonly State[]> {
  return new Map(
    going.map((one) => [
      one,
      afterAttempt(one, going.filter(({ subscription }) => subscription === one.subscription).length === 1),
    ]),
  );
}
