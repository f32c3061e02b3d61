/**
 * The record of one event for its filters, in the form of the resource's transform. It has a cache
 * that several conditions share.
 */
export interface JudgedRecord {
  readonly data: unknown;
  /** Cached results, by the path and the conversion. */
  readonly kept: Map<string, unknown>;
  /** Steps that did not suffice for other results. */
  readonly refused: Map<string, number>;
  /** Steps that the results took, which are at least the number of their characters and items. */
  keptSteps: number;
}

export function createJudgedRecord(data: unknown): JudgedRecord {
  return { data, kept: new Map(), refused: new Map(), keptSteps: 0 };
}

/**
 * The remaining steps of an evaluation. A step is the check of one character, and takes about 3 ns.
 * A longer operation counts as several steps.
 */
export interface Steps {
  left: number;
}

export interface FilterEvaluation {
  readonly record: JudgedRecord;
  readonly steps: Steps;
}

/** The error that `spend` throws. It has no stack, because many evaluations may end with it. */
export const outOfSteps = new Error("The filter takes too many steps.");

/**
 * Spends steps before they are done.
 *
 * @throws `outOfSteps` when fewer are left. The remaining steps stay for conditions that take
 *   fewer.
 */
export function spend(steps: Steps, count: number): void {
  if (count > steps.left) throw outOfSteps;
  steps.left -= count;
}

/**
 * Spends steps of work whose end is unknown. When fewer are left, it spends them all, since the
 * work done so far is lost.
 *
 * @throws `outOfSteps` when fewer are left.
 */
export function spendOrDrain(steps: Steps, count: number): void {
  if (count > steps.left) steps.left = 0;
  spend(steps, count);
}

/** Limit of the memory of a record's cache: 8 MB of lowered text at most. */
const mostKept = 8_000_000;

/**
 * Returns a value from the record's cache, or computes and caches it for other conditions.
 *
 * @throws `outOfSteps` when that takes more steps than are left.
 */
export function memoized<T>({ record, steps }: FilterEvaluation, key: string, make: () => T): T {
  const known = record.kept.get(key);
  if (known !== undefined) return known as T;
  const before = steps.left;
  if (before <= (record.refused.get(key) ?? -1)) throw outOfSteps;
  try {
    const made = make();
    const keptSteps = record.keptSteps + before - steps.left;
    if (keptSteps > mostKept) return made;
    record.kept.set(key, made);
    record.keptSteps = keptSteps;
    return made;
  } catch (error) {
    if (error === outOfSteps) record.refused.set(key, before);
    throw error;
  }
}
