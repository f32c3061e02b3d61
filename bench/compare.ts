import { familyCpuMicros, processCpuMicros } from "./cpu.ts";
import type { LoadJob, LoadResult, RequestSpec } from "./load.ts";
import { ratioOf, type Ratio } from "./numbers.ts";
import type { Peer } from "./peer.ts";

export type Generator = Peer<LoadJob, LoadResult>;

/** One of two servers that get the same requests. */
export interface Side {
  readonly name: string;
  readonly port: number;
  readonly pid: number;
  /**
   * Resolves when all work that the requests caused is done: its CPU time counts, and the next
   * block starts without it.
   */
  readonly settle?: () => Promise<void>;
  /** CPU time in µs so far of other processes that work for the requests. */
  readonly others?: Readonly<Record<string, () => number>>;
}

/** A request for both sides, or one for each. */
export type Requests = RequestSpec | readonly [RequestSpec, RequestSpec];

export interface Block {
  readonly requestsPerSecond: number;
  readonly p99Ms: number;
  /** CPU of the server's process, per request. */
  readonly cpuMicros: number;
  /** CPU of PostgreSQL. */
  readonly postgresMicros: number;
  /** CPU of the side's other processes. */
  readonly otherMicros: Readonly<Record<string, number>>;
  /** Duration of the remaining work after the last answer. */
  readonly settleMs: number;
}

export interface Comparison {
  readonly name: string;
  readonly sides: readonly [string, string];
  readonly blocks: readonly (readonly [Block, Block])[];
  /** First side divided by the second, pair by pair. */
  readonly throughput: Ratio;
  readonly cpu: Ratio;
}

/**
 * Sends blocks of the same request to two servers in turn, in random order within each pair. The
 * speed of a shared machine drifts, so only the ratio within a pair is meaningful. The result is
 * the median of the ratios.
 */
export async function compare({
  name,
  sides: [one, other],
  requests,
  generator,
  token,
  postgresPid,
  pairs,
  blockMs,
  warmUps = 1,
}: {
  readonly name: string;
  readonly sides: readonly [Side, Side];
  readonly requests: Requests;
  readonly generator: Generator;
  readonly token: string;
  readonly postgresPid: number;
  readonly pairs: number;
  readonly blockMs: number;
  /**
   * Blocks of each side that do not count, because a process that has just started is slow for some
   * seconds.
   */
  readonly warmUps?: number;
}): Promise<Comparison> {
  const requestOf = (side: Side): RequestSpec =>
    "method" in requests ? requests : requests[side === one ? 0 : 1];
  const runBlock = async (side: Side): Promise<Block> => {
    const others = Object.entries(side.others ?? {}).map(([who, read]) => ({ who, read, before: read() }));
    const [cpu, postgres] = [processCpuMicros(side.pid), familyCpuMicros(postgresPid)];
    const result = await generator.ask({
      port: side.port,
      token,
      request: requestOf(side),
      connections: 16,
      durationMs: blockMs,
    });
    const answeredAt = performance.now();
    await side.settle?.();
    const settleMs = performance.now() - answeredAt;
    const per = (before: number, after: number): number => (after - before) / result.count;
    return {
      requestsPerSecond: result.count / (result.elapsedMs / 1_000),
      p99Ms: result.latencyMs.p99,
      cpuMicros: per(cpu, processCpuMicros(side.pid)),
      postgresMicros: per(postgres, familyCpuMicros(postgresPid)),
      otherMicros: Object.fromEntries(others.map(({ who, read, before }) => [who, per(before, read())])),
      settleMs,
    };
  };

  for (let block = 0; block < warmUps; block += 1) {
    await runBlock(one);
    await runBlock(other);
  }
  const blocks: [Block, Block][] = [];
  for (let pair = 0; pair < pairs; pair += 1) {
    if (Math.random() < 0.5) {
      const first = await runBlock(one);
      blocks.push([first, await runBlock(other)]);
    } else {
      const second = await runBlock(other);
      blocks.push([await runBlock(one), second]);
    }
  }
  return {
    name,
    sides: [one.name, other.name],
    blocks,
    throughput: ratioOf(blocks.map(([a, b]) => a.requestsPerSecond / b.requestsPerSecond)),
    cpu: ratioOf(blocks.map(([a, b]) => a.cpuMicros / b.cpuMicros)),
  };
}
