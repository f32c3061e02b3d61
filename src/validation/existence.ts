import { getOrSet } from "../kit/group-by.ts";
import { isContainer } from "./body-paths.ts";
import type { ReadDate } from "./date-checks.ts";
import type { LookupTest } from "./compile.ts";

/** The question whether a record of `target` has `value` in `column`. */
export interface LookupQuery {
  readonly target: string;
  readonly column: string;
  readonly value: unknown;
  readonly except?: unknown;
  /**
   * Whether the record is looked up as the target of a reference. Then only permitted records
   * count.
   */
  readonly isReference?: boolean;
  /** How the value is read where it is looked for among dates. Undefined: as it is. */
  readonly readDate?: ReadDate;
}

/**
 * Limit of the values of one field that are looked up: a request must not cause a flood of queries.
 */
export const maxLookups = 1000;

/**
 * Creates a function that looks up whether a value fulfils the rule. Equal questions of a body
 * share one query.
 */
export function createAsker(
  exists: (query: LookupQuery) => Promise<boolean>,
  ignoreKey: unknown,
): (test: LookupTest, value: unknown) => Promise<boolean> {
  /** Answers by how dates are read: one text may be a different day in each format. */
  const asked = new Map<ReadDate | undefined, Map<string, Promise<boolean>>>();

  function ask({ name, target, column, readDate }: LookupTest, value: unknown): Promise<boolean> {
    const id = JSON.stringify([name, target, column, value]);
    const isUpdate = name === "unique" && ignoreKey !== undefined;
    const answers = getOrSet(asked, readDate, () => new Map<string, Promise<boolean>>());
    return getOrSet(answers, id, () =>
      exists({
        target,
        column,
        value,
        ...(isUpdate ? { except: ignoreKey } : {}),
        isReference: name === "exists",
        ...(readDate && { readDate }),
      }),
    );
  }

  /** Values that may still be looked up for each rule of a field. */
  const left = new Map<LookupTest, number>();

  return async (test, value) => {
    const isWanted = test.name === "exists";
    if (value === null) return !isWanted;
    // No column contains an object or a nested array.
    if (isContainer(value) && !isWanted) return true;
    // An array exists when all its items exist.
    const items: readonly unknown[] = Array.isArray(value) ? value : [value];
    const rest = (left.get(test) ?? maxLookups) - items.length;
    if (rest < 0 || items.some(isContainer)) return false;
    left.set(test, rest);
    const answers = await Promise.all(items.map((item) => ask(test, item)));
    return answers.every((isThere) => isThere === isWanted);
  };
}
