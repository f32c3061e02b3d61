import { createHash } from "node:crypto";
import { setBounded } from "../../kit/bounded-map.ts";
import type { Used } from "./receiver-slots.ts";

/**
 * The share of one dispatcher in slots that are limited over all dispatchers. It lives as long as
 * the process: after a reload, attempts of the previous configuration still count.
 */
export interface SharedSlots {
  /**
   * Sets the ids of the live dispatchers. They include the id of this dispatcher once the others
   * can read its row.
   */
  see(ids: readonly string[]): void;
  /** Returns the number of live dispatchers, including this one. */
  dispatchers(): number;
  /** Returns this dispatcher's current share of `limit` attempts to an origin. */
  shareOf(origin: string, limit: number): number;
  /** Returns this process's usage of an origin's slots. */
  usedOf(origin: string): Used;
  /** See `SharedLimit`. */
  readonly waiting: Set<() => void>;
  /** Sets the one listener that is called when the shares have changed. */
  watch(listener: () => void): void;
}

interface Options {
  readonly id: string;
  /** Time within which every other dispatcher reads the list. */
  readonly joinAfterMs: number;
  /** Monotonic clock, in ms. */
  readonly now: () => number;
}

interface State extends Options {
  ids: readonly string[];
  /** Since when the others can see this dispatcher; undefined while they cannot. */
  seenSinceMs: number | undefined;
  isJoined: boolean;
  /** Number of dispatchers that come before this one, by origin. */
  readonly positions: Map<string, number>;
  /** Usage by origin. Idle entries are kept for a while, the latest at the end. */
  readonly used: Map<string, Used>;
}

const mostKept = 1_000;

/**
 * Creates the share of a dispatcher. Each dispatcher computes its own share and requests no slots
 * from others.
 *
 * For each origin, a hash gives the dispatchers a different order. The slots are dealt out in that
 * order, one each, until there are none. A longer list of dispatchers therefore never gives a
 * dispatcher more slots. The limit holds while each dispatcher knows all dispatchers that send. A
 * new dispatcher waits until the others have read its row.
 */
export function createSharedSlots(options: Options): SharedSlots {
  const state: State = {
    ...options,
    ids: [],
    seenSinceMs: undefined,
    isJoined: false,
    positions: new Map(),
    used: new Map(),
  };
  const waiting = new Set<() => void>();
  let onChange: (() => void) | undefined;
  return {
    waiting,
    see(ids) {
      if (!see(state, ids)) return;
      for (const admit of waiting) admit();
      onChange?.();
    },
    watch(listener) {
      onChange = listener;
    },
    dispatchers: () => Math.max(1, state.ids.length),
    shareOf(origin, limit) {
      if (!state.isJoined) return 0;
      const left = limit - positionOf(state, origin);
      return Math.max(0, Math.ceil(left / state.ids.length));
    },
    usedOf: (origin) => usedOf(state, origin),
  };
}

/** Updates the list of dispatchers. Returns whether the shares have changed. */
function see(state: State, ids: readonly string[]): boolean {
  const { id, joinAfterMs, now, positions, isJoined: wasJoined } = state;
  const isOther = ids.join() !== state.ids.join();
  if (isOther) positions.clear();
  state.ids = ids;
  // The others do not count a dispatcher without a fresh row. When it has one again, it joins like
  // a new one.
  const isSeen = ids.includes(id);
  state.seenSinceMs = isSeen ? (state.seenSinceMs ?? now()) : undefined;
  state.isJoined =
    isSeen && (wasJoined || ids.length === 1 || now() - (state.seenSinceMs ?? 0) >= joinAfterMs);
  return isOther || state.isJoined !== wasJoined;
}

function positionOf({ id, ids, positions }: State, origin: string): number {
  const known = positions.get(origin);
  if (known !== undefined) return known;
  const own = keyOf(id, origin);
  const position = ids.filter((other) => keyOf(other, origin) < own).length;
  setBounded(positions, [origin, position], mostKept);
  return position;
}

function keyOf(id: string, origin: string): string {
  return createHash("sha256").update(`${id} ${origin}`).digest("hex");
}

function usedOf({ used }: State, origin: string): Used {
  const found = used.get(origin) ?? { inUse: 0, pending: 0 };
  used.delete(origin);
  used.set(origin, found);
  for (const [name, { inUse, pending }] of used) {
    if (used.size <= mostKept) break;
    if (inUse + pending === 0 && name !== origin) used.delete(name);
  }
  return found;
}
