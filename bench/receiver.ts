/**
 * Webhook receivers, in a separate process. Each has a port and a manner, and records the arrival
 * times of its deliveries.
 */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { performance } from "node:perf_hooks";
import { spreadOf, type Spread } from "./numbers.ts";
import { answerQuestions } from "./peer.ts";

export type Manner = "ok" | "hanging" | "failing" | "rate-limited";

/** Each is answered with a report. */
export type ReceiverQuestion =
  | { readonly kind: "open"; readonly receivers: number }
  /** Sets the manner of receivers, by their numbers; the others keep theirs. */
  | { readonly kind: "behave"; readonly receivers: readonly number[]; readonly manner: Manner }
  /** Clears the recorded arrivals. */
  | { readonly kind: "begin" }
  /** Waits until this many different deliveries have arrived. */
  | { readonly kind: "wait"; readonly count: number; readonly limitMs: number }
  /** Returns the latencies of receivers below this number. Default: of all. */
  | { readonly kind: "report"; readonly below?: number };

export interface ReceiverReport {
  readonly ports: readonly number[];
  /** Number of different deliveries. */
  readonly count: number;
  readonly duplicates: number;
  /**
   * Time from the event's timestamp, which the database took within the writer's transaction, to
   * the arrival here. Leaves out events from before `begin`.
   */
  readonly latencyMs: Spread;
}

interface Arrival {
  readonly receiver: number;
  readonly latencyMs: number;
}

const ports: number[] = [];
const manners: Manner[] = [];
const seen = new Set<string>();
let duplicates = 0;
let arrivals: Arrival[] = [];
let beganAt = 0;
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

async function open(receiver: number): Promise<number> {
  manners[receiver] = "ok";
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const arrivedAt = performance.now() + clockOffsetMs;
    const delivery = String(request.headers["x-service-delivery"]);
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      answer(manners[receiver] ?? "ok", response);
      if (seen.has(delivery)) {
        duplicates += 1;
        return;
      }
      seen.add(delivery);
      const { timestamp } = JSON.parse(Buffer.concat(chunks).toString()) as { readonly timestamp: string };
      const at = timeOf(timestamp);
      if (at >= beganAt) arrivals.push({ receiver, latencyMs: arrivedAt - at });
      onArrival();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

function answer(manner: Manner, response: ServerResponse): void {
  if (manner === "hanging") return;
  if (manner === "rate-limited") response.setHeader("Retry-After", "2");
  response.writeHead({ ok: 204, failing: 500, "rate-limited": 429 }[manner]).end();
}

answerQuestions(async (question: ReceiverQuestion): Promise<ReceiverReport> => {
  if (question.kind === "open")
    for (let number = 0; number < question.receivers; number += 1) ports.push(await open(number));
  else if (question.kind === "behave")
    for (const receiver of question.receivers) manners[receiver] = question.manner;
  else if (question.kind === "begin") {
    seen.clear();
    duplicates = 0;
    arrivals = [];
    clockOffsetMs = readClockOffset();
    beganAt = Date.now();
  } else if (question.kind === "wait") await arrivalOf(question);
  const { below = Infinity } = question.kind === "report" ? question : {};
  const own = arrivals.filter(({ receiver }) => receiver < below);
  const latencyMs = spreadOf(own.map((one) => one.latencyMs));
  return { ports, count: seen.size, duplicates, latencyMs };
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
