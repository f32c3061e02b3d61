import { createHmac } from "node:crypto";

/**
 * The headers of one delivery request (specification, 6.2 and 6.3). Pure.
 *
 * @param body The exact bytes that are sent: the signature covers them as they are.
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
  return {
    "Content-Type": "application/json",
    "X-Service-Signature": `sha256=${createHmac("sha256", secret).update(Buffer.concat(body)).digest("hex")}`,
    "X-Service-Event": eventUuid,
    "X-Service-Delivery": deliveryUuid,
    "User-Agent": "Service-Webhook/1.0",
  };
}
