import type { BreakerCounts } from "../../telemetry/metrics/receivers.ts";

/** What an attempt came to, as far as its receiver's breaker is concerned. */
export type AttemptCost =
  /** A complete answer, of whatever status: somebody is there. */
  | "answered"
  /** None, after the attempt had held its slot for a while. */
  | "costly"
  /** None, but that was known at once. */
  | "cheap"
  /** No attempt was made after all. */
  | "unmade";

export type Permission = { readonly kind: "go"; readonly isProbe: boolean } | { readonly kind: "wait" };

/**
 * One breaker per receiver: after `failuresToOpen` costly attempts in a row it opens, and the receiver is left alone for a pause; then
 * one attempt, the probe, decides. An answer closes it; none opens it again, for twice as long.
 */
export interface Breakers {
  /** Whether `ask` would answer `go`. */
  mayAsk(receiver: string): boolean;
  /** Asks for one attempt, which `tell` must follow when the answer is `go`. */
  ask(receiver: string): Permission;
  /** Answers what this did to the breaker, when it opened or closed it. */
  tell(options: {
    readonly receiver: string;
    readonly isProbe: boolean;
    readonly cost: AttemptCost;
  }): "opened" | "closed" | undefined;
  counts(): BreakerCounts;
}

type State =
  | { readonly kind: "closed"; readonly failures: number }
  /** Half open once the pause is over. */
  | { readonly kind: "open"; readonly pauseMs: number; readonly untilMs: number }
  | { readonly kind: "probing"; readonly pauseMs: number };

export const failuresToOpen = 10;
const longestPauses = 20;
const pauseJitter = 0.1;
/** A key is at most some 2 KiB long, so that this is 20 MiB at worst. Forgetting a breaker closes it, and it would open again. */
const mostReceivers = 10_000;

/**
 * @param firstPauseMs The longest pause is twenty times as long.
 * @param now In ms, never going back.
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
  // Only receivers that owe an answer; those that failed last are at the end.
  const breakers = new Map<string, State>();

  function remember(receiver: string, state: State): void {
    breakers.delete(receiver);
    const [oldest] = breakers.keys();
    if (oldest !== undefined && breakers.size >= mostReceivers) breakers.delete(oldest);
    breakers.set(receiver, state);
  }

  function openFor(receiver: string, pauseMs: number): void {
    // Receivers that failed together, for a fault of this side, are not tried again all at once.
    const jitteredMs = pauseMs * (1 + pauseJitter * (2 * random() - 1));
    remember(receiver, { kind: "open", pauseMs, untilMs: now() + jitteredMs });
  }

  /** @returns Whether the breaker opened. */
  function fail(receiver: string, isProbe: boolean, cost: "costly" | "cheap"): boolean {
    const state = breakers.get(receiver) ?? { kind: "closed", failures: 0 };
    switch (state.kind) {
      case "closed":
        if (cost === "cheap") return false;
        if (state.failures + 1 >= failuresToOpen) {
          openFor(receiver, firstPauseMs);
          return true;
        }
        remember(receiver, { kind: "closed", failures: state.failures + 1 });
        return false;
      case "probing":
        if (isProbe) openFor(receiver, Math.min(2 * state.pauseMs, longestPauses * firstPauseMs));
        return false;
      case "open":
        // Of an attempt that began before.
        return false;
    }
  }

  return {
    mayAsk(receiver) {
      const state = breakers.get(receiver);
      return state?.kind !== "probing" && !(state?.kind === "open" && now() < state.untilMs);
    },
    ask(receiver) {
      const state = breakers.get(receiver);
      if (state === undefined || state.kind === "closed") return { kind: "go", isProbe: false };
      if (state.kind === "probing" || now() < state.untilMs) return { kind: "wait" };
      breakers.set(receiver, { kind: "probing", pauseMs: state.pauseMs });
      return { kind: "go", isProbe: true };
    },
    tell({ receiver, isProbe, cost }) {
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
    counts() {
      let open = 0;
      let halfOpen = 0;
      for (const state of breakers.values()) {
        if (state.kind === "open" && now() < state.untilMs) open += 1;
        else if (state.kind !== "closed") halfOpen += 1;
      }
      return { open, halfOpen };
    },
  };
}
