import { countsText } from "../markdown.ts";
import { table } from "../report.ts";
import type { Spans } from "./recovery.ts";
import type { ChaosResult } from "./run.ts";

const mostExamples = 10;

/** Formats the result for a terminal. */
export function chaosReportOf(result: ChaosResult): string {
  const { ledger, recoveries, processes, troubles, drainedAfterMs } = result;
  const { changes } = ledger;
  return [
    `Chaos with seed ${result.seed}: ${result.durationMs / 1000} s of faults, at most ${result.ratePerSecond} changes a second`,
    table(
      ["ledger", ""],
      [
        ["changes committed", changes.committed],
        ["  acknowledged to their writer", changes.acknowledged],
        ["  without an answer, found committed", changes.unknown.committed],
        ["changes without an answer, not committed", changes.unknown.not],
        ["changes rolled back or never received", changes.refused],
        ["events", ledger.events],
        ["  of these erased", ledger.erased],
        ["deliveries", countsText(ledger.deliveries)],
        ["  of these removed by retention", ledger.removed],
        ["replays", countsText(ledger.replays)],
        ["  their deliveries", countsText(ledger.replayed)],
        ["due (change and subscription)", ledger.due],
        ["delivered", ledger.delivered],
        ["explained", Object.values(ledger.explained).reduce((sum, count) => sum + count, 0)],
        ["lost", ledger.lost.length],
        ["phantom", ledger.phantom.length],
        ["duplicates (POSTs after a 2xx)", ledger.duplicates],
        ["doubled (under two delivery UUIDs)", ledger.doubled.length],
        ["altered (other bytes the next time)", ledger.altered.length],
        ["broken promises to writers", ledger.broken.length],
        ["drained after", drainedAfterMs === undefined ? "NOT DRAINED" : `${seconds(drainedAfterMs)} s`],
        ["answers of the API", countsText(result.statuses)],
      ],
    ),
    "Seconds to recover, from the end of a fault: flowing, until changes made after it arrive from every source; caught up, until all made from 2 s before it to its end have. In brackets: the longest of those that another fault came into",
    table(
      ["fault", "times", "flowing p50", "max", "caught up p50", "max"],
      recoveries.map(({ kind, count, flowing, caughtUp }) => [
        kind,
        count,
        ...cells(flowing),
        ...cells(caughtUp),
      ]),
    ),
    table(
      ["process", "peak MB", "ended by itself"],
      processes.map(({ name, peakBytes, endings }) => [
        name,
        Math.round(peakBytes / 1024 ** 2),
        endings.length,
      ]),
    ),
    ...examples(
      "explained",
      Object.entries(ledger.explained).map(([reason, count]) => `${count} ${reason}`),
    ),
    ...examples("lost", ledger.lost),
    ...examples("phantom", ledger.phantom),
    ...examples("doubled", ledger.doubled),
    ...examples("altered", ledger.altered),
    ...examples("broken promises", ledger.broken),
    ...examples("deliveries astray", result.strays),
    ...examples("answers that no fault accounts for", result.unexpected),
    ...examples("troubles of the harness", troubles),
    ...examples(
      "what a process wrote before it ended by itself",
      processes.flatMap(({ endings }) => endings),
    ),
    result.isPassed ? "PASSED" : "FAILED",
  ].join("\n\n");
}

/** Formats the ledger as a line for people. */
export function chaosLine({ ledger, drainedAfterMs }: ChaosResult): string {
  const { changes, due, delivered, explained, lost, phantom, duplicates, doubled } = ledger;
  return (
    `${changes.committed} changes, ${due} to deliver: ${delivered} delivered, ` +
    `${Object.values(explained).reduce((sum, count) => sum + count, 0)} explained, ${lost.length} lost, ` +
    `${phantom.length} phantom, ${duplicates} duplicates, ${doubled.length} doubled; ` +
    (drainedAfterMs === undefined ? "not drained" : `drained after ${seconds(drainedAfterMs)} s`)
  );
}

function examples(title: string, lines: readonly string[]): readonly string[] {
  if (lines.length === 0) return [];
  const left = lines.length - mostExamples;
  return [
    [`${title}:`, ...lines.slice(0, mostExamples), ...(left > 0 ? [`and ${left} more`] : [])].join("\n  "),
  ];
}

function cells({ alone, disturbed }: Spans): readonly string[] {
  const longest = disturbed.count === 0 ? "" : ` (${seconds(disturbed.max)})`;
  return [seconds(alone.p50), `${seconds(alone.max)}${longest}`];
}

/** Formats seconds; a dash for an unknown time. */
function seconds(ms: number): string {
  return Number.isFinite(ms) ? (ms / 1000).toFixed(1) : "-";
}
