/** One metric in the text format of Prometheus. */
export interface ShownMetric {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: readonly Sample[];
  /** Labels of its samples, sorted, without the `le` of a histogram. */
  readonly labels: readonly string[];
}

export interface Sample {
  /** Name with the suffix of a histogram's part. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Parses the text of `/metrics`, by name. Throws for an invalid line. */
export function parseMetrics(text: string): ReadonlyMap<string, ShownMetric> {
  const found = new Map<string, ShownMetric>();
  let current: { name: string; help: string; type: string; samples: Sample[] } | undefined;
  for (const line of text.split("\n").filter((one) => one !== "")) {
    const [, keyword, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (keyword === "HELP") current = { name, help: rest, type: "", samples: [] };
    else if (keyword === "TYPE" && current !== undefined) current.type = rest;
    else if (current !== undefined) current.samples.push(sampleOf(line));
    if (current !== undefined) {
      const labels = new Set(current.samples.flatMap((sample) => Object.keys(sample.labels)));
      if (current.type === "histogram") labels.delete("le");
      found.set(current.name, { ...current, labels: [...labels].toSorted() });
    }
  }
  return found;
}

function sampleOf(line: string): Sample {
  const [, name, labels = "", value] = /^([a-z_]\w*)(?:\{(.*)\})? (\S+)$/i.exec(line) ?? [];
  if (name === undefined) throw new Error(`not a sample: ${line}`);
  return {
    name,
    labels: Object.fromEntries(
      [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, text]) => [key, text]),
    ),
    value: Number(value === "Nan" ? Number.NaN : value),
  };
}

/**
 * Returns the sum of a metric's samples with the labels; undefined without any. `name` may have a
 * histogram's suffix.
 */
export function valueOf(
  metrics: ReadonlyMap<string, ShownMetric>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const metric = metrics.get(name) ?? metrics.get(name.replace(/_(bucket|sum|count)$/, ""));
  const wanted = metric?.samples.filter(
    (sample) =>
      sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
  );
  if (wanted === undefined || wanted.length === 0) return undefined;
  return wanted.reduce((sum, { value }) => sum + value, 0);
}
