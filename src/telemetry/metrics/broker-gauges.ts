import { Gauge, type Registry } from "prom-client";
import { addLiveGauge } from "./live-gauge.ts";

export function createBrokerMetrics(registry: Registry) {
  const depths = new Gauge({
    name: "svc_queue_messages",
    help: "Messages ready in a queue, those handed out not counted. The same for every process on the broker: take the maximum, not the sum.",
    labelNames: ["queue"] as const,
    registers: [registry],
  });
  let isConnected: (() => boolean) | undefined;
  addLiveGauge({
    registry,
    name: "svc_broker_connected",
    help: "1 while this process can publish and consume.",
    read: () => (isConnected?.() === true ? 1 : 0),
  });
  return {
    showDepth: (queue: string, messages: number) => depths.set({ queue }, messages),
    /** Removes the values, because an unknown value is not zero. */
    forget: () => depths.reset(),
    /** Sets the function that returns the state of the connection at each scrape. */
    watch(ask: () => boolean): void {
      isConnected = ask;
    },
  };
}
