import type { Configuration } from "./configuration.ts";
import type { Kind } from "../config/kinds.ts";
import { settings } from "../config/settings.ts";
import type { ScheduleOf } from "../deliveries/attempt/schedule.ts";
import { callCode } from "../mapping/code-module.ts";
import type { Definition } from "../mapping/definition.ts";

/**
 * Calls the code modules once, at the start: a fault shows then, and not during a delivery.
 *
 * @throws Error that names the resource, where an export throws or answers what no setting may be.
 */
export function createScheduleOf({
  config,
  definitions,
}: Pick<Configuration, "config" | "definitions">): ScheduleOf {
  const { maxAttempts, backoffMs } = config.webhooks;
  const schedules = new Map(
    [...definitions.values()].map((definition) => {
      const attempts = answerOf(definition, "webhookMaxAttempts", settings["webhooks.maxAttempts"].kind);
      const waitsMs = answerOf(definition, "webhookBackoff", settings["webhooks.backoff"].kind);
      return [
        definition.name,
        {
          maxAttempts: attempts ?? definition.webhookMaxAttempts ?? maxAttempts,
          backoffMs: waitsMs ?? definition.webhookBackoff?.map((seconds) => seconds * 1_000) ?? backoffMs,
        },
      ];
    }),
  );
  return (resource) => schedules.get(resource) ?? { maxAttempts, backoffMs };
}

/** Undefined without that export, and where it answers nothing. */
function answerOf<T>(
  definition: Definition,
  name: "webhookMaxAttempts" | "webhookBackoff",
  kind: Kind<T>,
): T | undefined {
  const given = callCode({ definition, name, call: () => definition.code[name]?.() });
  if (given === undefined) return undefined;
  const value = kind.read(given);
  if (value === undefined)
    throw new Error(`${name} of the resource ${definition.name} must answer ${kind.expected}`);
  return value;
}
