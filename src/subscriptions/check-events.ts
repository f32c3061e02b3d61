import type { EventKind } from "../events/event.ts";
import type { FieldErrors } from "../kit/errors.ts";
import { compileRules, validate } from "../validation/validate.ts";
import { messageFor } from "../validation/messages.ts";
import { everyResource } from "./subscription.ts";
import { trimmedText } from "./trimmed-text.ts";

/**
 * Checks the events that a subscription lists against those that its resource has.
 *
 * @returns The errors by field: `events`, or `events.0` for an item.
 */
export async function checkEvents(
  given: unknown,
  resource: string,
  triggersOf: (resource: string) => readonly EventKind[] | undefined,
): Promise<FieldErrors> {
  // The rule `array` also accepts objects.
  if (!Array.isArray(given))
    return { events: [messageFor({ rule: "array", field: "events", sizeKind: "array" })] };
  const events = triggersOf(resource);
  const allowed = events ?? [];
  const rules = compileRules({
    "events.*": ["bail", { in: allowed.length > 0 ? allowed : [""] }, "distinct"],
  });
  const checked = await validate(rules, { events: given }, { lookup: { exists: async () => true } });
  if (checked.kind === "valid") return {};
  const isKnown = (index: number): boolean => allowed.some((one) => one === trimmedText(given[index]));
  return Object.fromEntries(
    Object.entries(checked.errors).map(([name, messages]) =>
      isKnown(Number(name.split(".")[1]))
        ? [name, messages]
        : [name, messages.map((message) => `${message} ${eventsOf(resource, events)}`)],
    ),
  );
}

/**
 * Returns a sentence about the events of the resource, which follows a message about an unknown
 * event.
 */
function eventsOf(resource: string, allowed: readonly string[] | undefined): string {
  if (allowed === undefined) return `The resource ${resource} is not in the mapping files any more.`;
  if (allowed.length === 0)
    return `The resource ${resource} has no events: its mapping file lists no triggers.`;
  return resource === everyResource
    ? `The events of the resources are ${allowed.join(", ")}.`
    : `The events of ${resource} are ${allowed.join(", ")}.`;
}
