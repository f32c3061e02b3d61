import { settings } from "../../config/settings.ts";
import { messageOf } from "../../kit/errors.ts";
import type { RuleSpecs } from "../../validation/syntax.ts";
import { callCode, scheduleAnswer } from "../code-module.ts";
import { checkSpecs } from "./check-rules.ts";
import type { Draft, Drafts } from "./draft.ts";
import { isObject } from "../../kit/is-object.ts";

/**
 * Calls the exports of a code module that take no request, and reports unusable results. Its rules
 * may have keys in addition to the fields: their values are checked, but not written.
 */
export function checkCode(draft: Draft, drafts: Drafts): void {
  const { code, content } = draft;
  const definition = { name: content.name ?? "", code };
  const report: Draft["report"] = (path, message) => draft.report(["module"], [...path, message].join(": "));
  for (const key of ["createRules", "updateRules"] as const) {
    attempt(report, () => {
      const specs: unknown = callCode({ definition, name: key, call: () => code[key]?.() }) ?? {};
      if (!isRules(specs))
        throw new Error(`${key} of the resource ${definition.name} must answer rules by field`);
      checkSpecs({ draft: { ...draft, report }, drafts, key, specs });
    });
  }
  attempt(report, () =>
    scheduleAnswer(definition, "webhookMaxAttempts", settings["webhooks.maxAttempts"].kind),
  );
  attempt(report, () => scheduleAnswer(definition, "webhookBackoff", settings["webhooks.backoff"].kind));
}

function isRules(given: unknown): given is RuleSpecs {
  return isObject(given);
}

function attempt(report: Draft["report"], work: () => unknown): void {
  try {
    work();
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? `: ${messageOf(error.cause)}` : "";
    report([], `${messageOf(error)}${cause}`);
  }
}
