import type { JSX, ReactNode } from "react";
import "./badge.css";

export type Tone = "neutral" | "good" | "warn" | "bad" | "info" | "accent";

export function Badge({
  tone = "neutral",
  hasDot = false,
  children,
}: {
  readonly tone?: Tone;
  readonly hasDot?: boolean;
  readonly children: ReactNode;
}): JSX.Element {
  return <span className={`badge ${tone}${hasDot ? " dot" : ""}`}>{children}</span>;
}

/**
 * The tone of each state of the API and of the stream of events. A state that is not listed is
 * neutral.
 */
const tones: Readonly<Record<string, Tone>> = {
  delivered: "good",
  active: "good",
  done: "good",
  healthy: "good",
  live: "good",
  pending: "info",
  running: "info",
  retrying: "warn",
  held: "warn",
  paused: "warn",
  off: "warn",
  waiting: "warn",
  "connecting again": "warn",
  failing: "bad",
  failed: "bad",
  gone: "bad",
  "not live": "bad",
  on_create: "good",
  on_update: "info",
  on_delete: "bad",
};

/** Shows the word of a state in its tone. */
export function StatusBadge({ status }: { readonly status: string }): JSX.Element {
  return (
    <Badge tone={tones[status] ?? "neutral"} hasDot>
      {status}
    </Badge>
  );
}

const verbs: Readonly<Record<string, string>> = {
  on_create: "created",
  on_update: "updated",
  on_delete: "deleted",
};

/** Shows the sentence of a state, in its colour. */
export function Outcome({
  status,
  children,
}: {
  readonly status: string;
  readonly children: ReactNode;
}): JSX.Element {
  return (
    <p className={`outcome ${tones[status] ?? "neutral"} break`} role="status">
      {children}
    </p>
  );
}

/** Shows a trigger as a verb; other words unchanged. */
export function TriggerBadge({ trigger }: { readonly trigger: string }): JSX.Element {
  return <Badge tone={tones[trigger] ?? "neutral"}>{verbs[trigger] ?? trigger}</Badge>;
}

/** Shows several triggers beside each other. */
export function TriggerBadges({ triggers }: { readonly triggers: readonly string[] }): JSX.Element {
  if (triggers.length === 0) return <span className="muted">none</span>;
  return (
    <span className="row">
      {triggers.map((trigger) => (
        <TriggerBadge key={trigger} trigger={trigger} />
      ))}
    </span>
  );
}
