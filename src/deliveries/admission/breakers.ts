import { setBounded } from "../../kit/bounded-map.ts";
import type { BreakerCounts } from "../../telemetry/metrics/receivers.ts";

/** Result of an attempt as its receiver's breaker counts it. */
export type AttemptCost =
  /** A complete answer, with any status. */
  | "answered"
  /** No answer, and the attempt held its slot for a while. */
  | "costly"
  /** No answer, and the attempt failed at once. */
  | "cheap"
  /** No attempt was made. */
  | "unmade";

/** Permission for an attempt. The result of a probe closes the breaker or opens it again. */
type Permission = "go" | "probe" | "wait";

/**
 * One breaker per receiver. After `failuresToOpen` costly attempts in a row it opens, and the
 * receiver gets no attempts for a pause. Then one attempt, the probe, decides: an answer closes the
 * breaker, no answer opens it again for twice as long.
 */
export interface Breakers {
  /** Returns whether `tryAcquire` would permit an attempt. */
  mayAcquire(receiver: string): boolean;
  /** Requests one attempt. The caller must call `report`, unless the result is `wait`. */
  tryAcquire(receiver: string): Permission;
  /** Reports an attempt. Returns whether it opened or closed the breaker; undefined for neither. */
  report(options: {
    readonly receiver: string;
    readonly isProbe: boolean;
    readonly cost: AttemptCost;
  }): "opened" | "closed" | undefined;
  /** Returns the pause of a breaker that is open or being probed; undefined for others. */
  openOf(receiver: string): OpenBreaker | undefined;
  /** Takes over a breaker that another process has opened, and whose pause is over. */
  adopt(receiver: string, pauseMs: number): void;
  /** Closes a breaker, because another process got an answer. */
  close(receiver: string): void;
  counts(): BreakerCounts;
}

/** A breaker that lets no attempt through for now, except its probe. */
export interface OpenBreaker {
  readonly pauseMs: number;
  /** The end of the pause, or the latest end of its probe. */
  readonly untilMs: number;
}

type State =
  | { readonly kind: "closed"; readonly failures: number }
  /** Counts as half open once the pause is over. */
  | { readonly kind: "open"; readonly pauseMs: number; readonly untilMs: number }
  | { readonly kind: "probing"; readonly pauseMs: number };

/** Costly attempts in a row that open a breaker. */
export const failuresToOpen = 10;
const longestPauses = 20;
const pauseJitter = 0.1;
/**
 * A key has at most about 2 KiB, so this is 20 MiB at worst. A dropped breaker counts as closed,
 * and opens again after the next failures.
 */
const mostReceivers = 10_000;

/**
 * @param firstPauseMs The longest pause is twenty times as long.
 * @param now Monotonic clock, in ms.
 */
export function createBreakers({
  firstPauseMs,
  now,
  random,
}: {
  readonly firstPauseMs: number;
  readonly now: () => number;
  readonly random: () => number;
}): Breakers {
  // Contains only receivers whose last attempt had no answer. The latest failures are at the end.
  const breakers = new Map<string, State>();

  function remember(receiver: string, state: State): void {
    setBounded(breakers, [receiver, state], mostReceivers);
  }

  function openFor(receiver: string, pauseMs: number): void {
    // With jitter, receivers that failed together through a fault on this side are not all probed
    // at once.
    const jitteredMs = pauseMs * (1 + pauseJitter * (2 * random() - 1));
    remember(receiver, { kind: "open", pauseMs, untilMs: now() + jitteredMs });
  }

  /** @returns Whether the breaker opened. */
  function fail(receiver: string, isProbe: boolean, cost: "costly" | "cheap"): boolean {
    const state = breakers.get(receiver) ?? { kind: "closed", failures: 0 };
    switch (state.kind) {
      case "closed": {
        if (cost === "cheap") return false;
        const failures = state.failures + 1;
        if (failures < failuresToOpen) remember(receiver, { kind: "closed", failures });
        else openFor(receiver, firstPauseMs);
        return failures >= failuresToOpen;
      }
      case "probing":
        if (isProbe) openFor(receiver, Math.min(2 * state.pauseMs, longestPauses * firstPauseMs));
        return false;
      case "open":
        // The attempt began before the breaker opened.
        return false;
    }
  }

  return {
    mayAcquire(receiver) {
      const state = breakers.get(receiver);
      return state?.kind !== "probing" && !(state?.kind === "open" && now() < state.untilMs);
    },
    tryAcquire(receiver) {
      const state = breakers.get(receiver);
      if (state === undefined || state.kind === "closed") return "go";
      if (state.kind === "probing" || now() < state.untilMs) return "wait";
      breakers.set(receiver, { kind: "probing", pauseMs: state.pauseMs });
      return "probe";
    },
    report({ receiver, isProbe, cost }) {
      const state = breakers.get(receiver);
      if (cost === "answered") {
        breakers.delete(receiver);
        return state === undefined || state.kind === "closed" ? undefined : "closed";
      }
      if (cost !== "unmade") return fail(receiver, isProbe, cost) ? "opened" : undefined;
      if (isProbe && state?.kind === "probing")
        breakers.set(receiver, { kind: "open", pauseMs: state.pauseMs, untilMs: now() });
      return undefined;
    },
    openOf: (receiver) => openOf(breakers.get(receiver), now() + 2 * firstPauseMs),
    adopt(receiver, pauseMs) {
      // The longer of two pauses is the later one: a pause doubles with each probe.
      const state = breakers.get(receiver);
      if (state?.kind !== "probing" && !(state?.kind === "open" && state.pauseMs >= pauseMs))
        remember(receiver, { kind: "open", pauseMs, untilMs: now() });
    },
    close(receiver) {
      // The probe of this process has its own result.
      if (breakers.get(receiver)?.kind === "open") breakers.delete(receiver);
    },
    counts: () => countsOf([...breakers.values()], now()),
  };
}

function openOf(state: State | undefined, probedUntilMs: number): OpenBreaker | undefined {
  if (state === undefined || state.kind === "closed") return undefined;
  return { pauseMs: state.pauseMs, untilMs: state.kind === "open" ? state.untilMs : probedUntilMs };
}

function countsOf(states: readonly State[], nowMs: number): BreakerCounts {
  const isOpen = (state: State): boolean => state.kind === "open" && nowMs < state.untilMs;
  return {
    open: states.filter(isOpen).length,
    halfOpen: states.filter((state) => state.kind !== "closed" && !isOpen(state)).length,
  };
}
