import { createHmac } from "node:crypto";

/**
 * Returns the headers of one delivery request (docs/webhooks.md, "Signature"). Pure.
 *
 * @param body The exact bytes that are sent, in parts; the signature covers all of them in order.
 */
export function signedHeaders({
  secret,
  body,
  eventUuid,
  deliveryUuid,
}: {
  readonly secret: string;
  readonly body: readonly Uint8Array[];
  readonly eventUuid: string;
  readonly deliveryUuid: string;
}): Record<string, string> {
  const hmac = createHmac("sha256", secret);
  for (const part of body) hmac.update(part);
  return {
    "Content-Type": "application/json",
    "X-Service-Signature": `sha256=${hmac.digest("hex")}`,
    "X-Service-Event": eventUuid,
    "X-Service-Delivery": deliveryUuid,
    "User-Agent": "Service-Webhook/1.0",
  };
}
