/** Limit of the length: longer texts are not dates. Keeps hostile input away from the patterns. */
const maxDateLength = 64;

const monthNames = [
  "january",
  "february",
  "march",
  "april",
  "may",
  "june",
  "july",
  "august",
  "september",
  "october",
  "november",
  "december",
];
const weekdayNames = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

const timePart = String.raw`(?:(?:T|\s+)(?<hour>\d{1,2}):(?<minute>\d{2})(?::(?<second>\d{2})(?:[.,](?<fraction>\d{1,9}))?)?\s?(?<zone>Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?)?`;

/**
 * Patterns of unambiguous forms. `3/4/2026` is missing although PHP's strtotime reads it, because
 * countries disagree on the day. A field that needs such a form has a `date_format`.
 */
const shapes = [
  String.raw`(?<year>\d{4})-(?<month>\d{1,2})-(?<day>\d{1,2})`,
  String.raw`(?<year>\d{4})/(?<month>\d{1,2})/(?<day>\d{1,2})`,
  String.raw`(?:(?:sun|mon|tue|wed|thu|fri|sat)[a-z]{0,6},?\s+)?(?<day>\d{1,2})\s(?<name>[a-z]{3,9})\s(?<year>\d{4})`,
  String.raw`(?<name>[a-z]{3,9})\s(?<day>\d{1,2}),?\s(?<year>\d{4})`,
].map((shape) => new RegExp(`^${shape}${timePart}$`, "i"));

type Parts = Readonly<Record<string, string | undefined>>;

/**
 * Parses a calendar date, with or without a time: `2026-03-28`, `2026-03-28T14:30:00.123+02:00`,
 * `2026-03-28 14:30`, `2026/03/28`, `28 March 2026`, `Mar 28, 2026`, `Sat, 28 Mar 2026 14:30:00
 * +0000`. UTC without a zone; drops digits beyond milliseconds.
 *
 * @returns Undefined for anything else, for 30 February, and outside the years 1 to 9999.
 */
export function parseDateText(text: string): Date | undefined {
  if (text.length > maxDateLength) return undefined;
  for (const shape of shapes) {
    const parts = shape.exec(text)?.groups;
    if (parts !== undefined) return toDate(parts);
  }
  return undefined;
}

/**
 * Parses a date of a query string. An unencoded `+` has become a space there, and an offset without
 * a sign has no other meaning.
 */
export function parseAskedDate(text: string): Date | undefined {
  return parseDateText(text) ?? parseDateText(text.replace(/ (\d{2}:?\d{2})$/, "+$1"));
}

const relativeDays: Readonly<Record<string, number>> = { today: 0, tomorrow: 1, yesterday: -1 };
const relativePattern = /^([+-]\d{1,5}) (second|minute|hour|day|week|month|year)s?$/;

/**
 * Resolves the date in a rule's argument: an absolute date, `now`, `today`, `tomorrow`,
 * `yesterday`, or `-18 years`.
 */
export function resolveDate(text: string, now: Date): Date | undefined {
  if (text === "now") return now;
  if (Object.hasOwn(relativeDays, text)) {
    return new Date(
      Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + (relativeDays[text] ?? 0)),
    );
  }
  const [, amount, unit] = relativePattern.exec(text) ?? [];
  return amount === undefined || unit === undefined ? parseDateText(text) : shift(now, Number(amount), unit);
}

function shift(from: Date, amount: number, unit: string): Date {
  const date = new Date(from);
  switch (unit) {
    case "year":
      date.setUTCFullYear(date.getUTCFullYear() + amount);
      return date;
    case "month":
      date.setUTCMonth(date.getUTCMonth() + amount);
      return date;
    default: {
      const seconds: Readonly<Record<string, number>> = {
        second: 1,
        minute: 60,
        hour: 3600,
        day: 86_400,
        week: 604_800,
      };
      return new Date(from.getTime() + amount * (seconds[unit] ?? 0) * 1000);
    }
  }
}

const capitalised = (names: readonly string[], length = 9): string =>
  names.map((name) => (name[0] ?? "").toUpperCase() + name.slice(1, length)).join("|");

