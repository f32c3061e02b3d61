import Table from "cli-table3";
import type { Block, Comparison, Ratio } from "./compare.ts";
import type { Capacity, FullWay, Steady } from "./deliveries.ts";
import { medianOf, type Spread } from "./numbers.ts";
import type { StatementCount } from "./statements.ts";

/** Everything that one run measured, as it is written to the results. */
export interface Results {
  readonly startedAt: string;
  readonly scale: number;
  readonly machine: Readonly<Record<string, string | number>>;
  readonly versions: Readonly<Record<string, string>>;
  readonly settings: Readonly<Record<string, string | number>>;
  readonly comparisons: readonly Comparison[];
  readonly logging: Comparison;
  readonly requestStatements: Readonly<Record<string, StatementCount>>;
  readonly capacity: Capacity;
  readonly fullWay: FullWay;
  readonly steadyApi: Steady;
  readonly steadySql: Steady;
}

type Row = readonly (string | number)[];

/** The results as tables for a terminal. */
export function reportOf(results: Results): string {
  return [
    linesOf({ ...results.machine, ...results.versions, ...results.settings, scale: results.scale }),
    requestReport(results),
    deliveryReport(results),
  ].join("\n\n");
}

function requestReport(results: Results): string {
  const { capacity, logging } = results;
  return [
    "Requests beside a hand-written Koa + pg server; medians, ratios with the least and the most",
    table(comparisonHead, results.comparisons.flatMap(comparisonRows)),
    "What a log line per request costs (show)",
    table(comparisonHead, comparisonRows(logging)),
    "SQL statements per unit of work",
    table(
      ["", "statements", "relay", "BEGIN and COMMIT"],
      Object.entries({ ...results.requestStatements, delivery: capacity.statements }).map(([name, count]) => [
        name,
        fixed(count.own, 2),
        fixed(count.relay, 2),
        fixed(count.transaction, 2),
      ]),
    ),
  ].join("\n\n");
}

/** The part that concerns deliveries alone. */
export function deliveryReport({
  capacity,
  fullWay,
  steadyApi,
  steadySql,
}: Pick<Results, "capacity" | "fullWay" | "steadyApi" | "steadySql">): string {
  return [
    `Creates by 16 connections, each delivered once: ${fixed(fullWay.perSecond)}/s (${fullWay.count} records, ${fullWay.duplicates} duplicates, ${fixed(fullWay.walBytes)} bytes of WAL each)`,
    amountsTable("CPU µs per create and delivery", fullWay.cpuMicros),
    amountsTable("memory in MB", fullWay.memoryMb, 0),
    `Delivery capacity: ${fixed(capacity.perSecond)} deliveries/s (${capacity.count} events, one subscription, ${capacity.duplicates} duplicates)`,
    amountsTable("CPU µs per delivery", capacity.cpuMicros),
    `From change to receiver at ${steadyApi.ratePerSecond} events/s, in ms`,
    table(
      ["changed by", "events", "p50", "p95", "p99", "max", "duplicates"],
      [steadyRow("API", steadyApi), steadyRow("plain SQL", steadySql)],
    ),
    amountsTable("cores busy at that rate by the API", steadyApi.coresBusy, 3),
    ...(steadyApi.requestMs === undefined
      ? []
      : [`The API's answers meanwhile: ${spreadText(steadyApi.requestMs)}`]),
  ].join("\n\n");
}

const comparisonHead = ["", "", "requests/s", "p99 ms", "CPU µs", "PostgreSQL µs", "settles ms", "ratio"];

function comparisonRows({ name, sides, blocks, throughput, cpu }: Comparison): readonly Row[] {
  const sideRow = (index: 0 | 1): Row => {
    const middle = (read: (block: Block) => number | undefined): number =>
      medianOf(blocks.map((pair) => read(pair[index]) ?? Number.NaN));
    return [
      index === 0 ? name : "",
      sides[index],
      fixed(middle((block) => block.requestsPerSecond)),
      fixed(
        middle((block) => block.p99Ms),
        1,
      ),
      fixed(middle((block) => block.cpuMicros)),
      fixed(middle((block) => block.postgresMicros)),
      fixed(middle((block) => block.settleMs)),
      index === 0 ? `requests/s ${ratioText(throughput)}` : cpu === undefined ? "" : `CPU ${ratioText(cpu)}`,
    ];
  };
  return [sideRow(0), sideRow(1)];
}

function steadyRow(name: string, { count, latencyMs: { p50, p95, p99, max }, duplicates }: Steady): Row {
  return [name, count, ...[p50, p95, p99, max].map((value) => fixed(value, 1)), duplicates];
}

/** One column for each, and their sum. */
function amountsTable(
  title: string,
  amounts: Readonly<Record<string, number | undefined>>,
  digits = 0,
): string {
  const values = Object.values(amounts);
  const row = [fixed(sumOf(values), digits), ...values.map((value) => fixed(value, digits))];
  return table([title, ...Object.keys(amounts)], [row]);
}

/** A table for a terminal; its first column is text, the others are figures. */
export function table(head: readonly string[], rows: readonly Row[]): string {
  const style = { head: [], border: [] };
  const drawn = new Table({
    head: [...head],
    style,
    colAligns: head.map((_, index) => (index === 0 ? "left" : "right")),
  });
  for (const row of rows) drawn.push([...row]);
  return drawn.toString();
}

function linesOf(facts: Readonly<Record<string, string | number>>): string {
  return Object.entries(facts)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");
}

function ratioText({ median, min, max }: Ratio): string {
  return `${fixed(median, 2)} (${fixed(min, 2)}-${fixed(max, 2)})`;
}

function spreadText({ p50, p95, p99, max }: Spread): string {
  return `p50 ${fixed(p50, 1)}, p95 ${fixed(p95, 1)}, p99 ${fixed(p99, 1)}, max ${fixed(max, 1)} ms`;
}

/** Undefined when a part is. */
function sumOf(parts: readonly (number | undefined)[]): number | undefined {
  return parts.reduce((sum, part) => (sum === undefined || part === undefined ? undefined : sum + part), 0);
}

/** A dash for what could not be measured. */
function fixed(value: number | undefined, digits = 0): string {
  return value === undefined || Number.isNaN(value) ? "-" : value.toFixed(digits);
}
