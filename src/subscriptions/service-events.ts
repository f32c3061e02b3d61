import { serviceEvents, serviceResource, type EventKind } from "../events/event.ts";
import type { Caller } from "../kit/caller.ts";
import type { Definitions } from "../mapping/definition.ts";
import { triggers } from "../mapping/definition.ts";
import { fixedShape } from "../querying/fixed-shape.ts";
import { everyResource } from "./subscription.ts";

/** Fields that filters of operational events may name: the keys of their `data`. */
export const serviceShape = fixedShape([
  { name: "webhook_id", type: "Int" },
  { name: "user_id", type: "Int" },
  { name: "receiver", type: "String" },
  { name: "resource", type: "String" },
  { name: "reason", type: "String", isOptional: true },
  { name: "failing_since", type: "DateTime", isOptional: true },
  { name: "delivery_id", type: "BigInt", isOptional: true },
  { name: "delivery_uuid", type: "Uuid", isOptional: true },
  { name: "event_uuid", type: "Uuid", isOptional: true },
  { name: "attempts", type: "Int", isOptional: true },
]);

/**
 * Returns whether a name means the operational events. A resource with this name takes precedence.
 */
export function isService(definitions: Definitions, resource: string): boolean {
  return resource === serviceResource && !definitions.has(serviceResource);
}

/** Returns whether a name is a resource of the mapping files, or that of operational events. */
export function isRegistered(definitions: Definitions, resource: string): boolean {
  return definitions.has(resource) || resource === serviceResource;
}

/**
 * Returns the events of a resource, or of all resources together; undefined for an unknown
 * resource.
 */
export function eventsOf(definitions: Definitions, resource: string): readonly EventKind[] | undefined {
  if (isService(definitions, resource)) return serviceEvents;
  if (resource !== everyResource) return definitions.get(resource)?.triggers;
  return triggers.filter((one) => [...definitions.values()].some((each) => each.triggers.includes(one)));
}

/** Returns the names that a subscription may have as its resource. */
export function subscribableIn(definitions: Definitions): readonly string[] {
  return [...new Set([...definitions.keys(), everyResource, serviceResource])];
}

/**
 * Returns the reason why the user's webhook would get no operational events; undefined when it
 * would get them.
 */
export function refusalOfService({ isAdmin }: Pick<Caller, "isAdmin">): string | undefined {
  return isAdmin ? undefined : "Only admins get the events of service.";
}
