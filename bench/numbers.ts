/** Latencies in ms. */
export interface Spread {
  readonly count: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

/** Computes percentiles by nearest rank. NaN throughout for no values. */
export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN;
  return { count: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) };
}

/** NaN for no values. */
export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const pair = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  return pair.reduce<number>((sum, value) => sum + (value ?? Number.NaN) / 2, 0);
}

export interface Ratio {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function ratioOf(ratios: readonly number[]): Ratio {
  return { median: medianOf(ratios), min: Math.min(...ratios), max: Math.max(...ratios) };
}
