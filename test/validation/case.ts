import type { RuleSpec } from "../../src/validation/syntax.ts";

/** The body lacks the key. */
export const absent = Symbol("absent");

/** One row of the reference's message table (reference/validation.md), for a field `item_code`. */
export interface Case {
  readonly rules: RuleSpec;
  readonly message: string;
  readonly holds: readonly unknown[];
  readonly breaks: readonly unknown[];
  /** Other fields of the body. */
  readonly beside?: Readonly<Record<string, unknown>>;
}
