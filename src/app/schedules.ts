import type { Configuration } from "./configuration.ts";
import type { ScheduleOf } from "../deliveries/attempt/schedule.ts";
import { callCode } from "../mapping/code-module.ts";

/** Calls the code modules once, at the start: a fault shows then, and not during a delivery. */
export function createScheduleOf({
  config,
  definitions,
}: Pick<Configuration, "config" | "definitions">): ScheduleOf {
  const { maxAttempts, backoffMs } = config.webhooks;
  const schedules = new Map(
    [...definitions.values()].map((definition) => {
      const backoff =
        callCode({ definition, name: "webhookBackoff", call: () => definition.code.webhookBackoff?.() }) ??
        definition.webhookBackoff;
      const attempts =
        callCode({
          definition,
          name: "webhookMaxAttempts",
          call: () => definition.code.webhookMaxAttempts?.(),
        }) ?? definition.webhookMaxAttempts;
      return [
        definition.name,
        {
          maxAttempts: attempts ?? maxAttempts,
          backoffMs: backoff?.map((seconds) => seconds * 1_000) ?? backoffMs,
        },
      ];
    }),
  );
  return (resource) => schedules.get(resource) ?? { maxAttempts, backoffMs };
}
