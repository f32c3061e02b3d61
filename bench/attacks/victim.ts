/**
 * An ordinary user beside the attacker, in a separate process. It sends requests at a constant rate
 * that does not wait for answers, and reports their times and failures.
 */
import { Agent, request } from "node:http";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { spreadOf, type Spread } from "../numbers.ts";
import { answerQuestions } from "../peer.ts";

export interface VictimJob {
  readonly port: number;
  readonly prefix: string;
  readonly token: string;
  readonly durationMs: number;
  readonly ratePerSecond: number;
}

export interface VictimReport {
  readonly latencyMs: Spread;
  /** Number of failures by status, or by error code. */
  readonly failures: Readonly<Record<string, number>>;
  /** References of the records that the service acknowledged. */
  readonly created: readonly string[];
}

const answerLimitMs = 20_000;
const agent = new Agent({ keepAlive: true, maxSockets: 64 });
let number = 0;

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly body?: string;
}

/** Returns the next request: in turn a list, one of the user's records, and a create. */
function next(): Asked & { readonly reference: string } {
  number += 1;
  const reference = `ada-${process.pid}-${number}`;
  if (number % 3 === 0) return { method: "GET", path: "/resources/notes", reference };
  if (number % 3 === 1) return { method: "GET", path: "/whoami", reference };
  const body = JSON.stringify({ reference, amount: "12.50", text: "an ordinary note" });
  return { method: "POST", path: "/resources/notes", body, reference };
}

function ask({ port, prefix, token }: VictimJob, { method, path, body }: Asked): Promise<string> {
  return new Promise((resolve) => {
    const sent = request(
      {
        agent,
        // A separate source address, like that of another client.
        host: "127.0.0.1",
        port,
        method,
        path: prefix + path,
        headers: {
          Authorization: `Bearer ${token}`,
          ...(body === undefined
            ? {}
            : { "Content-Type": "application/json", "Content-Length": body.length }),
        },
        timeout: answerLimitMs,
      },
      (answer) => {
        answer.resume();
        answer.once("close", () => resolve(String(answer.statusCode)));
      },
    );
    sent.once("timeout", () => sent.destroy(new Error("no answer")));
    sent.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    sent.end(body);
  });
}

async function live(job: VictimJob): Promise<VictimReport> {
  const latencies: number[] = [];
  const failures: Record<string, number> = {};
  const created: string[] = [];
  const asked: Promise<void>[] = [];
  const note = async (question: ReturnType<typeof next>, dueAt: number): Promise<void> => {
    const outcome = await ask(job, question);
    latencies.push(performance.now() - dueAt);
    if (outcome === "201") created.push(question.reference);
    else if (outcome !== "200") failures[outcome] = (failures[outcome] ?? 0) + 1;
  };
  const startedAt = performance.now();
  for (let i = 0; i * (1000 / job.ratePerSecond) < job.durationMs; i++) {
    const dueAt = startedAt + i * (1000 / job.ratePerSecond);
    await sleep(Math.max(0, dueAt - performance.now()));
    const question = next();
    asked.push(note(question, dueAt));
  }
  await Promise.all(asked);
  return { latencyMs: spreadOf(latencies), failures, created };
}

answerQuestions(live);
