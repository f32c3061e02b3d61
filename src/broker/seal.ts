import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";

/** Marks what this service has put into the broker: who can publish there cannot have anything delivered under a valid signature. */
export interface Seal {
  sign(parts: readonly (string | Uint8Array)[]): string;
  isValid(parts: readonly (string | Uint8Array)[], seal: unknown): boolean;
}

/**
 * HMAC-SHA-256 under a key derived from the secret key, so that a seal says nothing about what else that key protects.
 *
 * @param previous Keys of before a rotation: what they sealed is still valid.
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
