import type { Block, Comparison } from "./compare.ts";
import { fixed, markdownTable, prose, ratioText, sumOf, type Row } from "./markdown.ts";
import { medianOf } from "./numbers.ts";
import type { Operation, OperationResults } from "./operations.ts";
import type { RequestResults } from "./requests.ts";
import type { Statement, StatementCount } from "./statements.ts";

export function requestReport({
  requests,
  operations,
}: {
  readonly requests: RequestResults | undefined;
  readonly operations: OperationResults | undefined;
}): string {
  return [
    "## Requests",
    ...(requests === undefined ? [] : [comparisonReport(requests)]),
    ...(operations === undefined ? [] : [operationReport(operations)]),
  ].join("\n\n");
}

function comparisonReport({ comparisons, access, logging }: RequestResults): string {
  return [
    prose(
      "Beside a server that is written by hand with Koa and pg, for the same two tables: 16 connections, blocks in turns. Ratios are `svc api` by the other: the median, the least and the most of the pairs. CPU is of one request.",
    ),
    markdownTable(
      [
        "Request",
        "ratio of requests/s",
        "requests/s",
        "by hand",
        "p99 ms",
        "by hand",
        "CPU µs",
        "by hand",
        "ratio of CPU",
        "PostgreSQL µs",
        "by hand",
        "others, µs",
      ],
      comparisons.map(comparisonRow),
    ),
    prose(
      "The service beside itself, with a rule of access or a log line and without. The rule is that of a team: `{ project: { members: { some: { user_id: $user.id } } } }`.",
    ),
    markdownTable(
      [
        "Request",
        "ratio of requests/s",
        "requests/s",
        "without",
        "p99 ms",
        "without",
        "CPU µs",
        "without",
        "ratio of CPU",
        "PostgreSQL µs",
        "without",
        "others, µs",
      ],
      [...access, logging].map(comparisonRow),
    ),
  ].join("\n\n");
}

function comparisonRow({ name, blocks, throughput, cpu }: Comparison): Row {
  const middle = (side: 0 | 1, read: (block: Block) => number): number =>
    medianOf(blocks.map((pair) => read(pair[side])));
  const both = (read: (block: Block) => number, digits = 0): readonly string[] => [
    fixed(middle(0, read), digits),
    fixed(middle(1, read), digits),
  ];
  const others = [...new Set(blocks.flatMap(([one]) => Object.keys(one.otherMicros)))].map(
    (who) => `${who} ${fixed(middle(0, ({ otherMicros }) => otherMicros[who] ?? Number.NaN))}`,
  );
  return [
    name,
    ratioText(throughput),
    ...both(({ requestsPerSecond }) => requestsPerSecond),
    ...both(({ p99Ms }) => p99Ms, 1),
    ...both(({ cpuMicros }) => cpuMicros),
    ratioText(cpu),
    ...both(({ postgresMicros }) => postgresMicros),
    others.join(", "),
  ];
}

function operationReport({ operations, captured, uncaptured }: OperationResults): string {
  return [
    prose(
      "What one request costs by itself, by one client, with its event published and fanned out, without a subscriber. One client waits for each answer, so CPU is more than under load. Statements within triggers are not counted.",
    ),
    markdownTable(
      [
        "Operation",
        "statements: API",
        "relay",
        "dispatcher",
        "BEGIN and COMMIT",
        "CPU µs: `svc api`",
        "PostgreSQL",
        "WAL bytes",
      ],
      operations.map(operationRow),
    ),
    prose(
      "What a create costs PostgreSQL, by statement, with the trigger that captures it and without. Times of a statement include those of the triggers within it.",
    ),
    markdownTable(
      ["Statement", "by", "calls", "µs", "WAL bytes", "without capture: calls", "µs", "WAL bytes"],
      createRows(captured, uncaptured),
    ),
  ].join("\n\n");
}

function operationRow({ name, statements, apiMicros, postgresMicros, walBytes }: Operation): Row {
  return [
    name,
    fixed(statements.api, 1),
    fixed(statements.relay, 1),
    fixed(statements.dispatcher, 1),
    fixed(statements.transaction, 1),
    fixed(apiMicros),
    fixed(postgresMicros),
    fixed(walBytes),
  ];
}

/** Statements with fewer calls per create are background work, independent of creates. */
const fewestCalls = 0.02;

const keyOf = ({ role, isTop, text }: Statement): string => `${role} ${isTop} ${text}`;

function createRows(captured: StatementCount, uncaptured: StatementCount): readonly Row[] {
  const without = new Map(uncaptured.statements.map((one) => [keyOf(one), one]));
  const rows = captured.statements
    .filter(({ calls }) => calls / captured.units >= fewestCalls)
    .map((one): Row => [
      `\`${shortened(one.text)}\``,
      one.isTop ? senderOf(one) : "within",
      ...costCells([one], captured.units),
      ...costCells(
        [without.get(keyOf(one))].flatMap((other) => other ?? []),
        uncaptured.units,
      ),
    ]);
  return [...rows, ["all of it, upkeep included", "", ...sums(captured), ...sums(uncaptured)]];
}

function sums({ statements, units }: StatementCount): readonly string[] {
  return costCells(
    statements.filter(({ isTop }) => isTop),
    units,
  );
}

function senderOf({ role, isRelay }: Statement): string {
  if (isRelay) return "relay";
  return role === "postgres" ? "API" : role;
}

/** Returns calls, µs and bytes of WAL of several statements together, per create. */
function costCells(statements: readonly Statement[], units: number): readonly string[] {
  const per = (read: (one: Statement) => number): number => sumOf(statements.map(read)) / units;
  return [
    fixed(
      per(({ calls }) => calls),
      2,
    ),
    fixed(per(({ ms }) => ms * 1000)),
    fixed(per(({ walBytes }) => walBytes)),
  ];
}

/** Removes characters that a cell of a table cannot contain. */
function shortened(text: string): string {
  const plain = text.replaceAll("|", "/").replaceAll("`", "").trim();
  return plain.length > 90 ? `${plain.slice(0, 88)} …` : plain;
}
