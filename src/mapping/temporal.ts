const datePattern = /^(\d{4})-(\d\d)-(\d\d)$/;
const timePattern = /^(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?$/;

const amount = String.raw`-?\d{1,9}`;
const seconds = String.raw`-?\d{1,9}(?:\.\d{1,6})?S`;
const intervalPattern = new RegExp(
  `^P(?!$)(?:${amount}Y)?(?:${amount}M)?(?:${amount}W)?(?:${amount}D)?(?:T(?!$)(?:${amount}H)?(?:${amount}M)?(?:${seconds})?)?$`,
);

/** Returns whether a text is a day of the years 1 to 9999: `2026-03-28`. */
export function isDateText(text: string): boolean {
  const [, year = "", month = "", day = ""] = datePattern.exec(text) ?? [];
  if (year === "" || year === "0000") return false;
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.getUTCDate() === Number(day) && Number(month) > 0;
}

/** Returns whether a text is a time of day, to the microsecond: `14:30`, `14:30:00.123456`. */
export function isTimeText(text: string): boolean {
  return timePattern.test(text);
}

/**
 * Returns whether a text is a duration of ISO 8601 as PostgreSQL writes them: `P1Y2M3DT4H5M6.7S`,
 * each part with a sign of its own.
 */
export function isIntervalText(text: string): boolean {
  return intervalPattern.test(text);
}

/** The examples that messages give. */
export const temporalExamples = {
  Date: "2026-03-28",
  Time: "14:30:00",
  Interval: "P1DT12H",
} as const;
