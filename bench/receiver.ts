/**
 * The webhook receiver, in a separate process. It answers 204 at once, and records the arrival time
 * of each event.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { performance } from "node:perf_hooks";
import { spreadOf, type Spread } from "./numbers.ts";
import { answerQuestions } from "./peer.ts";

/**
 * `begin` resets the receiver, `wait` waits until `count` different deliveries have arrived. Each
 * is answered with a report.
 */
export type ReceiverQuestion =
  | { readonly kind: "begin" | "report" }
  | { readonly kind: "wait"; readonly count: number; readonly limitMs: number };

export interface ReceiverReport {
  readonly port: number;
  /** Number of different deliveries. */
  readonly count: number;
  readonly duplicates: number;
  /**
   * Time from the event's timestamp, which the database took within the writer's transaction, to
   * the arrival here.
   */
  readonly latencyMs: Spread;
}

const seen = new Set<string>();
let duplicates = 0;
let latencies: number[] = [];
let clockOffsetMs = 0;
let onArrival = (): void => undefined;

/**
 * Returns the offset of the clock of `performance` to `Date.now()`, which has no fractions. The two
 * drift, so each `begin` measures it again.
 */
function readClockOffset(): number {
  const tick = Date.now();
  while (Date.now() === tick);
  return Date.now() - performance.now();
}

/** Returns ms since 1970 for a time with microseconds. */
function timeOf(timestamp: string): number {
  return Date.parse(`${timestamp.slice(0, 19)}Z`) + Number(timestamp.slice(19, 26)) * 1_000;
}

const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
  const arrivedAt = performance.now() + clockOffsetMs;
  const delivery = String(request.headers["x-service-delivery"]);
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    response.writeHead(204).end();
    if (seen.has(delivery)) {
      duplicates += 1;
      return;
    }
    seen.add(delivery);
    const { timestamp } = JSON.parse(Buffer.concat(chunks).toString()) as { readonly timestamp: string };
    latencies.push(arrivedAt - timeOf(timestamp));
    onArrival();
  });
});
const listening = new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

answerQuestions(async (question: ReceiverQuestion): Promise<ReceiverReport> => {
  await listening;
  if (question.kind === "begin") {
    seen.clear();
    duplicates = 0;
    latencies = [];
    clockOffsetMs = readClockOffset();
  } else if (question.kind === "wait") await arrivalOf(question);
  const { port } = server.address() as AddressInfo;
  return { port, count: seen.size, duplicates, latencyMs: spreadOf(latencies) };
});

function arrivalOf({ count, limitMs }: { readonly count: number; readonly limitMs: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    const late = (): void => reject(new Error(`${seen.size} of ${count} deliveries came in ${limitMs} ms`));
    const timer = setTimeout(late, limitMs);
    onArrival = () => {
      if (seen.size < count) return;
      clearTimeout(timer);
      onArrival = () => undefined;
      resolve();
    };
    onArrival();
  });
}
