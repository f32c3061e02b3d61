const unitMs = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
/** Description of the texts that `durationMsOf` accepts, for people. */
export const durationsText =
  "A duration is a whole number and d, h or m (minutes), such as 365d, and at most 36500d.";
const longestMs = 36_500 * unitMs.d;

/**
 * Parses `365d`, `12h` or `30m` to milliseconds. Returns undefined for other text and above 36500
 * days.
 */
export function durationMsOf(text: string): number | undefined {
  const [, count, unit] = /^([1-9]\d{0,8})([mhd])$/.exec(text) ?? [];
  const ms = Number(count) * unitMs[(unit ?? "m") as keyof typeof unitMs];
  return ms <= longestMs ? ms : undefined;
}

/** Writes a duration in the largest unit that it is a multiple of: `7 days`, `90 s`. */
export function durationText(ms: number): string {
  const { d, h } = unitMs;
  if (ms % d === 0) return `${ms / d} day${ms === d ? "" : "s"}`;
  return ms % h === 0 ? `${ms / h} h` : `${ms / 1000} s`;
}
