import Table from "cli-table3";
import { retentionReport, webhookReport } from "./report-webhooks.ts";
import type { WebhookResults } from "./webhooks/measure.ts";
import type { RetentionResult } from "./webhooks/retention.ts";
import type { BesideByHand } from "./beside-by-hand.ts";
import { besideByHandReport, deliveryReport } from "./report-deliveries.ts";
import { requestReport } from "./report-requests.ts";
import type { DeliveryResults } from "./delivery-runs.ts";
import type { Outcome } from "./hold-ups/measure.ts";
import { holdUpTable } from "./hold-ups/table.ts";
import { fixed, markdownTable, prose, sumOf, type Row } from "./markdown.ts";
import type { OperationResults } from "./operations.ts";
import type { PlanResult } from "../test/support/plan-results.ts";
import { planTable } from "./plans.ts";
import type { RequestResults } from "./requests.ts";
import type { ScaleOut } from "./scale-out.ts";

/**
 * All measurements of one run, in the form of the results. Parts that were not requested are left
 * out.
 */
export interface Results {
  readonly startedAt: string;
  readonly scale: number;
  readonly machine: Readonly<Record<string, string | number>>;
  readonly versions: Readonly<Record<string, string>>;
  readonly settings: Readonly<Record<string, string | number>>;
  readonly requests?: RequestResults;
  readonly operations?: OperationResults;
  readonly deliveries?: DeliveryResults;
  readonly besideByHand?: BesideByHand;
  readonly scaleOut?: readonly ScaleOut[];
  readonly webhooks?: WebhookResults;
  readonly retention?: RetentionResult;
  readonly holdUps?: readonly Outcome[];
  readonly plans?: { readonly events: number; readonly results: readonly PlanResult[] };
}

/** Formats the results as the measured part of docs/measurements.md. */
export function reportOf(results: Results): string {
  const { requests, operations, deliveries, besideByHand, scaleOut, webhooks, retention, holdUps, plans } =
    results;
  return [
    ...(requests === undefined && operations === undefined ? [] : [requestReport({ requests, operations })]),
    ...(deliveries === undefined ? [] : [deliveryReport(deliveries)]),
    ...(besideByHand === undefined ? [] : [besideByHandReport(besideByHand)]),
    ...(scaleOut === undefined ? [] : [scaleReport(scaleOut)]),
    ...(webhooks === undefined ? [] : [webhookReport(webhooks)]),
    ...(retention === undefined ? [] : [retentionReport(retention)]),
    ...(holdUps === undefined
      ? []
      : [
          "## What one party does to the others",
          prose(
            "In ms, from the change to its receipt, of another user's 20 changes a second: before, during and after. `npm run holdups` does the same for longer.",
          ),
          holdUpTable(holdUps),
        ]),
    ...(plans === undefined
      ? []
      : [
          "## Plans",
          `The slowest statement of each kind of work at ${fixed(plans.events)} events and ${fixed(plans.events * 2)} deliveries.`,
          planTable(plans.results),
        ]),
  ].join("\n\n");
}

function scaleReport(results: readonly ScaleOut[]): string {
  return [
    "## More processes",
    prose(
      "Creates with a delivery each, by as many APIs as dispatchers. CPU µs are of all processes of a kind together, for one create and its delivery.",
    ),
    markdownTable(
      [
        "Each",
        "creates/s in all",
        "CPU µs",
        "`svc api`",
        "`svc dispatcher`",
        "PostgreSQL",
        "RabbitMQ",
        "WAL bytes",
        "p50 ms",
        "p99 ms",
        "share of each dispatcher, %",
        "cores when idle: api, dispatcher",
      ],
      results.map(({ processes, ratePerSecond, cpuMicros, walBytes, latencyMs, shares, idleCores }): Row => [
        processes,
        ratePerSecond,
        fixed(sumOf(Object.values(cpuMicros))),
        fixed(cpuMicros["svc api"]),
        fixed(cpuMicros["svc dispatcher"]),
        fixed(cpuMicros["postgresql"]),
        fixed(cpuMicros["rabbitmq"]),
        fixed(walBytes),
        fixed(latencyMs.p50, 1),
        fixed(latencyMs.p99, 1),
        shares.map((share) => fixed(share)).join(", "),
        `${fixed(idleCores["svc api"], 3)}, ${fixed(idleCores["svc dispatcher"], 3)}`,
      ]),
    ),
  ].join("\n\n");
}

/** Returns a table for a terminal. The first column is text, the others are figures. */
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
