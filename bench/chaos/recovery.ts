import { spreadOf, type Spread } from "../numbers.ts";
import { type Arrival, isReceived } from "./ledger.ts";
import type { FaultKind, PlannedFault } from "./schedule.ts";

/** A fault with its times. */
export interface DoneFault extends PlannedFault {
  readonly startedAtMs: number;
  /**
   * When the harness had healed the fault: the server answers, the process is started, the receiver
   * answers.
   */
  readonly healedAtMs: number;
}

/** A duration from the end of a fault. */
export interface Span {
  readonly ms: number;
  /**
   * Whether another fault of processes, database, broker or network overlapped and may have
   * affected it.
   */
  readonly isDisturbed: boolean;
}

/**
 * Time that the system took to recover after a fault was healed; undefined when nothing showed it
 * before the load ended.
 */
export interface Recovery {
  readonly kind: FaultKind;
  /**
   * Time until a later change of each source had arrived at the receiver that never fails. For a
   * fault of a receiver: until a later change of any source had arrived at that receiver.
   */
  readonly flowing: Span | undefined;
  /** Time until all changes from shortly before the fault to its end had arrived there. */
  readonly caughtUp: Span | undefined;
}

/** The part of a change that names its source: `on_create <source> 17`. */
const sourceOf = (change: string): string => change.split(" ")[1] ?? "";
/** Changes made this long before a fault were under way when it came. */
const beforeMs = 2_000;

/**
 * Computes the recoveries from the arrivals. Pure.
 *
 * @param steady The receiver that never fails.
 * @param faulty The receivers that `targets` of their faults name.
 * @param sources Sources that write all the time.
 */
export function recoveriesOf({
  faults,
  arrivals,
  steady,
  faulty,
  owned,
  sources,
}: {
  readonly faults: readonly DoneFault[];
  readonly arrivals: readonly Arrival[];
  readonly steady: number;
  readonly faulty: readonly number[];
  /** Paths of the webhooks that their owners change, in the order of `targets`. */
  readonly owned: readonly string[];
  readonly sources: readonly string[];
}): readonly Recovery[] {
  const firsts = firstReceipts(arrivals);
  const seenBy = new Map(
    [steady, ...faulty].map((one) => [one, firsts.filter(({ receiver }) => receiver === one)]),
  );
  const seenOf = ({ lane, targets: [target = 0] }: DoneFault): readonly Arrival[] =>
    lane === "owners"
      ? firsts.filter(({ path }) => path === owned[target])
      : (seenBy.get(lane === "receivers" ? (faulty[target] ?? steady) : steady) ?? []);
  return faults.map((fault) => {
    const isOfOne = fault.lane === "receivers" || fault.lane === "owners";
    const seen = seenOf(fault);
    const flowingMs = isOfOne
      ? untilFlowing(fault, seen)
      : latest(
          sources.map((source) =>
            untilFlowing(
              fault,
              seen.filter(({ change }) => sourceOf(change) === source),
            ),
          ),
        );
    const spanOf = (ms: number | undefined): Span | undefined =>
      ms === undefined ? undefined : { ms, isDisturbed: isDisturbed(fault, ms, faults) };
    return { kind: fault.kind, flowing: spanOf(flowingMs), caughtUp: spanOf(untilCaughtUp(fault, seen)) };
  });
}

export interface KindRecovery {
  readonly kind: FaultKind;
  readonly count: number;
  readonly flowing: Spans;
  readonly caughtUp: Spans;
}

/** Durations in ms. */
export interface Spans {
  /** Those that no other fault disturbed. */
  readonly alone: Spread;
  readonly disturbed: Spread;
}

/** Returns one row for each kind of fault, in the order of their first occurrence. */
export function byKind(recoveries: readonly Recovery[]): readonly KindRecovery[] {
  return [...new Set(recoveries.map(({ kind }) => kind))].map((kind) => {
    const all = recoveries.filter((one) => one.kind === kind);
    return {
      kind,
      count: all.length,
      flowing: spansOf(all.map(({ flowing }) => flowing)),
      caughtUp: spansOf(all.map(({ caughtUp }) => caughtUp)),
    };
  });
}

function spansOf(spans: readonly (Span | undefined)[]): Spans {
  const those = (areDisturbed: boolean): Spread =>
    spreadOf(spans.flatMap((span) => (span?.isDisturbed === areDisturbed ? [span.ms] : [])));
  return { alone: those(false), disturbed: those(true) };
}

function isDisturbed(fault: DoneFault, ms: number, faults: readonly DoneFault[]): boolean {
  return faults.some(
    (other) =>
      other !== fault &&
      isOfAll(other) &&
      other.startedAtMs < fault.healedAtMs + ms &&
      other.healedAtMs > fault.healedAtMs,
  );
}

function isOfAll({ lane }: DoneFault): boolean {
  return ["processes", "database", "broker", "network"].includes(lane);
}

/** Returns the first POST of each delivery that was answered with 2xx. */
function firstReceipts(arrivals: readonly Arrival[]): readonly Arrival[] {
  const firsts = new Map<string, Arrival>();
  for (const arrival of arrivals) {
    const first = firsts.get(arrival.delivery);
    const isFirst = first === undefined || arrival.receivedAtMs < first.receivedAtMs;
    if (isReceived(arrival) && isFirst) firsts.set(arrival.delivery, arrival);
  }
  return [...firsts.values()];
}

function untilFlowing({ healedAtMs }: DoneFault, seen: readonly Arrival[]): number | undefined {
  const times = seen.filter(({ occurredAtMs }) => occurredAtMs >= healedAtMs);
  return times.length === 0
    ? undefined
    : times.reduce((least, { receivedAtMs }) => Math.min(least, receivedAtMs), Infinity) - healedAtMs;
}

function untilCaughtUp({ startedAtMs, healedAtMs }: DoneFault, seen: readonly Arrival[]): number | undefined {
  const made = seen.filter(
    ({ occurredAtMs }) => occurredAtMs >= startedAtMs - beforeMs && occurredAtMs <= healedAtMs,
  );
  if (made.length === 0) return undefined;
  return made.reduce((most, { receivedAtMs }) => Math.max(most, receivedAtMs - healedAtMs), 0);
}

/** Returns the largest time; undefined when one is undefined. */
function latest(times: readonly (number | undefined)[]): number | undefined {
  return defined(times).length === times.length ? Math.max(...defined(times)) : undefined;
}

function defined(values: readonly (number | undefined)[]): readonly number[] {
  return values.filter((value) => value !== undefined);
}
