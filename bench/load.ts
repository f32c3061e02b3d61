/**
 * The load generator, in a separate process. It measures capacity in a closed loop. It measures
 * latency in an open loop, by a schedule that does not wait for answers: a closed loop would send
 * less whenever the server stalls, and hide the stall.
 */
import { Agent, request } from "node:http";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { spreadOf, type Spread } from "./numbers.ts";
import { answerQuestions } from "./peer.ts";

export interface RequestSpec {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** `{id}` stands for a random one of `ids`. */
  readonly path: string;
  /** First and last id. */
  readonly ids?: readonly [number, number];
  /** `{unique}` stands for a text that is different in each request of the run. */
  readonly body?: string;
  /** Any other answer fails the benchmark. */
  readonly status: number;
}

export interface LoadJob {
  readonly port: number;
  /** Ports of further servers, used in turn with the first one. */
  readonly otherPorts?: readonly number[];
  readonly token: string;
  readonly request: RequestSpec;
  readonly connections: number;
  /** The run ends when either limit is reached. */
  readonly durationMs?: number;
  readonly count?: number;
  /** When set, the loop is open. */
  readonly ratePerSecond?: number;
}

export interface LoadResult {
  readonly count: number;
  readonly elapsedMs: number;
  /** Time since the scheduled time of the request (open loop), or since it was sent. */
  readonly latencyMs: Spread;
}

const agents = new Map<number, Agent>();
let sentBodies = 0;
let sentRequests = 0;

function agentOf(connections: number): Agent {
  const agent = agents.get(connections) ?? new Agent({ keepAlive: true, maxSockets: connections });
  agents.set(connections, agent);
  return agent;
}

function exchange({ port, otherPorts = [], token, request: spec, connections }: LoadJob): Promise<void> {
  const turn = (sentRequests += 1) % (otherPorts.length + 1);
  const [first, last] = spec.ids ?? [1, 1];
  const id = first + Math.floor(Math.random() * (last - first + 1));
  const body = spec.body?.replace("{unique}", () => `${process.pid}-${(sentBodies += 1)}`);
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        agent: agentOf(connections),
        host: "127.0.0.1",
        port: turn === 0 ? port : otherPorts[turn - 1],
        method: spec.method,
        path: spec.path.replace("{id}", String(id)),
        headers: {
          authorization: `Bearer ${token}`,
          ...(body === undefined
            ? {}
            : { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
        },
      },
      (response) => {
        response.resume();
        response.once("end", () => {
          if (response.statusCode === spec.status) resolve();
          else reject(new Error(`${spec.method} ${spec.path} answered ${response.statusCode ?? "nothing"}`));
        });
      },
    );
    sent.once("error", reject);
    sent.end(body);
  });
}

async function closedLoop(job: LoadJob): Promise<readonly number[]> {
  const latencies: number[] = [];
  const until = performance.now() + (job.durationMs ?? Infinity);
  let left = job.count ?? Infinity;
  const connection = async (): Promise<void> => {
    while (left-- > 0 && performance.now() < until) {
      const start = performance.now();
      await exchange(job);
      latencies.push(performance.now() - start);
    }
  };
  await Promise.all(Array.from({ length: job.connections }, connection));
  return latencies;
}

async function openLoop(job: LoadJob, ratePerSecond: number): Promise<readonly number[]> {
  const latencies: number[] = [];
  const exchanges: Promise<void>[] = [];
  const start = performance.now();
  const total = Math.min(job.count ?? Infinity, ((job.durationMs ?? Infinity) / 1_000) * ratePerSecond);
  for (let n = 0; n < total; n += 1) {
    const due = start + (n * 1_000) / ratePerSecond;
    if (due > performance.now()) await sleep(due - performance.now());
    exchanges.push(exchange(job).then(() => void latencies.push(performance.now() - due)));
  }
  await Promise.all(exchanges);
  return latencies;
}

answerQuestions(async (job: LoadJob): Promise<LoadResult> => {
  const start = performance.now();
  const latencies = await (job.ratePerSecond === undefined
    ? closedLoop(job)
    : openLoop(job, job.ratePerSecond));
  return {
    count: latencies.length,
    elapsedMs: performance.now() - start,
    latencyMs: spreadOf(latencies),
  };
});
