import { countsText, markdownRow, markdownTable, megabytes, type Row } from "../markdown.ts";
import { bulk, dump, hanging, slow } from "./bursts.ts";
import { filters } from "./filters.ts";
import { batches, failing, flood, stream } from "./floods.ts";
import type { HoldUp } from "./hold-up.ts";
import { largeCreate, largeRows, tooLarge } from "./large.ts";
import type { Outcome } from "./measure.ts";
import { phases } from "./phases.ts";
import { lock, poison, subscriptions } from "./resources-held-up.ts";
import { backlog, held } from "./waiting-deliveries.ts";

export const holdUps: readonly HoldUp[] = [
  largeCreate,
  largeRows,
  subscriptions,
  backlog,
  poison,
  lock,
  held,
  slow,
  hanging,
  dump,
  bulk,
  tooLarge,
  filters,
  flood,
  stream,
  failing,
  batches,
];

const head = [
  "Hold-up",
  "of it",
  "p50",
  "p99",
  "came meanwhile",
  "refused",
  "lost",
  "doubled",
  "peak MB: api / dispatcher",
  "longest statement, ms",
  "deadlocks",
];

export function holdUpTable(outcomes: readonly Outcome[]): string {
  return markdownTable(head, outcomes.map(rowOf));
}

export function holdUpRow(outcome: Outcome): string {
  return markdownRow(rowOf(outcome));
}

function rowOf({ name, note, victim, peakBytes, endings, longest, deadlocks }: Outcome): Row {
  const spread = (key: "p50" | "p99"): string =>
    phases.map((phase) => (victim.phases[phase].latencyMs[key] ?? Infinity).toFixed(0)).join(" / ");
  const { cameMeanwhile, made } = victim.phases.during;
  const died = endings.length === 0 ? "" : `, DIED ${endings.length} times`;
  return [
    name,
    note,
    spread("p50"),
    spread("p99"),
    `${cameMeanwhile} of ${made}`,
    countsText(victim.failures) || "0",
    victim.lost,
    victim.doubled,
    `${megabytes(peakBytes.api)} / ${megabytes(peakBytes.dispatcher)}${died}`,
    longest.ms.toFixed(0),
    deadlocks,
  ];
}
