import type { Foundation } from "./foundation.ts";
import { createHealthListener } from "./http/health.ts";
import { startServer, type HttpServer } from "./http/server.ts";

/** `/livez` and `/readyz` on the metrics port, the only paths that take no token. */
export async function startHealth({ config, sql, broker }: Foundation): Promise<HttpServer> {
  const listener = createHealthListener({
    checks: {
      async database() {
        await sql("SELECT 1");
      },
      async broker() {
        if (!broker.isConnected()) throw new Error("not connected to RabbitMQ");
      },
    },
  });
  return startServer(listener, {
    host: config.http.host,
    port: config.metrics.port,
    setting: "SVC_METRICS_PORT",
  });
}
