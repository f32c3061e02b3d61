import { useState, type JSX } from "react";
import type { Json } from "../api/types.ts";
import { Button } from "./button.tsx";
import "./code.css";

/** Copies a text, and confirms it. */
export function CopyButton({
  text,
  label = "Copy",
  isQuiet = true,
}: {
  readonly text: string;
  readonly label?: string;
  readonly isQuiet?: boolean;
}): JSX.Element {
  const [state, setState] = useState<"ready" | "copied" | "refused">("ready");
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setState("copied");
    } catch {
      // The clipboard is only available with https or on localhost.
      setState("refused");
    }
    setTimeout(() => setState("ready"), 2_000);
  };
  const said = { ready: label, copied: "Copied", refused: "Select it and copy by hand" }[state];
  return (
    <Button
      kind={isQuiet ? "quiet" : "plain"}
      icon={state === "copied" ? "check" : "copy"}
      onPress={() => void copy()}
    >
      <span aria-live="polite">{said}</span>
    </Button>
  );
}

/** Shows a text unchanged, with a button that copies it; `isWhole` breaks its lines. */
export function CodeBlock({
  text,
  label,
  isWhole = false,
}: {
  readonly text: string;
  readonly label: string;
  readonly isWhole?: boolean;
}): JSX.Element {
  return (
    <div className={`code${isWhole ? " whole" : ""}`}>
      <div className="code-copy">
        <CopyButton text={text} />
      </div>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- It scrolls, by keys too. */}
      <pre tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
    </div>
  );
}

export function JsonView({ value, label }: { readonly value: unknown; readonly label: string }): JSX.Element {
  return <CodeBlock text={JSON.stringify(value, null, 2) ?? "undefined"} label={label} />;
}

const mostShown = 400;

/** Cuts a long text, and marks the cut. */
export function shortened(text: string): string {
  if (text.length <= mostShown) return text;
  // Does not cut a surrogate pair in the middle.
  return `${text.slice(0, mostShown).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/**
 * Shows a value of a record in one line: texts unchanged in their own direction, null as a dash,
 * the rest as JSON. `isWhole` shows it in full length.
 */
export function Value({
  value,
  isWhole = false,
}: {
  readonly value: Json | undefined;
  readonly isWhole?: boolean;
}): JSX.Element {
  const cut = isWhole ? (text: string) => text : shortened;
  if (value === null || value === undefined) return <span className="muted">–</span>;
  if (typeof value === "boolean") return <span>{value ? "yes" : "no"}</span>;
  if (typeof value === "number") return <span className="numeric">{value}</span>;
  if (typeof value === "string")
    return value === "" ? <span className="muted">empty</span> : <bdi>{cut(value)}</bdi>;
  return <code>{cut(JSON.stringify(value))}</code>;
}
