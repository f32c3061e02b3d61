/**
 * Many webhook receivers in a separate process. Each has a port and a manner. Selected receivers
 * record the arrival times of their deliveries.
 */
import { performance } from "node:perf_hooks";
import type { AddressInfo } from "node:net";
import { createServer, type ServerResponse } from "node:http";
import { spreadOf, type Spread } from "../numbers.ts";
import { answerQuestions } from "../peer.ts";

export type Manner = "ok" | "hanging" | "failing" | "rate-limited";

export type CrowdQuestion =
  | { readonly kind: "open"; readonly count: number }
  /** Sets the manner of receivers, by their numbers; the others keep theirs. */
  | { readonly kind: "behave"; readonly receivers: readonly number[]; readonly manner: Manner }
  /** Clears the recorded arrivals. */
  | { readonly kind: "begin" }
  /** Returns the arrivals at receivers below this number, of events since `begin`. */
  | { readonly kind: "report"; readonly below: number };

export interface CrowdReport {
  readonly ports: readonly number[];
  readonly latencyMs: Spread;
}

interface Arrival {
  readonly receiver: number;
  readonly latencyMs: number;
}

const ports: number[] = [];
const manners: Manner[] = [];
let arrivals: Arrival[] = [];
let beganAt = 0;
let offsetMs = 0;

answerQuestions(async (question: CrowdQuestion): Promise<CrowdReport> => {
  if (question.kind === "open")
    for (let number = 0; number < question.count; number += 1) ports.push(await open(number));
  else if (question.kind === "behave")
    for (const receiver of question.receivers) manners[receiver] = question.manner;
  else if (question.kind === "begin") {
    const tick = Date.now();
    while (Date.now() === tick);
    offsetMs = Date.now() - performance.now();
    beganAt = Date.now();
    arrivals = [];
  }
  const below = question.kind === "report" ? question.below : 0;
  const own = arrivals.filter(({ receiver }) => receiver < below);
  return { ports, latencyMs: spreadOf(own.map(({ latencyMs }) => latencyMs)) };
});

async function open(receiver: number): Promise<number> {
  manners[receiver] = "ok";
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const arrivedAt = performance.now() + offsetMs;
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { timestamp } = JSON.parse(Buffer.concat(chunks).toString()) as { readonly timestamp: string };
      const at = Date.parse(`${timestamp.slice(0, 19)}Z`) + Number(timestamp.slice(19, 26)) * 1_000;
      if (at >= beganAt) arrivals.push({ receiver, latencyMs: arrivedAt - at });
      answer(manners[receiver] ?? "ok", response);
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