/** Patterns of PHP's date letters that can be parsed, as `DateTime::createFromFormat` does. */
const letters: Readonly<Record<string, string>> = {
  d: String.raw`(?<day>\d{2})`,
  j: String.raw`(?<day>[1-9]\d?)`,
  m: String.raw`(?<month>\d{2})`,
  n: String.raw`(?<month>[1-9]\d?)`,
  M: `(?<name>${capitalised(monthNames, 3)})`,
  F: `(?<name>${capitalised(monthNames)})`,
  Y: String.raw`(?<year>\d{4})`,
  y: String.raw`(?<shortYear>\d{2})`,
  D: `(?<weekday>${capitalised(weekdayNames, 3)})`,
  l: `(?<weekday>${capitalised(weekdayNames)})`,
  H: String.raw`(?<hour>\d{2})`,
  G: String.raw`(?<hour>\d|1\d|2\d)`,
  h: String.raw`(?<hour12>0[1-9]|1[0-2])`,
  g: String.raw`(?<hour12>[1-9]|1[0-2])`,
  A: "(?<half>AM|PM)",
  a: "(?<half>am|pm)",
  i: String.raw`(?<minute>\d{2})`,
  s: String.raw`(?<second>\d{2})`,
  v: String.raw`(?<fraction>\d{3})`,
  u: String.raw`(?<fraction>\d{6})`,
  P: String.raw`(?<zone>[+-]\d{2}:\d{2})`,
  p: String.raw`(?<zone>Z|[+-]\d{2}:\d{2})`,
  O: String.raw`(?<zone>[+-]\d{4})`,
  e: String.raw`(?<zone>UTC|GMT|Z|[+-]\d{2}:\d{2})`,
  T: String.raw`(?<zone>UTC|GMT|Z|[+-]\d{2}:\d{2})`,
  U: String.raw`(?<epoch>-?\d{1,11})`,
};

/** Returns whether every letter of a PHP date format is supported and none is repeated. */
export function isPhpFormat(format: string): boolean {
  try {
    return formatPattern(format) !== undefined;
  } catch {
    // The format has two letters for the same part: a RegExp refuses two groups of one name.
    return false;
  }
}

/**
 * Returns a reader for texts in one PHP date format. Missing parts are taken from 1970-01-01 00:00
 * UTC.
 */
export function createDateReader(format: string): (text: string) => Date | undefined {
  const pattern = formatPattern(format);
  return (text) => {
    const parts = text.length > maxDateLength ? undefined : pattern?.exec(text)?.groups;
    return parts === undefined ? undefined : toDate(parts);
  };
}

function formatPattern(format: string): RegExp | undefined {
  let source = "";
  for (let i = 0; i < format.length; i++) {
    const char = format.charAt(i);
    if (char === "\\") source += escape(format.charAt(++i));
    else if (Object.hasOwn(letters, char)) source += letters[char];
    else if (/[a-z]/i.test(char)) return undefined;
    else source += escape(char);
  }
  return new RegExp(`^${source}$`);
}

const escape = (char: string): string => char.replace(/[\\^$.*+?()[\]{}|/]/, String.raw`\$&`);

function toDate(parts: Parts): Date | undefined {
  if (parts["epoch"] !== undefined) return inRange(new Date(Number(parts["epoch"]) * 1000));
  const year = yearOf(parts);
  const month = parts["name"] === undefined ? number(parts["month"], 1) : monthNumber(parts["name"]);
  const day = number(parts["day"], 1);
  const hour = hourOf(parts);
  const minute = number(parts["minute"], 0);
  const second = number(parts["second"], 0);
  const offset = offsetMinutes(parts["zone"]);
  if (offset === undefined || hour > 23 || minute > 59 || second > 59) return undefined;

  const milliseconds = Number((parts["fraction"] ?? "").slice(0, 3).padEnd(3, "0"));
  // Uses setUTCFullYear, because Date.UTC reads the years 0 to 99 as 1900 to 1999.
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  const weekday = parts["weekday"]?.toLowerCase();
  if (weekday !== undefined && weekdayNames[date.getUTCDay()]?.startsWith(weekday) !== true) return undefined;
  date.setUTCHours(hour, minute - offset, second, milliseconds);
  return inRange(date);
}

/**
 * Returns the date; undefined outside the years 1 to 9999, which both PostgreSQL and four-digit ISO
 * years have.
 */
function inRange(date: Date): Date | undefined {
  const year = date.getUTCFullYear();
  return year >= 1 && year <= 9999 ? date : undefined;
}

const number = (text: string | undefined, missing: number): number =>
  text === undefined ? missing : Number(text);

function yearOf({ year, shortYear }: Parts): number {
  if (shortYear === undefined) return number(year, 1970);
  return Number(shortYear) + (Number(shortYear) < 70 ? 2000 : 1900);
}

function hourOf({ hour, hour12, half }: Parts): number {
  if (hour12 === undefined) return number(hour, 0);
  return (Number(hour12) % 12) + (half?.toLowerCase() === "pm" ? 12 : 0);
}

/** Returns the number of a month, 1 to 12, or 0 for another word. `mar` and `march` both count. */
function monthNumber(name: string): number {
  const lower = name.toLowerCase();
  return monthNames.findIndex((month) => month === lower || month.slice(0, 3) === lower) + 1;
}

function offsetMinutes(zone: string | undefined): number | undefined {
  const [, sign, hours, minutes = "0"] = /^([+-])(\d{2}):?(\d{2})?$/.exec(zone ?? "") ?? [];
  if (sign === undefined) return 0;
  if (Number(hours) > 15 || Number(minutes) > 59) return undefined;
  return (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes));
}
