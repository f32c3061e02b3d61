import type { Log } from "./log.ts";
import type { TracingSettings } from "./tracing-settings.ts";
import { noTracing, type Tracing } from "./tracing.ts";

/** Starts tracing. Loads the OpenTelemetry packages only when there are settings. */
export async function startTracing(settings: TracingSettings | undefined, log: Log): Promise<Tracing> {
  if (settings === undefined) return noTracing;
  const { createSdkTracing } = await import("./tracing-sdk.ts");
  return createSdkTracing({ settings, log });
}
