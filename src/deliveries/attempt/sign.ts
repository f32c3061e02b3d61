import { createHmac, type BinaryToTextEncoding } from "node:crypto";
import type { Signing } from "../../subscriptions/signing.ts";

/**
 * Returns the headers of one delivery request (docs/webhooks.md, "The delivery request"). Pure.
 *
 * @param signing The receiver's own headers, none of which has the name of a header set here, and
 *   the secrets.
 * @param body The exact bytes that are sent, in parts; the signatures cover all of them in order.
 * @param sentAt Time of the attempt, which `webhook-signature` covers.
 */
export function signedHeaders({
  signing: { secrets, headers },
  body,
  eventUuid,
  uuid,
  sentAt,
}: {
  readonly signing: Signing;
  readonly body: readonly Uint8Array[];
  readonly eventUuid: string;
  readonly uuid: string;
  readonly sentAt: Date;
}): Record<string, string> {
  const [newest = "", previous] = secrets;
  const timestamp = String(Math.floor(sentAt.getTime() / 1000));
  const head = Buffer.from(`${uuid}.${timestamp}.`);
  const versions = secrets.map((secret) => `v1,${hmac(secret, [head, ...body], "base64")}`);
  return {
    ...headers,
    "Content-Type": "application/json",
    "X-Service-Signature": `sha256=${hmac(newest, body, "hex")}`,
    ...(previous !== undefined && {
      "X-Service-Signature-Previous": `sha256=${hmac(previous, body, "hex")}`,
    }),
    "X-Service-Event": eventUuid,
    "X-Service-Delivery": uuid,
    "User-Agent": "Service-Webhook/1.0",
    "webhook-id": uuid,
    "webhook-timestamp": timestamp,
    "webhook-signature": versions.join(" "),
  };
}

function hmac(secret: string, parts: readonly Uint8Array[], encoding: BinaryToTextEncoding): string {
  const signature = createHmac("sha256", secret);
  for (const part of parts) signature.update(part);
  return signature.digest(encoding);
}
