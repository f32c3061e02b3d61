import { createHmac, timingSafeEqual } from "node:crypto";

/**
 * Tells whether a delivery is genuine: signed with the secret, and at most so many seconds old.
 * `secret`: "sec_…"; `headers`: names in lower case; `body`: the bytes as they came, not parsed yet.
 */
export function isGenuine(secret, headers, body, tolerance = 300) {
  if (!secret) throw new Error("The secret of the webhook is missing.");
  const id = headers["webhook-id"] ?? "";
  const timestamp = headers["webhook-timestamp"] ?? "";
  if (!/^[0-9]{1,12}$/.test(timestamp)) return false;
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > tolerance) return false;

  const hmac = createHmac("sha256", secret).update(`${id}.${timestamp}.`).update(body);
  const expected = Buffer.from(`v1,${hmac.digest("base64")}`);
  // After a rotation there are several, one for each secret that is still valid.
  return (headers["webhook-signature"] ?? "").split(" ").some((signature) => {
    const given = Buffer.from(signature);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}
