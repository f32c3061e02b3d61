import { createHash } from "node:crypto";

/**
 * Returns the UUID of the delivery of one event to one subscription: RFC 9562, version 5, with the
 * event's UUID as the namespace. A fan-out that is repeated after a crash of the database gives the
 * receiver the same UUID.
 */
export function deliveryUuidOf(eventUuid: string, subscriptionId: number): string {
  const hash = createHash("sha1")
    .update(Buffer.from(eventUuid.replaceAll("-", ""), "hex"))
    .update(`subscription ${subscriptionId}`)
    .digest()
    .subarray(0, 16);
  hash[6] = ((hash[6] ?? 0) & 0x0f) | 0x50;
  hash[8] = ((hash[8] ?? 0) & 0x3f) | 0x80;
  const hex = hash.toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
