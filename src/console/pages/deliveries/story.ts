import type { DeliveryDetail } from "../../api/webhook-types.ts";
import { sentenceOf } from "../../parts/attempt-sentence.ts";

/** Returns the outcome of a delivery and its reason, in a sentence. */
export function storyOf({
  status,
  attempt,
  max_attempts: most,
  last_error: error,
  attempts,
  next_attempt_at: next,
}: DeliveryDetail): string {
  const last = attempts.at(-1);
  const why = last === undefined || last.error === null ? "" : ` ${sentenceOf(last)}`;
  switch (status) {
    case "delivered":
      return attempt <= 1
        ? "It arrived at the first attempt."
        : `It arrived at attempt ${attempt}, after ${times(attempt - 1)} that failed.`;
    case "failed":
      return last === undefined || attempt < most
        ? `It failed: ${error ?? "no reason is known"}`
        : `It failed: ${most === 1 ? "its only attempt is" : `all ${most} attempts are`} spent.${why}`;
    case "cancelled":
      return `It was cancelled. ${error ?? ""}`.trim();
    case "held":
      return "It is held, since its webhook is off or lets others go first. It goes out when its turn comes.";
    case "retrying":
      return `${capital(times(attempt))} failed; ${most - attempt} more will be made${next === null ? ", the next one when there is a free slot" : ""}.${why}`;
    default:
      return "Its first attempt is under way, or waits for a free slot.";
  }
}

function times(count: number): string {
  return count === 1 ? "one attempt" : `${count} attempts`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
