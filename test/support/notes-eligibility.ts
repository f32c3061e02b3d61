import type { AdminRule } from "../../src/mapping/definition.ts";
import type { Eligibility } from "../../src/subscriptions/eligibility.ts";
import { definition, definitionsOf } from "./definitions.ts";
import { eligibilityOf } from "./eligibility.ts";

/** Eligibility of notes: their owners, and the admins by this rule. */
export function notesEligibility(isAdmin: AdminRule = { kind: "nobody" }): Eligibility {
  const definitions = definitionsOf(definition({ name: "notes", fields: [], isAdmin }));
  return eligibilityOf(definitions);
}
