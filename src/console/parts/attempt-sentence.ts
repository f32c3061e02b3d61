import type { Attempt } from "../api/webhook-types.ts";

const statusNames: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  409: "Conflict",
  410: "Gone",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  422: "Unprocessable Content",
  429: "Too Many Requests",
  500: "Internal Server Error",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};

const failures: Readonly<Record<string, string>> = {
  dns: "The name of the receiver has no address that webhooks may reach. Check the host in the URL.",
  refused: "The receiver refused the connection: nothing listens on that port.",
  unreachable: "There was no way to the receiver: its network or host is down.",
  tls: "No trusted TLS connection came about. Check the receiver's certificate: its name, its end, its issuer.",
  reset: "The receiver closed the connection before its answer was complete.",
  protocol: "What the receiver answered is not valid HTTP. Is it a web server?",
  blocked: "The address is outside the networks that webhooks may reach, so nothing was sent.",
};

/** Returns the outcome of an attempt in a sentence or two, with the remedy for a failure. */
export function sentenceOf(attempt: Attempt): string {
  const { error, status_code: status, duration_ms: ms } = attempt;
  if (error === null) return `The receiver took it with ${nameOf(status ?? 200)} in ${formatMs(ms)}.`;
  if (error === "timeout")
    return `There was no complete answer within ${formatMs(ms)}. ${whereItHung(attempt)}`;
  if (error === "http" && status !== null)
    return `The receiver answered ${nameOf(status)}. ${helpFor(status)}`.trim();
  return failures[error] ?? `It failed: ${error}.`;
}

function nameOf(status: number): string {
  const name = statusNames[status];
  return name === undefined ? String(status) : `${status} ${name}`;
}

function helpFor(status: number): string {
  if (status >= 300 && status < 400) return "Redirects are not followed: give the webhook the final URL.";
  if (status === 401 || status === 403)
    return "It may verify with another secret, or ask for a header of its own.";
  if (status === 404 || status === 405) return "Check the path of the URL.";
  if (status === 410) return "That switches the webhook off.";
  if (status === 429 || status === 503) return "A Retry-After in its answer makes the wait longer.";
  return status >= 500 ? "Its own log says why." : "";
}

function whereItHung({
  dns_ms: dns,
  connect_ms: connect,
  first_byte_ms: firstByte,
  address,
}: Attempt): string {
  if (firstByte !== null) return "It began to answer, and did not end.";
  if (connect !== null || address !== null) return "The receiver was reached, and did not begin to answer.";
  return dns === null ? "" : "Its name was resolved, and no connection came about.";
}

/** Returns a duration for people: "87 ms", "1.4 s". */
export function formatMs(ms: number): string {
  return ms < 1_000 ? `${ms} ms` : `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
}
