/**
 * The record of one event for its filters, as the resource's transform made it, with a cache for
 * several conditions.
 */
export interface JudgedRecord {
  readonly data: unknown;
  /** By the path and what was made of it. */
  readonly kept: Map<string, unknown>;
  /** Steps that did not suffice to make the others. */
  readonly refused: Map<string, number>;
  /** Steps that it took to make them, which are at least their characters and items. */
  keptSteps: number;
}

export function createJudgedRecord(data: unknown): JudgedRecord {
  return { data, kept: new Map(), refused: new Map(), keptSteps: 0 };
}

/**
 * What an evaluation may still do. A step is the look at one character, and takes some 3 ns;
 * whatever takes longer counts as several.
 */
export interface Steps {
  left: number;
}

/** One evaluation of a filter. */
export interface FilterEvaluation {
  readonly record: JudgedRecord;
  readonly steps: Steps;
}

/** What `spend` throws. It has no stack: many evaluations may end by it. */
export const outOfSteps = new Error("The filter takes too many steps.");

/**
 * Takes steps before they are done.
 *
 * @throws `outOfSteps` when fewer are left. Those stay, for conditions that take fewer.
 */
export function spend(steps: Steps, count: number): void {
  if (count > steps.left) throw outOfSteps;
  steps.left -= count;
}

/**
 * Takes steps of work whose end is not known. When fewer are left, it takes them all, since the
 * work done so far is lost.
 *
 * @throws `outOfSteps` when fewer are left.
 */
export function spendOrDrain(steps: Steps, count: number): void {
  if (count > steps.left) steps.left = 0;
  spend(steps, count);
}

/** Bounds the memory of what is kept for a record: 8 MB of lowered text at most. */
const mostKept = 8_000_000;

/**
 * Returns a value from the record's cache, or makes it and caches it for other conditions.
 *
 * @throws `outOfSteps` when that takes more than are left.
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
