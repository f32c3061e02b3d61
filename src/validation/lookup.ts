import { isContainer } from "./body.ts";
import type { LookupTest } from "./compile.ts";

/** Whether a record of `target` has `value` in `column`. */
export interface LookupQuery {
  readonly target: string;
  readonly column: string;
  readonly value: unknown;
  readonly except?: unknown;
  /** Whether it is looked for to be referred to: then only a record counts that may be. */
  readonly isReference?: boolean;
}

/** More values than this of one field are not looked up: a request must not become a flood of queries. */
export const maxLookups = 1000;

/**
 * One look-up per different question of a body; equal questions share it.
 *
 * @returns Whether the value keeps the rule.
 */
export function createAsker(
  exists: (query: LookupQuery) => Promise<boolean>,
  ignoreKey: unknown,
): (test: LookupTest, value: unknown) => Promise<boolean> {
  const asked = new Map<string, Promise<boolean>>();

  function ask({ name, target, column }: LookupTest, value: unknown): Promise<boolean> {
    const id = JSON.stringify([name, target, column, value]);
    const known = asked.get(id);
    if (known !== undefined) return known;
    const isUpdate = name === "unique" && ignoreKey !== undefined;
    const answer = exists({
      target,
      column,
      value,
      ...(isUpdate ? { except: ignoreKey } : {}),
      isReference: name === "exists",
    });
    asked.set(id, answer);
    return answer;
  }

  return async (test, value) => {
    if (value === null) return test.name === "unique";
    if (!isContainer(value)) return (await ask(test, value)) === (test.name === "exists");
    // An array exists when all its items do; an object, or an array as such, is nobody's value.
    if (test.name === "unique") return true;
    const items: readonly unknown[] = Array.isArray(value) ? value : [value];
    if (items.length > maxLookups || items.some(isContainer)) return false;
    const answers = await Promise.all(items.map((item) => ask(test, item)));
    return answers.every(Boolean);
  };
}
