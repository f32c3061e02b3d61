import { codeOf } from "../../kit/errors.ts";
import { LookupError, TargetRefusedError } from "../../outbound/outbound-errors.ts";
import type { AttemptError } from "../delivery.ts";

/** The cause of a failed attempt, with one line about it for the owner of the subscription. */
export interface Failure {
  readonly error: AttemptError;
  readonly detail: string;
}

/** Readable reasons by code of a look-up; other codes are shown as they are. */
const lookupReasons: Readonly<Record<string, string>> = {
  ENOTFOUND: "there is no such name",
  ENODATA: "it has no address",
  EBADNAME: "it is no valid name",
  ETIMEOUT: "no name server answered in time",
  ECONNREFUSED: "no name server can be reached",
  ESERVFAIL: "the name servers responsible for it failed",
  EREFUSED: "the name servers refused to answer",
};

const unreachableCodes = [
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EHOSTDOWN",
  "ENETDOWN",
  "EADDRNOTAVAIL",
  "EACCES",
  "EPERM",
];
const resetCodes = ["ECONNRESET", "ECONNABORTED", "EPIPE", "ERR_STREAM_PREMATURE_CLOSE"];

/**
 * Codes of Node and OpenSSL for a failed handshake or certificate (Node docs, "TLS: X509
 * certificate error codes").
 */
const tlsCode =
  /^(EPROTO$|ERR_TLS_|ERR_SSL_|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|ERROR_IN_|INVALID_|PATH_LENGTH_|HOSTNAME_)/;

/** Codes of a name without an address. */
const withoutAddress = ["ENOTFOUND", "ENODATA"];
/** Hosts whose name shows nothing of a network. */
const isLocal = /^(?:.+\.)?localhost(?::\d+)?$/;

/**
 * Returns the cause of a connection error. Pure. Shows the text of the error only for refused
 * targets. Other texts can hold anything from the receiver, a resolver or OpenSSL.
 *
 * @param host Host and port of the receiver.
 * @param isAdmin Whether the owner of the subscription has the admin flag. Others could find the
 *   names of the operator's network, a word list at a time: one failure covers unknown names and
 *   those with refused addresses.
 */
export function failureOf({
  error,
  host,
  isAdmin,
}: {
  readonly error: unknown;
  readonly host: string;
  readonly isAdmin: boolean;
}): Failure {
  const origin = rootOf(error);
  const isUnknown = origin instanceof LookupError && withoutAddress.includes(origin.code);
  if (!isAdmin && !isLocal.test(host) && (isUnknown || origin instanceof TargetRefusedError))
    return {
      error: "dns",
      detail: `The name of ${host} has no address that webhooks may be sent to: there is no such name, or its addresses are outside the allowed networks.`,
    };
  if (origin instanceof TargetRefusedError) return { error: "blocked", detail: origin.message };
  if (origin instanceof LookupError) return lookupFailure(origin, host);
  const code = codeOf(origin) ?? "no code";
  if (code === "ECONNREFUSED")
    return { error: "refused", detail: `${host} refused the connection (${code}).` };
  if (code === "ETIMEDOUT")
    return { error: "timeout", detail: `${host} could not be connected to in time (${code}).` };
  if (resetCodes.includes(code))
    return {
      error: "reset",
      detail: `${host} closed the connection before the answer was complete (${code}).`,
    };
  if (unreachableCodes.includes(code))
    return { error: "unreachable", detail: `${host} cannot be reached (${code}).` };
  if (tlsCode.test(code))
    return { error: "tls", detail: `No trusted TLS connection to ${host} could be made (${code}).` };
  if (/^(HPE_|ERR_)/.test(code))
    return { error: "protocol", detail: `${host} did not answer in valid HTTP (${code}).` };
  return { error: "unreachable", detail: `The connection to ${host} failed (${code}).` };
}

function lookupFailure({ code }: LookupError, host: string): Failure {
  const reason = lookupReasons[code];
  const why = reason === undefined ? "" : `: ${reason}`;
  return { error: "dns", detail: `The name of ${host} could not be resolved${why} (${code}).` };
}

/**
 * Returns the error that matters. With several addresses, Node wraps one error for each. The first
 * error that came from a host counts, rather than this machine's lack of IPv6.
 */
function rootOf(error: unknown): unknown {
  if (error instanceof AggregateError && error.errors.length > 0) {
    const errors = error.errors as readonly unknown[];
    return rootOf(errors.find((item) => !unreachableCodes.includes(codeOf(item) ?? "")) ?? errors[0]);
  }
  return error instanceof Error && error.cause instanceof Error ? rootOf(error.cause) : error;
}
