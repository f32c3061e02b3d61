import { codeOf } from "./errors.ts";

/** Error codes of certificates that no authority known to this process has signed. */
const untrusted = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

/**
 * Returns the end of an error message that explains how to trust a certificate; else an empty text.
 */
export function trustHint(error: unknown, means: string): string {
  return untrusted.has(codeOf(error) ?? "")
    ? `; give the certificate of its authority as a file: ${means}`
    : "";
}
