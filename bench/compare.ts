import { familyCpuMicros, processCpuMicros } from "./cpu.ts";
import type { LoadJob, LoadResult, RequestSpec } from "./load.ts";
import { medianOf } from "./numbers.ts";
import type { Peer } from "./peer.ts";

export type Generator = Peer<LoadJob, LoadResult>;

/** One of two servers that are sent the same requests. */
export interface Side {
  readonly name: string;
  readonly port: number;
  readonly pid: number;
  /**
   * Resolves when what the requests set off is done: its CPU time counts, and the next block starts
   * without it.
   */
  readonly settle?: () => Promise<void>;
  /** CPU time used so far by other processes that the requests set to work, in µs. */
  readonly others?: Readonly<Record<string, () => number | undefined>>;
}

/** A request that both sides are sent, or one for each. */
export type Requests = RequestSpec | readonly [RequestSpec, RequestSpec];

export interface Block {
  readonly requestsPerSecond: number;
  readonly p99Ms: number;
  /** Of the server's process, per request; undefined where it cannot be measured. */
  readonly cpuMicros: number | undefined;
  /** Of PostgreSQL. */
  readonly postgresMicros: number | undefined;
  /** Of the side's other processes. */
  readonly otherMicros: Readonly<Record<string, number | undefined>>;
  /** How long what the requests set off went on after the last answer. */
  readonly settleMs: number;
}

export interface Ratio {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export interface Comparison {
  readonly name: string;
  readonly sides: readonly [string, string];
  readonly blocks: readonly (readonly [Block, Block])[];
  /** The first side by the second, pair by pair. */
  readonly throughput: Ratio;
  readonly cpu: Ratio | undefined;
}

/**
 * Sends blocks of the same request to two servers in turn, the order within each pair by chance. A
 * shared machine's speed drifts: only the ratio within a pair says something, and the median of the
 * ratios is the result.
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
   * Blocks of each side that do not count. A process that has just started is slow for some
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
    const per = (before: number | undefined, after: number | undefined): number | undefined =>
      before === undefined || after === undefined ? undefined : (after - before) / result.count;
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
  const cpuRatios = blocks.flatMap(([a, b]) =>
    a.cpuMicros === undefined || b.cpuMicros === undefined ? [] : [a.cpuMicros / b.cpuMicros],
  );
  return {
    name,
    sides: [one.name, other.name],
    blocks,
    throughput: ratioOf(blocks.map(([a, b]) => a.requestsPerSecond / b.requestsPerSecond)),
    cpu: cpuRatios.length === 0 ? undefined : ratioOf(cpuRatios),
  };
}

function ratioOf(ratios: readonly number[]): Ratio {
  return { median: medianOf(ratios), min: Math.min(...ratios), max: Math.max(...ratios) };
}
