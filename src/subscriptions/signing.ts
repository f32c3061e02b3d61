import { getOrSet } from "../kit/group-by.ts";
import type { SecretBox } from "./secret.ts";

/** Encrypted secrets and headers of a subscription's requests, as stored (`SecretBox`). */
export interface SealedSigning {
  readonly encryptedSecret: Uint8Array;
  /** Earlier secrets; null when none of them signs any more. */
  readonly encryptedPrevious: Uint8Array | null;
  /** The receiver's own headers; null without any. */
  readonly encryptedHeaders: Uint8Array | null;
}

/** A secret that was replaced, and signs beside the new one for a while. */
export interface PreviousSecret {
  readonly secret: string;
  /** When the secret stops signing, in ms since 1970. */
  readonly untilMs: number;
}

/** The receiver's own headers, by name. */
export type OwnHeaders = Readonly<Record<string, string>>;

/** Secrets and headers of one attempt, in clear text. */
export interface Signing {
  /** The secrets that are valid now, the newest first. */
  readonly secrets: readonly string[];
  readonly headers: OwnHeaders;
}

/**
 * Most previous secrets. With more rotations within one grace period, the oldest secret stops
 * signing.
 */
const mostPrevious = 5;

/**
 * Decrypts the secrets and headers of an attempt. Throws when a part was encrypted with another
 * key.
 */
export function openSigning(
  box: Pick<SecretBox, "decrypt">,
  { encryptedSecret, encryptedPrevious, encryptedHeaders }: SealedSigning,
  nowMs: number,
): Signing {
  const previous = encryptedPrevious === null ? [] : openPrevious(box, encryptedPrevious);
  const valid = previous.filter(({ untilMs }) => untilMs > nowMs).map(({ secret }) => secret);
  return {
    secrets: [box.decrypt(encryptedSecret), ...valid],
    headers: encryptedHeaders === null ? {} : openHeaders(box, encryptedHeaders),
  };
}

/**
 * Creates the `openSigning` of the dispatcher, which decrypts once what one read of a subscription
 * returned. Its attempts of the next second share the result.
 */
export function createOpenSigning(box: Pick<SecretBox, "decrypt">): (sealed: SealedSigning) => Signing {
  const opened = new WeakMap<SealedSigning, Signing>();
  return (sealed) => getOrSet(opened, sealed, () => openSigning(box, sealed, Date.now()));
}

/** Decrypts headers. Throws when they were encrypted with another key. */
export function openHeaders(box: Pick<SecretBox, "decrypt">, sealed: Uint8Array): OwnHeaders {
  return JSON.parse(box.decrypt(sealed)) as OwnHeaders;
}

/** Encrypts headers. Returns null for no headers, which the database stores as NULL. */
export function sealHeaders(
  box: Pick<SecretBox, "encrypt">,
  headers: OwnHeaders,
): Uint8Array<ArrayBuffer> | null {
  return Object.keys(headers).length === 0 ? null : box.encrypt(JSON.stringify(headers));
}

/** Decrypts earlier secrets, the newest first. Throws when another key encrypted them. */
export function openPrevious(box: Pick<SecretBox, "decrypt">, sealed: Uint8Array): readonly PreviousSecret[] {
  return JSON.parse(box.decrypt(sealed)) as readonly PreviousSecret[];
}

/**
 * Encrypts the previous secrets that continue to sign, the newest first. Returns null without any.
 */
export function sealPrevious(
  box: Pick<SecretBox, "encrypt">,
  previous: readonly PreviousSecret[],
  nowMs: number,
): { readonly sealed: Uint8Array<ArrayBuffer>; readonly until: Date } | null {
  const valid = previous.filter(({ untilMs }) => untilMs > nowMs).slice(0, mostPrevious);
  if (valid.length === 0) return null;
  const until = new Date(Math.max(...valid.map(({ untilMs }) => untilMs)));
  return { sealed: box.encrypt(JSON.stringify(valid)), until };
}
