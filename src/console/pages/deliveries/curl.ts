import type { DeliveryDetail } from "../../api/webhook-types.ts";

/** Headers that differ between attempts. The commands below compute them. */
const made = /signature|timestamp|^webhook-id$/i;

/**
 * Returns shell commands that send a delivery again, signed. The console does not know the secret,
 * so the user must insert it.
 */
export function curlOf({ url, uuid, request }: Pick<DeliveryDetail, "url" | "uuid" | "request">): string {
  const body = request.body ?? "";
  const others = Object.entries(request.headers).filter(([name]) => !made.test(name));
  return [
    "SECRET='sec_…'  # of the webhook",
    `BODY=${quoted(body)}`,
    "TIME=$(date +%s)",
    `SIGNED=$(printf '%s' "${uuid}.$TIME.$BODY" | openssl dgst -sha256 -hmac "$SECRET" -binary | base64)`,
    `PLAIN=$(printf '%s' "$BODY" | openssl dgst -sha256 -hmac "$SECRET" | sed 's/.*= //')`,
    // Without -g, curl takes brackets and braces for ranges.
    `curl -g -i -X POST ${quoted(url)} \\`,
    ...others.map(([name, value]) => `  -H ${quoted(`${name}: ${value}`)} \\`),
    `  -H 'webhook-id: ${uuid}' -H "webhook-timestamp: $TIME" -H "webhook-signature: v1,$SIGNED" \\`,
    `  -H "X-Service-Signature: sha256=$PLAIN" \\`,
    `  --data-binary "$BODY"`,
  ].join("\n");
}

/** Quotes a text for a shell, so that no character is special. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
