import type { EventEnvelope } from "../events/event.ts";
import type { Caller } from "../users/caller.ts";

/**
 * Whether a subscription gets an event: it is active, names the resource, lists the trigger, and its user is not
 * disabled and may see the record, as the owner when the event happened or as an admin for the resource (contract, section 4).
 */
export function matches(
  subscription: { readonly resource: string; readonly events: readonly string[]; readonly isActive: boolean },
  event: Pick<EventEnvelope, "resource" | "event" | "owner_id">,
  user: Caller & { readonly isDisabled: boolean },
  isAdminFor: (resource: string, user: Caller) => boolean,
): boolean {
  return (
    subscription.isActive &&
    subscription.resource === event.resource &&
    subscription.events.includes(event.event) &&
    !user.isDisabled &&
    (event.owner_id === String(user.id) || isAdminFor(event.resource, user))
  );
}
