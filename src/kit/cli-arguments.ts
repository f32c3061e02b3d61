import { InvalidArgumentError } from "commander";
import { durationMsOf, durationsText } from "./duration.ts";
import { idOf, rowIdOf } from "./ids.ts";

const notAnId = "An id is a positive whole number.";

/** Parses the id of a user or a token. Throws commander's usage error for anything else. */
export const parseId = argument(idOf, notAnId);

/**
 * Parses the id of an event or a delivery, a decimal string. Throws commander's usage error for
 * anything else.
 */
export const parseRowId = argument(rowIdOf, notAnId);

/**
 * Parses `365d`, `12h` or `30m` to milliseconds. Throws commander's usage error for anything else.
 */
export const parseDuration = argument(durationMsOf, durationsText);

/**
 * Parses a UTC time such as `2026-03-28T14:30`, or a duration such as `24h`, which is that long
 * ago. Throws commander's usage error for anything else.
 */
export const parseTime = argument(
  timeOf,
  "Expected a duration such as 24h or 30d, or a time such as 2026-03-28T14:30Z.",
);

/** Parses the limit of the rows of a list. Throws commander's usage error for anything else. */
export const parseCount = argument(
  (text) => (/^[1-9]\d{0,4}$/.test(text) ? Number(text) : undefined),
  "It must be an integer from 1 to 99999.",
);

/**
 * Creates a parser that returns a valid text without the blanks around it.
 *
 * @param faultOf Returns the fault of a text; undefined when it is valid.
 */
export function parseText(faultOf: (text: string) => string | undefined): (text: string) => string {
  return (text) => {
    const fault = faultOf(text.trim());
    if (fault !== undefined) throw new InvalidArgumentError(fault);
    return text.trim();
  };
}

/** Creates a parser of known words with commas between them, in the order of the known words. */
export function parseWords<T extends string>(known: readonly T[]): (text: string) => readonly T[] {
  return argument(
    (text) => {
      const given = text.split(",");
      const areKnown = given.every((one) => known.some((word) => word === one));
      return areKnown ? known.filter((word) => given.includes(word)) : undefined;
    },
    `Allowed choices are ${known.join(", ")}.`,
  );
}

function timeOf(text: string): Date | undefined {
  const ago = durationMsOf(text);
  if (ago !== undefined) return new Date(Date.now() - ago);
  // The time is in UTC unless the text has a zone, so that printed times can be used as input.
  const [, day, time = "T00:00", zone = "Z"] =
    /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)?(Z|[+-]\d\d:\d\d)?$/.exec(text) ?? [];
  const date = new Date(`${day}${time}${zone}`);
  // JavaScript reads the 30th of February as the 2nd of March.
  const isDay = new Date(`${day}T00:00Z`).getUTCDate() === Number(day?.slice(-2));
  return isDay && !Number.isNaN(date.getTime()) ? date : undefined;
}

/**
 * Creates a parser that throws commander's usage error with the message where `read` returns
 * undefined.
 */
export function argument<T>(read: (text: string) => T | undefined, message: string): (text: string) => T {
  return (text) => {
    const value = read(text);
    if (value === undefined) throw new InvalidArgumentError(message);
    return value;
  };
}
