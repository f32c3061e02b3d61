import type { JsonObject } from "../../http/body.ts";
import { refuseFields } from "../../kit/refuse-fields.ts";
import { everyResource } from "../../subscriptions/subscription.ts";
import { parseDateText } from "../../validation/dates.ts";
import type { ReplayedSubscription } from "./find-replayed.ts";
import { replayedStatuses, type AskedReplay } from "./replay.ts";

const fields = ["since", "until", "status", "events", "resource", "dry_run"];

/** A body, and the faults found in its fields so far. */
interface Reading {
  readonly body: JsonObject;
  readonly faults: Record<string, string[]>;
}

/**
 * Reads the request of a replay.
 *
 * @param isResource Returns whether a resource exists.
 * @throws AppError `validation.failed`, with the faults by field.
 */
export function readReplayBody(
  body: JsonObject,
  {
    subscription,
    isResource,
    now,
  }: {
    readonly subscription: Pick<ReplayedSubscription, "resource" | "events">;
    readonly isResource: (name: string) => boolean;
    readonly now: Date;
  },
): { readonly asked: AskedReplay; readonly isDryRun: boolean } {
  const reading: Reading = { body, faults: {} };
  const { faults } = reading;
  const since = readTime(reading, "since");
  const until = readTime(reading, "until") ?? microsOf(now, "");
  if (body["since"] === undefined) faults["since"] = ["The since field is required."];
  if (since !== undefined && since >= until)
    faults["since"] = ["The since field must be a date before until."];
  const status = readWords(reading, "status", replayedStatuses) ?? ["failed"];
  const events = readWords(reading, "events", subscription.events);
  const resource = readResource(reading, subscription, isResource);
  const { dry_run: isDryRun = false } = body;
  if (typeof isDryRun !== "boolean") faults["dry_run"] = ["The dry run field must be true or false."];
  refuseFields(body, fields, faults);
  return {
    asked: {
      // Without it there is a fault.
      since: since as string,
      until,
      status,
      events: events ?? null,
      resource: resource ?? null,
    },
    isDryRun: isDryRun === true,
  };
}

function readTime({ body, faults }: Reading, name: string): string | undefined {
  const given = body[name];
  if (given === undefined) return undefined;
  const text = typeof given === "string" && /^\d{4}-/.test(given) ? given : "";
  const time = parseDateText(text);
  if (time === undefined) faults[name] = [`The ${name} field must be a date, such as 2026-03-28T14:30:00Z.`];
  return time && microsOf(time, text);
}

/**
 * Returns a time with the microseconds of the text from which it was parsed, because events have
 * them too. The format is ISO 8601 in UTC, whose texts sort by time.
 */
function microsOf(time: Date, text: string): string {
  const micros = /[.,]\d{3}(\d{1,3})/.exec(text)?.[1] ?? "";
  return time.toISOString().replace("Z", `${micros.padEnd(3, "0")}Z`);
}

/** Reads a list of known words, each once, in the order of the known words. */
function readWords<T extends string>(
  { body, faults }: Reading,
  name: string,
  known: readonly T[],
): readonly T[] | undefined {
  const given = body[name];
  if (given === undefined) return undefined;
  const words: readonly unknown[] = Array.isArray(given) ? given : [];
  const areKnown = words.every((word) => known.some((one) => one === word));
  if (words.length === 0 || !areKnown)
    faults[name] = [`The ${name} field must list some of ${known.join(", ")}.`];
  return known.filter((one) => words.includes(one));
}

function readResource(
  { body, faults }: Reading,
  { resource }: Pick<ReplayedSubscription, "resource">,
  isResource: (name: string) => boolean,
): string | undefined {
  const given = body["resource"];
  if (given === undefined) return undefined;
  const isOne = typeof given === "string" && isResource(given);
  if (!isOne) faults["resource"] = ["The selected resource is invalid."];
  else if (resource !== everyResource && resource !== given)
    faults["resource"] = [`The resource field must be ${resource}, which the webhook is for.`];
  return isOne ? given : undefined;
}
