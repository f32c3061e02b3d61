import type { JSX } from "react";
import { toLocalTime } from "./local-time.ts";
import { createStore } from "./store.ts";

const tickMilliseconds = 10_000;
/** The current time. All components that show an age share its timer. */
const now = createStore(Date.now());
setInterval(() => now.set(Date.now()), tickMilliseconds);

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const ago = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });

const steps: readonly (readonly [unit: Intl.RelativeTimeFormatUnit, seconds: number])[] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];

/** Returns a relative time: "5 min. ago". Beyond 30 days it returns the date. */
function relativeTo(from: number, time: Date): string {
  const seconds = (time.getTime() - from) / 1_000;
  // A time after the last tick only seems to be in the future.
  if (seconds >= 0 && seconds * 1_000 <= tickMilliseconds) return "now";
  if (Math.abs(seconds) > 30 * 86_400) return toLocalTime(time.toISOString())?.replace(/T.*/, "") ?? "";
  const [unit, length] = steps.find(([, step]) => Math.abs(seconds) >= step) ?? ["second", 1];
  return ago.format(Math.trunc(seconds / length), unit);
}

/** Shows a time as an age, with the exact time as its title. `isExact` swaps the two. */
export function Time({
  value,
  isExact = false,
}: {
  readonly value: string | null | undefined;
  readonly isExact?: boolean;
}): JSX.Element {
  const from = now.useValue();
  if (value === null || value === undefined) return <span className="muted">never</span>;
  const time = new Date(value);
  if (Number.isNaN(time.getTime())) return <span>{value}</span>;
  const relative = relativeTo(from, time);
  return (
    <time dateTime={value} title={isExact ? relative : `${exact.format(time)} (${value})`} className="nowrap">
      {isExact ? exact.format(time) : relative}
    </time>
  );
}

/** Returns a moment as people write it; any other text unchanged. */
export function exactText(text: string): string {
  const time = new Date(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text) ? text : Number.NaN);
  return Number.isNaN(time.getTime()) ? text : exact.format(time);
}

/** Returns the seconds from a time to a later one; 0 without the first. */
export function secondsBetween(from: string | null, to: string): number {
  return from === null ? 0 : Math.max(0, (Date.parse(to) - Date.parse(from)) / 1_000);
}

/** Returns a duration in its two largest units: "2 h 5 min". */
export function formatSeconds(total: number): string {
  const seconds = Math.max(0, Math.round(total));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds % 60 === 0 ? `${minutes} min` : `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
