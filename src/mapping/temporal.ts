import type { Field } from "./definition.ts";

/** Returns whether a field has days or times of day, which the Prisma client returns as dates. */
export function isTemporal({ type }: Pick<Field, "type">): boolean {
  return type === "Date" || type === "Time";
}

const datePattern = /^(\d{4})-(\d\d)-(\d\d)$/;
const timePattern = /^(?:(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?|24:00(?::00)?)$/;

const amount = String.raw`-?\d{1,9}`;
const seconds = String.raw`-?\d{1,9}(?:\.\d{1,6})?S`;
const intervalPattern = new RegExp(
  `^P(?!$)(?:(${amount})Y)?(?:(${amount})M)?(?:(${amount})W)?(?:(${amount})D)?(?:T(?!$)(?:${amount}H)?(?:${amount}M)?(?:${seconds})?)?$`,
);

/** Returns whether a text is a day of the years 1 to 9999: `2026-03-28`. */
export function isDateText(text: string): boolean {
  const [, year = "", month = "", day = ""] = datePattern.exec(text) ?? [];
  if (year === "" || year === "0000") return false;
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.getUTCDate() === Number(day) && Number(month) > 0;
}

/**
 * Returns whether a text is a day that an existing table may contain but no client can send:
 * `infinity`, or a day before the year 1 or after 9999.
 */
export function isBeyondDays(text: string): boolean {
  return /^(?:-?infinity|\d{5,7}-\d\d-\d\d|\d{4}-\d\d-\d\d BC)$/.test(text);
}

/** Returns whether a text is one of the two infinite times. */
export function isInfinite(text: string): boolean {
  return /^-?infinity$/.test(text);
}

/**
 * Returns whether a text is a time of day: `14:30`, `14:30:00.123456`, or `24:00` for the end of
 * the day.
 */
export function isTimeText(text: string): boolean {
  return timePattern.test(text);
}

/**
 * Returns whether a text is an ISO 8601 duration in PostgreSQL's form: `P1Y2M3DT4H5M6.7S`, each
 * part with a sign of its own. PostgreSQL counts months and days in 32 bits, and nine digits of
 * hours fit in its time.
 */
export function isIntervalText(text: string): boolean {
  const found = intervalPattern.exec(text);
  const [years = 0, months = 0, weeks = 0, days = 0] = (found ?? [])
    .slice(1)
    .map((part) => Number(part ?? 0));
  const counted = [years * 12 + months, weeks * 7, weeks * 7 + days];
  return found !== null && counted.every((count) => Math.abs(count) < 2 ** 31);
}

const instantPattern = /^(\d{4,6}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(?:Z|[+]00(?::00)?)?$/;

/**
 * Writes a time in UTC in the only form of ids. It has three digits of the second, as in answers,
 * or six digits where there are more. A time before the year 1 is in PostgreSQL's form, also from
 * its JSON. Any other text, such as `infinity`, stays as it is.
 *
 * @param text Text from PostgreSQL, from its JSON, or ISO 8601.
 */
export function instantText(text: string): string {
  const [, day, time, fraction = ""] = instantPattern.exec(text) ?? [];
  if (day === undefined) return text.replace(/T([\d:.]{1,15})(?:(\+\d\d):00)? BC$/, " $1$2 BC");
  const digits = fraction.replace(/0{1,6}$/, "");
  return `${day}T${time}.${digits.padEnd(digits.length > 3 ? 6 : 3, "0")}+00:00`;
}

/** Returns whether a text is a time in the form of `instantText`. */
export function isInstantText(text: string): boolean {
  if (/^-?infinity$|^\d{4}-\d\d-\d\d [\d:.]+(?:\+00)? BC$/.test(text)) return true;
  // JavaScript requires six digits and a sign for years of more than four digits.
  const read = text.replace(/^\d{5,6}(?=-)/, (year) => `+${year.padStart(6, "0")}`);
  return instantPattern.test(text) && !Number.isNaN(Date.parse(read)) && instantText(text) === text;
}

/**
 * Writes a time like `instantText`, with the microseconds that a Date does not have.
 *
 * @param text Text that the date was parsed from.
 */
export function instantOf(date: Date, text: string): string {
  const [, more = ""] = /:\d\d\.\d{3}(\d{1,3})/.exec(text) ?? [];
  return instantText(isoWithoutSign(date).replace("Z", `${more}Z`));
}

/** Returns a date as text. PostgreSQL reads no sign before a year. */
export function isoWithoutSign(date: Date): string {
  return date.toISOString().replace(/^\+0*/, "");
}

/** Examples for messages. */
export const temporalExamples = { Date: "2026-03-28", Time: "14:30:00", Interval: "P1DT12H" } as const;
