import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";

/**
 * Signs the messages of this service. Another publisher on the broker therefore cannot get its own
 * messages delivered under a valid webhook signature.
 */
export interface Seal {
  sign(parts: readonly (string | Uint8Array)[]): string;
  isValid(parts: readonly (string | Uint8Array)[], seal: unknown): boolean;
}

/**
 * Creates an HMAC-SHA-256 seal under a key derived from the secret key. A seal therefore reveals
 * nothing about other uses of that key.
 *
 * @param previous Keys from before a rotation, whose seals are still valid.
 */
export function createSeal(secretKey: Uint8Array, previous: readonly Uint8Array[] = []): Seal {
  const [own, ...others] = [secretKey, ...previous].map((key) =>
    Buffer.from(hkdfSync("sha256", key, "", "svc broker messages", 32)),
  ) as [Buffer, ...Buffer[]];
  return {
    sign: (parts) => digest(own, parts).toString("base64"),
    isValid(parts, seal) {
      if (typeof seal !== "string") return false;
      const given = Buffer.from(seal, "base64");
      return [own, ...others].some(
        (key) => given.length === 32 && timingSafeEqual(digest(key, parts), given),
      );
    },
  };
}

function digest(key: Buffer, parts: readonly (string | Uint8Array)[]): Buffer {
  const hmac = createHmac("sha256", key);
  for (const part of parts) hmac.update(part);
  return hmac.digest();
}
