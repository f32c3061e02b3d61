import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";

/**
 * A position between pages: the values of the order there, and whether the page lies before it.
 * Clients get it encrypted, since an order may use a column that they may not see.
 */
export interface Position {
  readonly values: readonly (string | null)[];
  readonly isBackwards: boolean;
  /** Whether a record exactly at the position belongs to the page. */
  readonly isInclusive: boolean;
}

/** Encryption of the cursors of clients. */
export interface Cursors {
  /** @param binding Purpose of the cursor: resource, sort, filter, search and user. */
  seal(position: Position, binding: string): string;
  /** Returns undefined for a text that `seal` did not create for this binding. */
  open(text: string, binding: string): Position | undefined;
}

type SealedPosition = [Position["isBackwards"], Position["values"], Position["isInclusive"]];

const algorithm = "aes-256-gcm";
const ivBytes = 12;
const tagBytes = 16;
/** Blanks fill a block, so that its length shows little of a value that the client may not see. */
const blockBytes = 128;

/**
 * Creates the encryption of cursors.
 *
 * @param secret Secret of the service, so that every process can decrypt the cursors of the others.
 * @param previous Secrets from before a rotation, whose cursors are still valid.
 */
export function createCursors(secret: Uint8Array | string, previous: readonly Uint8Array[] = []): Cursors {
  const [own, ...others] = [secret, ...previous].map((one) =>
    createHmac("sha256", one).update("svc cursors").digest(),
  ) as [Buffer, ...Buffer[]];
  return {
    seal(position, binding) {
      const iv = randomBytes(ivBytes);
      const cipher = createCipheriv(algorithm, own, iv).setAAD(Buffer.from(binding));
      const json = Buffer.from(JSON.stringify([position.isBackwards, position.values, position.isInclusive]));
      const padding = Buffer.alloc(-json.length & (blockBytes - 1), " ");
      const sealed = [cipher.update(json), cipher.update(padding), cipher.final()];
      return Buffer.concat([iv, ...sealed, cipher.getAuthTag()]).toString("base64url");
    },
    open(text, binding) {
      const bytes = Buffer.from(text, "base64url");
      if (bytes.length <= ivBytes + tagBytes) return undefined;
      for (const key of [own, ...others]) {
        const position = openWith(key, bytes, binding);
        if (position !== undefined) return position;
      }
      return undefined;
    },
  };
}

function openWith(key: Buffer, bytes: Buffer, binding: string): Position | undefined {
  const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, ivBytes))
    .setAAD(Buffer.from(binding))
    .setAuthTag(bytes.subarray(-tagBytes));
  try {
    const opened = Buffer.concat([decipher.update(bytes.subarray(ivBytes, -tagBytes)), decipher.final()]);
    const [isBackwards, values, isInclusive] = JSON.parse(opened.toString()) as SealedPosition;
    return { isBackwards, values, isInclusive };
  } catch {
    return undefined;
  }
}
