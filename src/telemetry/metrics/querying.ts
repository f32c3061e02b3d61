import { Counter, type Registry } from "prom-client";

/** Metrics of the queries that the compiler of queries leaves to the Prisma client. */
export interface QueryingMetrics {
  leftToPrisma(resource: string): void;
}

/** Creates the metrics of queries. */
export function createQueryingMetrics(registry: Registry): QueryingMetrics {
  const left = new Counter({
    name: "svc_prisma_operations_total",
    help: "Operations on records that the Prisma client answered, because a code module gave arguments that only Prisma knows. They cost several times as much.",
    labelNames: ["resource"] as const,
    registers: [registry],
  });
  return { leftToPrisma: (resource) => left.inc({ resource }) };
}
