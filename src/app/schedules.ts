import type { Configuration } from "./configuration.ts";
import { settings } from "../config/settings.ts";
import type { ScheduleOf } from "../deliveries/attempt/schedule.ts";
import { scheduleAnswer } from "../mapping/code-module.ts";

/**
 * Returns the retry schedules of the resources. Calls the code modules once, at the start: a fault
 * shows then, and not during a delivery.
 *
 * @throws Error that names the resource, when an export throws or returns a value that the setting
 *   may not have.
 */
export function createScheduleOf({
  config,
  definitions,
}: Pick<Configuration, "config" | "definitions">): ScheduleOf {
  const { maxAttempts, backoffMs } = config.webhooks;
  const schedules = new Map(
    [...definitions.values()].map((definition) => {
      const attempts = scheduleAnswer(
        definition,
        "webhookMaxAttempts",
        settings["webhooks.maxAttempts"].kind,
      );
      const waitsMs = scheduleAnswer(definition, "webhookBackoff", settings["webhooks.backoff"].kind);
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
