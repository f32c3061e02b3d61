import { settings } from "../../config/settings.ts";
import { messageWithCause } from "../../kit/errors.ts";
import { rulesAnswer, scheduleAnswer } from "../code-module.ts";
import { checkSpecs } from "./check-rules.ts";
import type { Draft, Drafts } from "./draft.ts";

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
      const specs = rulesAnswer(definition, key) ?? {};
      checkSpecs({ draft: { ...draft, report }, drafts, path: [key], given: specs });
    });
  }
  attempt(report, () =>
    scheduleAnswer(definition, "webhookMaxAttempts", settings["webhooks.maxAttempts"].kind),
  );
  attempt(report, () => scheduleAnswer(definition, "webhookBackoff", settings["webhooks.backoff"].kind));
}

function attempt(report: Draft["report"], work: () => unknown): void {
  try {
    work();
  } catch (error) {
    report([], messageWithCause(error));
  }
}
