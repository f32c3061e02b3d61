const unitMs = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
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
