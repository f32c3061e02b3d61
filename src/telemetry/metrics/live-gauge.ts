import { Gauge, type Registry } from "prom-client";

interface Named {
  readonly registry: Registry;
  readonly name: string;
  readonly help: string;
}

/** Adds a gauge whose value is asked for at each scrape; it has none while the answer is undefined. */
export function addLiveGauge({
  registry,
  name,
  help,
  read,
}: Named & { readonly read: () => number | undefined }): void {
  const gauge = new Gauge({ name, help, registers: [registry], collect });
  function collect(): void {
    const value = read();
    if (value === undefined) gauge.remove();
    else gauge.set(value);
  }
}

/** The same with one label: the answer has a value for each of the label's. */
export function addLiveGauges({
  registry,
  name,
  help,
  label,
  read,
}: Named & {
  readonly label: string;
  readonly read: () => Readonly<Record<string, number>>;
}): void {
  const gauge = new Gauge({ name, help, labelNames: [label], registers: [registry], collect });
  function collect(): void {
    for (const [value, count] of Object.entries(read())) gauge.set({ [label]: value }, count);
  }
}
