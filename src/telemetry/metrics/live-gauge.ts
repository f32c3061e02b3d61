import { Gauge, type Registry } from "prom-client";

interface Named {
  readonly registry: Registry;
  readonly name: string;
  readonly help: string;
}

/** Adds a gauge that reads its value at each scrape. */
export function addLiveGauge({ registry, name, help, read }: Named & { readonly read: () => number }): void {
  const gauge = new Gauge({ name, help, registers: [registry], collect });
  function collect(): void {
    gauge.set(read());
  }
}

/** Adds a gauge with one label that reads its values, by the label's value, at each scrape. */
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
