import { createDateReader, parseDateText, resolveDate } from "./dates.ts";
import { toPath } from "./body-paths.ts";
import { onText, type FieldRules, type MakeCheck } from "./check.ts";
import { textOf } from "./values.ts";

/** Returns undefined for a value that is no date. */
export type ReadDate = (value: unknown) => Date | undefined;

/** Returns a reader for the formats of `date_format`. A number counts as its digits. */
export function readerOfFormats(formats: readonly string[]): ReadDate {
  const readers = formats.map(createDateReader);
  return (value) => {
    const text = typeof value === "number" ? String(value) : value;
    if (typeof text !== "string") return undefined;
    for (const read of readers) {
      const date = read(text);
      if (date !== undefined) return date;
    }
    return undefined;
  };
}

/** Returns a reader for the field's `date_format`, or for any form that the rule `date` accepts. */
function readerOf({ dateFormats }: FieldRules): ReadDate {
  if (dateFormats.length > 0) return readerOfFormats(dateFormats);
  return (value) => (typeof value === "string" ? parseDateText(value) : undefined);
}

/**
 * Creates `after:2026-01-01`, `after:today` or `after:starts_at`. An unreadable date on either side
 * breaks the rule. Every date is after a field that is absent or null, and no date before it. With
 * `date_format` such a field breaks no rule, as in Laravel.
 */
function ordered(holds: (order: number) => boolean): MakeCheck {
  return ([bound = ""], field) => {
    const read = readerOf(field);
    const path = toPath(bound);
    const fixed = read(bound);
    const isField = resolveDate(bound, new Date(0)) === undefined && fixed === undefined;
    return (subject) => {
      const other = isField ? subject.at(path) : bound;
      const limit = isField
        ? (read(other) ?? parseDateText(textOf(other) ?? ""))
        : (fixed ?? resolveDate(bound, subject.now));
      const date = read(subject.value);
      const isOpen = isField && (other === undefined || other === null);
      const isKept =
        date !== undefined &&
        (isOpen
          ? field.dateFormats.length > 0 || holds(1)
          : limit !== undefined && holds(date.getTime() - limit.getTime()));
      return isKept ? undefined : { blanks: { date: isField ? subject.nameOf(bound) : bound } };
    };
  };
}

const dateFormat: MakeCheck = (formats) => {
  const read = readerOfFormats(formats);
  const failure = { blanks: { format: formats[0] ?? "" } };
  return ({ value }) => (read(value) === undefined ? failure : undefined);
};

/** The checks of rules on dates. */
export const dateChecks = {
  date: onText((text) => parseDateText(text) !== undefined),
  date_format: dateFormat,
  date_equals: ordered((order) => order === 0),
  after: ordered((order) => order > 0),
  after_or_equal: ordered((order) => order >= 0),
  before: ordered((order) => order < 0),
  before_or_equal: ordered((order) => order <= 0),
} satisfies Record<string, MakeCheck>;
