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

/** Adds a gauge with the label `state` that reads its values, by state, at each scrape. */
export function addLiveGauges({
  registry,
  name,
  help,
  read,
}: Named & { readonly read: () => Readonly<Record<string, number>> }): void {
  const gauge = new Gauge({ name, help, labelNames: ["state"], registers: [registry], collect });
  function collect(): void {
    for (const [state, count] of Object.entries(read())) gauge.set({ state }, count);
  }
}
