import { Counter, type Registry } from "prom-client";

/** Creates the metrics of queries that the compiler of queries leaves to the Prisma client. */
export function createQueryingMetrics(registry: Registry) {
  const left = new Counter({
    name: "svc_prisma_operations_total",
    help: "Operations on records that the Prisma client answered, because a code module gave arguments that only Prisma knows. They cost several times as much.",
    labelNames: ["resource"] as const,
    registers: [registry],
  });
  return { leftToPrisma: (resource: string) => left.inc({ resource }) };
}
