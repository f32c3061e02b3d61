import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { randomBase62 } from "../kit/base62.ts";

const secretLength = 48;
const hintLength = 4;

/** Creates a signing secret: `sec_` and 48 random base62 characters, 285 bits. */
export function mintSecret(): string {
  return `sec_${randomBase62(secretLength)}`;
}

/** Returns the part of a secret that may be shown: its last four characters. */
export function secretHint(secret: string): string {
  return secret.slice(-hintLength);
}

/** Returns a secret as it is shown after its creation (docs/webhooks.md, "Subscriptions"). */
export function maskSecret(hint: string): string {
  return `sec_****${hint}`;
}

/**
 * Returns a secret in the format of Standard Webhooks, which their libraries accept as key: the
 * same bytes, in base64.
 */
export function standardSecret(secret: string): string {
  return `whsec_${Buffer.from(secret).toString("base64")}`;
}

/** Encrypts secrets for the database. */
export interface SecretBox {
  /** Encrypts with the current key. */
  encrypt(secret: string): Uint8Array<ArrayBuffer>;
  /**
   * Throws when none of the keys encrypted the bytes, or when they are damaged; the message says
   * which case it is.
   */
  decrypt(sealed: Uint8Array): string;
  /** First bytes of the result of `encrypt`, in hex: version and key id. */
  readonly currentHead: string;
  /** The first bytes for every known key. */
  readonly knownHeads: ReadonlySet<string>;
}

/** First byte of encrypted secrets, so that a later version can use another cipher. */
const version = 1;
const keyIdBytes = 4;
const ivBytes = 12;
const tagBytes = 16;

/** Length of version and key id. */
export const headBytes = 1 + keyIdBytes;

/** Returns the key id in a head such as `currentHead`, as messages show it. */
export function keyIdOf(head: string): string {
  return head.slice(2);
}

/**
 * Creates a box on AES-256-GCM. Format: version (1 byte), key id (4), IV (12), tag (16),
 * ciphertext. Version and key id are authenticated too. The key id selects the key, and shows
 * whether the key is wrong or the bytes are damaged.
 *
 * @param current 32 bytes, like each of `previous`; throws on any other length.
 * @param previous Earlier keys, which only decrypt.
 */
export function createSecretBox(current: Buffer, previous: readonly Buffer[] = []): SecretBox {
  const keys = new Map([...previous, current].map((key) => [headOf(key).toString("hex"), key]));
  const head = headOf(current);
  const currentHead = head.toString("hex");

  return {
    currentHead,
    knownHeads: new Set(keys.keys()),
    encrypt(secret) {
      const iv = randomBytes(ivBytes);
      const cipher = createCipheriv("aes-256-gcm", current, iv, { authTagLength: tagBytes }).setAAD(head);
      const ciphertext = Buffer.concat([cipher.update(secret, "utf8"), cipher.final()]);
      return Buffer.concat([head, iv, cipher.getAuthTag(), ciphertext]);
    },
    decrypt(sealed) {
      const bytes = Buffer.from(sealed);
      const iv = bytes.subarray(headBytes, headBytes + ivBytes);
      const tag = bytes.subarray(headBytes + ivBytes, headBytes + ivBytes + tagBytes);
      if (tag.length !== tagBytes || bytes[0] !== version)
        throw new Error("The webhook secret is damaged: it does not begin as a sealed secret does.");
      const sealedHead = bytes.subarray(0, headBytes);
      const key = keys.get(sealedHead.toString("hex"));
      if (key === undefined)
        throw new Error(
          `The webhook secret was encrypted with another key (id ${keyIdOf(sealedHead.toString("hex"))}) ` +
            `than the secret key in use (id ${keyIdOf(currentHead)}) and the previous ones.`,
        );
      const decipher = createDecipheriv("aes-256-gcm", key, iv, { authTagLength: tagBytes });
      decipher.setAAD(sealedHead).setAuthTag(tag);
      try {
        const ciphertext = bytes.subarray(headBytes + ivBytes + tagBytes);
        return Buffer.concat([decipher.update(ciphertext), decipher.final()]).toString("utf8");
      } catch (error) {
        throw new Error("The webhook secret is damaged: its bytes were changed after it was encrypted.", {
          cause: error,
        });
      }
    },
  };
}

function headOf(key: Buffer): Buffer {
  if (key.length !== 32) throw new Error(`The secret key must have 32 bytes, this one has ${key.length}.`);
  const keyId = createHash("sha256").update(key).digest().subarray(0, keyIdBytes);
  return Buffer.concat([Buffer.of(version), keyId]);
}
