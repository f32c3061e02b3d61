import type { Actor } from "../../src/kit/actor.ts";

/** Actor of changes in tests that are not about the audit trail. */
export const testOperator: Actor = { kind: "operator", name: "ada", source: "ops-1" };
