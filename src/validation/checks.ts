import type { LookupRule, MakeCheck, TestName } from "./check.ts";
import { choiceChecks } from "./choice.ts";
import { dateChecks } from "./date.ts";
import { formatChecks } from "./format.ts";
import { presenceChecks } from "./presence.ts";
import { sizeChecks } from "./size.ts";
import { textChecks } from "./text.ts";
import { typeChecks } from "./types.ts";

/** The check of every rule that needs no database. */
export const checks: Readonly<Record<Exclude<TestName, LookupRule>, MakeCheck>> = {
  ...presenceChecks,
  ...typeChecks,
  ...sizeChecks,
  ...formatChecks,
  ...textChecks,
  ...choiceChecks,
  ...dateChecks,
};
