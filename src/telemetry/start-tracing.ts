import type { Log } from "./log.ts";
import type { TracingSettings } from "./tracing-settings.ts";
import { noTracing, type Tracing } from "./tracing.ts";

/** Starts tracing by the settings. Loads the OpenTelemetry packages only when tracing is on. */
export async function startTracing({
  settings,
  log,
}: {
  /** Settings of tracing. Undefined when tracing is off. */
  readonly settings: TracingSettings | undefined;
  readonly log: Log;
}): Promise<Tracing> {
  if (settings === undefined) return noTracing;
  const { createSdkTracing } = await import("./tracing-sdk.ts");
  return createSdkTracing({ settings, log });
}
