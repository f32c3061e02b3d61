import { constant, type Arbitrary } from "fast-check";
import { type Command, choice } from "./commands.ts";
import { type Resource } from "./model.ts";
import { changes, changing, crashes, removeInFlight } from "./steps-events.ts";
import { race } from "./steps-races.ts";
import {
  behave,
  disable,
  discard,
  enable,
  holdTooLong,
  pause,
  remove,
  resume,
  rotate,
  subscribes,
} from "./steps-subscriptions.ts";
import { erase, letTimePass, prune, replays, retry } from "./steps-deliveries.ts";

const changeOf = (...wanted: readonly Resource[]): Command =>
  changing(
    0,
    wanted.map((resource) => ({ resource, isPaid: true })),
  );

/** Returns commands for every transition once, including rare ones. */
export function everyTransition(): readonly Command[] {
  return [
    changeOf("notes", "alerts"),
    behave("fail")(0),
    changeOf("notes", "alerts"),
    letTimePass,
    letTimePass,
    changeOf("notes"),
    behave("ok")(0),
    letTimePass,
    behave("fail")(0),
    changeOf("notes"),
    pause(0),
    letTimePass,
    changeOf("alerts", "notes"),
    erase(7),
    behave("ok")(0),
    resume(0),
    pause(0),
    retry(0),
    discard(0),
    resume(0),
    behave("fail")(0),
    changeOf("notes"),
    erase(7),
    behave("ok")(0),
    removeInFlight(0),
    prune,
  ];
}

function of(...made: readonly ((at: number) => Command)[]): readonly Arbitrary<Command>[] {
  return made.map((make) => choice.map(make));
}

/** Returns all commands, weighted by their frequency in practice. */
export function commandsOf({ canCrash }: { readonly canCrash: boolean }): readonly Arbitrary<Command>[] {
  return [
    ...Array.from({ length: 6 }, () => changes),
    ...Array.from({ length: 2 }, () => subscribes),
    ...(canCrash ? [crashes] : []),
    ...of(
      pause,
      pause,
      resume,
      resume,
      discard,
      rotate,
      remove,
      removeInFlight,
      disable,
      enable,
      enable,
      holdTooLong,
    ),
    ...of(race("pause"), race("pause"), race("resume"), race("resume"), race("delete")),
    ...of(race("disable the user of"), race("enable the user of")),
    ...of(behave("ok"), behave("fail"), behave("fail"), behave("gone"), retry, retry, erase),
    ...of(replays(["failed"], "end"), replays(["failed", "delivered", "cancelled", "never"], "end")),
    ...of(replays(["delivered", "never"], "cancel"), replays(["delivered", "cancelled"], "resume")),
    constant(letTimePass),
    constant(letTimePass),
    constant(prune),
  ];
}
