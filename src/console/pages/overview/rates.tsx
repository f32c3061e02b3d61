import { useMemo, type JSX } from "react";
import type { Series, Stats } from "../../api/types.ts";
import { Chart, type ChartProps } from "../../parts/chart.tsx";
import { Card } from "../../parts/page.tsx";
import { Segments } from "../../parts/segments.tsx";
import { useUrlState } from "../../parts/url-state.ts";
import { sum } from "../../parts/sum.ts";

const spans = [
  ["hour", "Hour"],
  ["day", "Day"],
  ["week", "Week"],
] as const;

type Span = (typeof spans)[number][0];

/** Draws changes, deliveries and failures over the span that the URL names. */
export function Rates({ stats }: { readonly stats: Stats }): JSX.Element {
  const url = useUrlState();
  const asked = url.search.get("span");
  const span: Span = spans.find(([id]) => id === asked)?.[0] ?? "hour";
  const series = stats.rates[span];
  const unit = series.step_seconds === 60 ? "minute" : "hour";
  const { times, lines } = useMemo(() => chartOf(series), [series]);
  return (
    <Card
      title="Activity"
      note={`Changes, deliveries and failed attempts per ${unit}, over the last ${span}`}
      actions={
        <Segments
          label="Span"
          options={spans}
          selected={span}
          onSelect={(id) => url.change({ span: id === "hour" ? null : id })}
        />
      }
    >
      <Chart label={summaryOf(series, span)} times={times} lines={lines} />
    </Card>
  );
}

function chartOf(series: Series): Omit<ChartProps, "label"> {
  const from = Date.parse(series.from) / 1_000;
  return {
    times: series.changes.map((_, index) => from + index * series.step_seconds),
    lines: [
      { title: "Changes", color: "--chart-changes", values: series.changes },
      { title: "Deliveries", color: "--chart-deliveries", values: series.deliveries },
      { title: "Failed attempts", color: "--chart-failures", values: series.failures },
    ],
  };
}

function summaryOf({ changes, deliveries, failures }: Series, span: Span): string {
  return `Chart: in the last ${span} ${sum(changes)} changes, ${sum(deliveries)} deliveries and ${sum(failures)} failed attempts`;
}
