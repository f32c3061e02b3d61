import type { BesideByHand } from "./beside-by-hand.ts";
import type { Amounts, Steady } from "./deliveries.ts";
import type { DeliveryResults } from "./delivery-runs.ts";
import { fixed, markdownTable, prose, sumOf, type Row } from "./markdown.ts";

export function deliveryReport({
  capacity,
  fullWay,
  steadyApi,
  steadySql,
  parts,
  memoryMb,
}: DeliveryResults): string {
  const { ratePerSecond } = steadyApi;
  const { api, relay, dispatcher, transaction } = capacity.statements;
  return [
    "## Deliveries\n\n`svc api` and `svc dispatcher`, one subscription, a receiver that answers at once.",
    markdownTable(
      [
        "Load",
        "deliveries/s",
        "CPU µs of each, in all",
        ...Object.keys(fullWay.cpuMicros),
        "WAL bytes",
        "duplicates",
      ],
      [
        row(
          "Creates by 16 connections",
          fullWay.perSecond,
          fullWay.cpuMicros,
          fullWay.walBytes,
          fullWay.duplicates,
        ),
        row(
          "Rows by SQL, as fast as it takes them",
          capacity.perSecond,
          capacity.cpuMicros,
          undefined,
          capacity.duplicates,
        ),
        row(
          `Creates, ${ratePerSecond} a second`,
          ratePerSecond,
          steadyApi.cpuMicros,
          undefined,
          steadyApi.duplicates,
        ),
      ],
    ),
    prose(
      `Statements of a delivery of rows by SQL: relay ${fixed(relay, 2)}, dispatcher ${fixed(dispatcher, 2)},
      BEGIN and COMMIT ${fixed(transaction, 2)}, others ${fixed(api, 2)}. Cores busy at ${ratePerSecond} creates a second:
      ${fixed(sumOf(Object.values(steadyApi.coresBusy)), 2)}, of which ${busyText(steadyApi.coresBusy)}.`,
    ),
    `From change to receiver at ${ratePerSecond} a second, in ms.`,
    markdownTable(
      ["Changed by", "p50", "p95", "p99", "max", "the API's answers: p50", "p99"],
      [latencyRow("API", steadyApi), latencyRow("plain SQL", steadySql)],
    ),
    `The parts of it, in ms, by the service's own spans: tracing is on, which adds to each.`,
    markdownTable(
      ["Part", "p50", "p95", "p99"],
      Object.entries(parts).map(([name, { p50, p95, p99 }]): Row => [
        name,
        fixed(p50, 1),
        fixed(p95, 1),
        fixed(p99, 1),
      ]),
    ),
    "Memory in MB.",
    markdownTable(
      ["Process", ...Object.keys(memoryMb)],
      Object.keys(memoryMb["at rest"]).map((name): Row => [
        `\`${name}\``,
        ...Object.values(memoryMb).map((amounts) => fixed(amounts[name])),
      ]),
    ),
  ].join("\n\n");
}

export function besideByHandReport({ service, byHand }: BesideByHand): string {
  return [
    "## Beside a sender by hand",
    prose(
      `100 creates a second with one delivery each, in turns on the same servers. The sender by hand does the least
      that it must: a row and its event in one statement, a confirmed message, a row and a signed POST.
      It has no users, validation, access, retries or limits.`,
    ),
    markdownTable(
      ["Sender", "cores busy, in all", ...Object.keys(service[0]?.coresBusy ?? {}), "p50 ms", "p99 ms"],
      [...service.map((one) => coresRow("svc", one)), ...byHand.map((one) => coresRow("by hand", one))],
    ),
  ].join("\n\n");
}

function coresRow(who: string, { coresBusy, latencyMs }: Steady): Row {
  const cores = Object.values(coresBusy);
  const busy = [sumOf(cores), ...cores].map((value) => fixed(value, 3));
  return [who, ...busy, fixed(latencyMs.p50, 1), fixed(latencyMs.p99, 1)];
}

function busyText(coresBusy: Amounts): string {
  return Object.entries(coresBusy)
    .map(([who, cores]) => `${who} ${fixed(cores, 3)}`)
    .join(", ");
}

function row(
  name: string,
  perSecond: number,
  cpuMicros: Amounts,
  walBytes: number | undefined,
  duplicates: number,
): Row {
  const values = Object.values(cpuMicros);
  return [
    name,
    fixed(perSecond),
    fixed(sumOf(values)),
    ...values.map((value) => fixed(value)),
    fixed(walBytes),
    duplicates,
  ];
}

function latencyRow(name: string, { latencyMs: { p50, p95, p99, max }, requestMs }: Steady): Row {
  return [name, ...[p50, p95, p99, max, requestMs?.p50, requestMs?.p99].map((value) => fixed(value, 1))];
}
