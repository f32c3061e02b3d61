import type { JSX } from "react";
import type { Attempt } from "../api/webhook-types.ts";
import { sentenceOf } from "./attempt-sentence.ts";
import { Badge } from "./badge.tsx";
import { CodeBlock } from "./code.tsx";
import { TimingBars } from "./timing-bars.tsx";
import "./attempt.css";

/** Shows one attempt: its outcome, its phases in time, and the answer. */
export function AttemptView({ attempt }: { readonly attempt: Attempt }): JSX.Element {
  return (
    <div className="stack attempt">
      <p className="break">{sentenceOf(attempt)}</p>
      <TimingBars attempt={attempt} />
      <Answer attempt={attempt} />
    </div>
  );
}

/** Shows the status of the answer, or the reason why there is none. */
export function AttemptBadge({ attempt }: { readonly attempt: Attempt }): JSX.Element {
  return (
    <Badge tone={attempt.error === null ? "good" : "bad"} hasDot>
      {attempt.status_code ?? attempt.error ?? "no answer"}
    </Badge>
  );
}

function Answer({ attempt }: { readonly attempt: Attempt }): JSX.Element | null {
  const { response_headers: headers, response_body: body, response_truncated: isCut } = attempt;
  if (attempt.status_code === null) return null;
  return (
    <details className="more">
      <summary>The answer{attempt.address === null ? "" : ` of ${attempt.address}`}</summary>
      <div className="stack">
        <CodeBlock label="Headers of the answer" text={headerLines(headers ?? {})} />
        {body === null || body === "" ? (
          <p className="muted small">{body === null ? "Its body is not kept." : "Its body is empty."}</p>
        ) : (
          <CodeBlock label="Body of the answer" text={body} />
        )}
        {isCut && <p className="muted small">Only the first 16 KiB of it are kept.</p>}
      </div>
    </details>
  );
}

/** Returns headers as the lines of a request or an answer. */
export function headerLines(headers: Readonly<Record<string, string | readonly string[]>>): string {
  const lines = Object.entries(headers).flatMap(([name, values]) =>
    [values].flat().map((value) => `${name}: ${value}`),
  );
  return lines.length === 0 ? "(none)" : lines.join("\n");
}
