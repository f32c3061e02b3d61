import type { Webhook } from "../../api/webhook-types.ts";

interface Health {
  /** A word of `StatusBadge`. */
  readonly status: "healthy" | "failing" | "paused" | "gone" | "off" | "new";
  readonly sentence: string;
  /** The time that the sentence is about; null without one. */
  readonly since: string | null;
}

/** Returns the health of a webhook, as a word and a sentence. */
export function healthOf(webhook: Webhook): Health {
  const { disabled_at: since, failing_since: failing, last_success_at: success } = webhook;
  if (!webhook.is_active) return offBecause(webhook, since);
  if (failing !== null)
    return { status: "failing", sentence: "Every attempt has failed, the first", since: failing };
  if (success === null) return { status: "new", sentence: "Nothing has been delivered yet.", since: null };
  return { status: "healthy", sentence: "The last delivery was taken", since: success };
}

function offBecause({ disabled_reason: reason }: Webhook, since: string | null): Health {
  switch (reason) {
    case "gone":
      return { status: "gone", sentence: "The receiver answered 410 Gone, which switched it off,", since };
    case "failing":
      return { status: "failing", sentence: "Switched off, after days of failures,", since };
    case "user":
      return { status: "off", sentence: "Its user was disabled", since };
    case "owner":
    case null:
      return { status: "paused", sentence: "Paused, with its deliveries held,", since };
  }
}

/** Returns scheme and host of a receiver, and the rest, which is often a password. */
export function receiverOf(url: string): { readonly host: string; readonly path: string } {
  try {
    const { origin, pathname, search } = new URL(url);
    return { host: origin, path: pathname === "/" && search === "" ? "" : pathname + search };
  } catch {
    return { host: url, path: "" };
  }
}

/** Returns the name of a resource for people. */
export function resourceTitle(resource: string): string {
  if (resource === "*") return "every resource";
  return resource;
}
