/** Sentences on why a receiver gets no deliveries, by the API's reason. */
const reasons: Readonly<Record<string, string>> = {
  owner: "Paused by its owner.",
  gone: "It answered 410: it is gone.",
  failing: "Switched off after nothing but failures.",
  user: "Its user is disabled.",
  rate_limit: "More comes than its rate limit lets through.",
  no_slot: "All of its slots are taken.",
};

/** Returns a reason as a sentence. The last error of a failing receiver already is a sentence. */
export function reasonOf(reason: string | null): string {
  return reason === null ? "No reason is known." : (reasons[reason] ?? reason);
}
