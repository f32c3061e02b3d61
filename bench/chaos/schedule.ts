/**
 * Kinds of faults, by the affected part of the system. Faults of one lane follow each other; those
 * of different lanes overlap.
 */
export const faultKinds = {
  processes: ["api killed", "dispatcher killed", "api stopped", "dispatcher stopped"],
  database: [
    "connections terminated",
    "PostgreSQL crashed",
    "PostgreSQL read-only",
    "PostgreSQL connections used up",
  ],
  broker: [
    "RabbitMQ killed",
    "RabbitMQ connections closed",
    "queues purged",
    "queues deleted",
    "exchanges deleted",
    "RabbitMQ memory alarm",
  ],
  /** The network drops all data of a process and a server, that of open connections for good. */
  network: [
    "api cut off from PostgreSQL",
    "api cut off from RabbitMQ",
    "dispatcher cut off from PostgreSQL",
    "dispatcher cut off from RabbitMQ",
  ],
  receivers: [
    "receiver down",
    "receiver hanging",
    "receiver resetting",
    "receiver dripping",
    "receiver endless",
  ],
  /** Changes by the owners of webhooks. */
  owners: [
    "webhook paused",
    "webhook paused and emptied",
    "secret rotated",
    "events replayed",
    "replay stopped",
  ],
  /** Removals during the run. */
  removals: ["record erased", "old events removed"],
} as const;

export type Lane = keyof typeof faultKinds;
export type FaultKind = (typeof faultKinds)[Lane][number];

export interface PlannedFault {
  readonly lane: Lane;
  readonly kind: FaultKind;
  /** Time since the previous fault of its lane was healed. */
  readonly waitMs: number;
  /** Duration of the fault; 0 for an action that is over at once. */
  readonly holdMs: number;
  /** Index of the process or receiver, sometimes both processes; or of the webhook. */
  readonly targets: readonly number[];
}

/** A fault, with the functions that cause and heal it. */
export interface Fault {
  begin(): Promise<unknown>;
  heal(): Promise<unknown>;
}

interface Range {
  readonly leastMs: number;
  readonly mostMs: number;
}

const waits: Readonly<Record<Lane, Range>> = {
  processes: { leastMs: 1_500, mostMs: 6_000 },
  database: { leastMs: 4_000, mostMs: 12_000 },
  broker: { leastMs: 1_500, mostMs: 7_000 },
  network: { leastMs: 10_000, mostMs: 20_000 },
  receivers: { leastMs: 1_500, mostMs: 6_000 },
  owners: { leastMs: 500, mostMs: 2_000 },
  removals: { leastMs: 2_000, mostMs: 6_000 },
};
const atOnce: Range = { leastMs: 0, mostMs: 0 };
const briefly: Range = { leastMs: 0, mostMs: 3_000 };
const forAWhile: Range = { leastMs: 1_000, mostMs: 6_000 };
const holds: Readonly<Record<FaultKind, Range>> = {
  "api killed": briefly,
  "dispatcher killed": briefly,
  "api stopped": forAWhile,
  "dispatcher stopped": forAWhile,
  "connections terminated": atOnce,
  "PostgreSQL crashed": briefly,
  "PostgreSQL read-only": briefly,
  "PostgreSQL connections used up": briefly,
  "RabbitMQ killed": briefly,
  "RabbitMQ connections closed": atOnce,
  "queues purged": atOnce,
  "queues deleted": atOnce,
  "exchanges deleted": atOnce,
  "RabbitMQ memory alarm": forAWhile,
  "api cut off from PostgreSQL": briefly,
  "api cut off from RabbitMQ": briefly,
  "dispatcher cut off from PostgreSQL": briefly,
  "dispatcher cut off from RabbitMQ": briefly,
  "receiver down": forAWhile,
  "receiver hanging": forAWhile,
  "receiver resetting": forAWhile,
  "receiver dripping": forAWhile,
  "receiver endless": forAWhile,
  "webhook paused": briefly,
  "webhook paused and emptied": briefly,
  "secret rotated": atOnce,
  "events replayed": atOnce,
  "replay stopped": briefly,
  "record erased": atOnce,
  "old events removed": atOnce,
};

/**
 * Exceeds the leases that a stopped process holds (17 s for deliveries, 20 s for events), so that
 * it has lost them when it continues.
 */
const pastLeases: Range = { leastMs: 21_000, mostMs: 25_000 };
/** Number of webhooks that their owners change. */
const ownedWebhooks = 4;

/** Shorter runs have no time for long stops. */
const leastForLongStopsMs = 120_000;

/**
 * Plans the faults of a run, by lane. The same seed gives the same faults. Every kind of a lane
 * comes once before any repeats. The duration of the faults themselves is unknown here, so a run
 * may not reach all of them.
 */
export function planFaults(
  seed: number,
  durationMs: number,
): Readonly<Record<Lane, readonly PlannedFault[]>> {
  const plan = (lane: Lane, place: number): readonly PlannedFault[] =>
    planLane(lane, durationMs, createRandom(seed * 31 + place));
  return {
    processes: plan("processes", 1),
    database: plan("database", 2),
    broker: plan("broker", 3),
    network: plan("network", 7),
    receivers: plan("receivers", 4),
    owners: plan("owners", 5),
    removals: plan("removals", 6),
  };
}

/**
 * Returns the same faults as one sequence: the first of each lane, then the second of each, until
 * one lane has no more.
 */
export function inTurns(plan: Readonly<Record<Lane, readonly PlannedFault[]>>): readonly PlannedFault[] {
  const lanes = Object.values(plan);
  const turns = Math.min(...lanes.map(({ length }) => length));
  return Array.from({ length: turns }, (_, turn) =>
    lanes.flatMap((lane) => lane.slice(turn, turn + 1)),
  ).flat();
}

function planLane(lane: Lane, durationMs: number, random: () => number): readonly PlannedFault[] {
  const within = ({ leastMs, mostMs }: Range): number => Math.round(leastMs + random() * (mostMs - leastMs));
  const planned: PlannedFault[] = [];
  let left: FaultKind[] = [];
  for (let at = 0; at < durationMs;) {
    if (left.length === 0) left = [...faultKinds[lane]];
    const [kind] = left.splice(Math.floor(random() * left.length), 1) as [FaultKind];
    const isLong = kind.endsWith("stopped") && durationMs >= leastForLongStopsMs && random() < 0.25;
    const waitMs = within(waits[lane]);
    const holdMs = within(isLong ? pastLeases : holds[kind]);
    const target = Math.floor(random() * (lane === "owners" ? ownedWebhooks : 2));
    const areBoth = lane === "processes" && random() < 0.2;
    planned.push({ lane, kind, waitMs, holdMs, targets: areBoth ? [0, 1] : [target] });
    at += waitMs + holdMs;
  }
  return planned;
}

/** Creates a generator of numbers in [0, 1) from the seed (mulberry32). */
function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
