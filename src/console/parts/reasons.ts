/** What each `error` of an attempt, and each reason of a webhook that is off, means. */
const reasons: Readonly<Record<string, string>> = {
  dns: "Its name could not be resolved.",
  refused: "It refused the connection.",
  unreachable: "No route leads to it.",
  tls: "The handshake or its certificate failed.",
  reset: "It closed the connection before its answer was complete.",
  timeout: "It gave no complete answer in time.",
  protocol: "Its answer was not valid HTTP.",
  blocked: "Its address is outside the networks that may be reached.",
  http: "It answered with another status than 2xx.",
  owner: "Paused by its owner.",
  gone: "It answered 410: it is gone.",
  failing: "Switched off after nothing but failures.",
  user: "Its user is disabled.",
  rate_limit: "It gets no more than its rate limit.",
  breaker: "It gave no answer ten times in a row, and rests.",
  no_slot: "It waits for a free slot.",
  schedule: "It waits for the next attempt.",
};

/** Says a reason in a sentence; an unknown one in its own word. */
export function reasonOf(reason: string | null | undefined): string {
  return reason === null || reason === undefined ? "No reason is known." : (reasons[reason] ?? reason);
}
