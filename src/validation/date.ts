import { createDateReader, parseDateText, resolveDate } from "./dates.ts";
import { toPath } from "./body-paths.ts";
import { onText, type FieldRules, type MakeCheck } from "./check.ts";
import { textOf } from "./values.ts";

type ReadDate = (value: unknown) => Date | undefined;

/** Returns a reader for the field's `date_format`, or for any form that the rule `date` accepts. */
function readerOf({ dateFormats }: FieldRules): ReadDate {
  const readers = dateFormats.length > 0 ? dateFormats.map(createDateReader) : [parseDateText];
  return (value) => {
    if (typeof value !== "string") return undefined;
    for (const read of readers) {
      const date = read(value);
      if (date !== undefined) return date;
    }
    return undefined;
  };
}

/**
 * Creates `after:2026-01-01`, `after:today` or `after:starts_at`. An unreadable date on either side
 * breaks the rule.
 */
function ordered(holds: (order: number) => boolean): MakeCheck {
  return ([bound = ""], field) => {
    const read = readerOf(field);
    const path = toPath(bound);
    const isField = resolveDate(bound, new Date(0)) === undefined && read(bound) === undefined;
    return (subject) => {
      const other = isField ? subject.at(path) : bound;
      const limit = isField
        ? (read(other) ?? parseDateText(textOf(other) ?? ""))
        : (read(bound) ?? resolveDate(bound, subject.now));
      const date = read(subject.value);
      const isKept = date !== undefined && limit !== undefined && holds(date.getTime() - limit.getTime());
      return isKept ? undefined : { blanks: { date: isField ? subject.nameOf(bound) : bound } };
    };
  };
}

const dateFormat: MakeCheck = (formats) => {
  const readers = formats.map(createDateReader);
  const failure = { blanks: { format: formats[0] ?? "" } };
  return ({ value }) => {
    const text = typeof value === "number" ? String(value) : value;
    return typeof text === "string" && readers.some((read) => read(text) !== undefined) ? undefined : failure;
  };
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
