import type { JSX } from "react";
import { Badge, type Tone } from "../../parts/badge.tsx";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/page.tsx";
import type { Fault, ReloadAnswer } from "./types.ts";

const outcomes = {
  reloaded: { tone: "good", text: "runs on the new configuration" },
  refused: { tone: "bad", text: "keeps the one before" },
  stopped: { tone: "neutral", text: "stopped meanwhile" },
  no_answer: {
    tone: "warn",
    text: "gave no answer in time; it reloads when its database connection is back",
  },
} as const satisfies Readonly<Record<string, { readonly tone: Tone; readonly text: string }>>;

/** Shows the outcome of a reload, with each fault in its file. */
export function ReloadOutcome({
  answer: { faults, is_reloaded: isReloaded, processes },
  onClose,
}: {
  readonly answer: ReloadAnswer;
  readonly onClose: () => void;
}): JSX.Element {
  const count = `${faults.length} ${faults.length === 1 ? "fault" : "faults"}`;
  const title =
    faults.length > 0
      ? `Not reloaded: ${count} in the files`
      : isReloaded
        ? "Reloaded"
        : processes.length === 0
          ? "Not reloaded: no process runs"
          : "Not reloaded everywhere";
  const note =
    faults.length > 0
      ? "Every process goes on with the configuration before. Correct the files, and reload again."
      : processes.length === 0
        ? "The files have no fault. No process has registered; the next start loads them."
        : "The files of this host have no fault.";
  return (
    <div role="status">
      <Card
        title={title}
        note={note}
        actions={<Button kind="quiet" icon="cross" aria-label="Close the outcome" onPress={onClose} />}
      >
        {faults.map((fault) => (
          <FaultNote key={keyOf(fault)} fault={fault} />
        ))}
        {processes.map(({ program, host, pid, outcome, faults: own }) => (
          <div key={`${host} ${pid}`} className="fault">
            <p className="row">
              <Badge tone={outcomes[outcome].tone}>{outcome.replace("_", " ")}</Badge>
              <span className="break">
                {program} on {host}, process {pid}, {outcomes[outcome].text}.
              </span>
            </p>
            {own.map((fault) => (
              <FaultNote key={keyOf(fault)} fault={fault} />
            ))}
          </div>
        ))}
      </Card>
    </div>
  );
}

function keyOf({ file, line, column, message }: Fault): string {
  return [file, line, column, message].join(":");
}

function FaultNote({ fault }: { readonly fault: Fault }): JSX.Element {
  const { file, line, column, message, excerpt } = fault;
  return (
    <div className="fault">
      {file !== null && (
        <p className="fault-place small break">
          {file}:{line}:{column}
        </p>
      )}
      <p className="break">{message}</p>
      {excerpt !== null && (
        <div
          className="fault-lines"
          // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- It scrolls, by keys too.
          tabIndex={0}
          role="region"
          aria-label={`Lines around ${line ?? ""} of ${file ?? ""}`}
        >
          {excerpt.map((shown) => (
            <Line key={shown.line} shown={shown} column={shown.line === line ? column : null} />
          ))}
        </div>
      )}
    </div>
  );
}

function Line({
  shown,
  column,
}: {
  readonly shown: { readonly line: number; readonly text: string };
  /** Column of the fault; null when the fault is in another line. */
  readonly column: number | null;
}): JSX.Element {
  return (
    <>
      <div className={column === null ? undefined : "here"}>
        <span>{shown.line}</span>
        <span>{shown.text}</span>
      </div>
      {column !== null && (
        <div className="caret" aria-hidden="true">
          <span />
          <span>{`${" ".repeat(Math.min(column - 1, 300))}^`}</span>
        </div>
      )}
    </>
  );
}
