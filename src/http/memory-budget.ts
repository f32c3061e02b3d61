import { getHeapStatistics } from "node:v8";
import { totalmem } from "node:os";
import { overloadedError } from "../kit/errors.ts";
import { getOrSet } from "../kit/group-by.ts";
import { leastBudgetOf } from "../kit/memory-weights.ts";
import { createMemoryLedger, type MemoryLedger } from "./memory-ledger.ts";
import type { ApiMiddleware, RequestMemory } from "./state.ts";

/** The memory that all requests in flight share. */
export interface MemoryBudget {
  open(userId: number): OpenRequest;
}

export interface OpenRequest extends RequestMemory {
  /**
   * Ends the wait of the request, and refuses it more memory, since its client has left. The
   * request keeps its memory.
   */
  leave(): void;
  /** Returns all memory of the request. */
  release(): void;
}

/**
 * Limit of the wait: clients give up after that, and a longer queue would only hold more requests.
 */
const defaultWaitMs = 2000;

interface Waiting {
  readonly userId: number;
  /** The bytes that its request has. */
  readonly held: number;
  /** The bytes that the request waits for, in addition to those that it has. */
  readonly bytes: number;
  /** Called when the request has been given the bytes. */
  readonly grant: () => void;
  /** Ends the wait, and takes the memory of the request back. */
  readonly refuse: () => void;
}

interface Limits {
  readonly limitBytes: number;
  readonly waitMs?: number;
  readonly patienceMs?: number;
}

/**
 * Shares `limitBytes` between the requests in flight, so that they cannot end the process. One user
 * has at most half. Waiting requests are served in order, but those of a user at that limit do not
 * block others. When all requests with memory wait for more, the last one is refused. Otherwise all
 * of them would be refused when their wait ends.
 *
 * Two users could hold both halves with bodies that never end, or with answers that they do not
 * read. Such requests lose their memory after `patienceMs`, to a user with less memory. Users who
 * hold little share some memory beyond the limit.
 */
export function createMemoryBudget(limits: Limits): MemoryBudget {
  const shares = createShares(limits);
  return { open: (userId) => openRequest(shares, userId) };
}

/** The memory of the requests in flight, and the queue of those that wait for more. */
interface Shares extends Pick<MemoryLedger, "limitOfUser" | "isLittle" | "fits" | "take" | "lend"> {
  readonly limitBytes: number;
  isWaitedFor(): boolean;
  /** Gives the user `bytes` more, or takes them back where `bytes` is negative. */
  add(userId: number, bytes: number): void;
  /**
   * Waits until the user has the bytes. Calls `grant` then, or `refuse` after a wait that took too
   * long or could not end. Returns a function that stops the wait.
   */
  wait(given: Waiting): () => void;
}

function createShares({ limitBytes, waitMs = defaultWaitMs, patienceMs }: Limits): Shares {
  const ledger = createMemoryLedger(limitBytes, patienceMs);
  const { hasShare, isLittle, fits, count } = ledger;
  const queue = new Set<Waiting>();

  function grantWaiting(): void {
    let isFull = false;
    for (const waiting of queue) {
      const { userId, bytes, grant } = waiting;
      if (!hasShare(userId, bytes)) continue;
      // Behind the first request that does not fit, only users with little get memory. Otherwise
      // small requests would delay a large one forever.
      if (isFull && !isLittle(userId, bytes)) continue;
      if (fits(userId, bytes)) {
        queue.delete(waiting);
        count(userId, bytes);
        grant();
      } else isFull = true;
    }
  }

  /** Serves the queue after the memory of this user has changed. */
  function serve(userId: number): void {
    grantWaiting();
    if (queue.size > 1) lastStuck([...queue], ledger, userId)?.refuse();
  }

  return {
    ...ledger,
    limitBytes,
    isWaitedFor: () => queue.size > 0,
    add(userId, bytes) {
      count(userId, bytes);
      if (bytes < 0) serve(userId);
    },
    take(userId, bytes) {
      const isTaken = ledger.take(userId, bytes);
      // Others may have lost more than was missing.
      grantWaiting();
      return isTaken;
    },
    wait(given) {
      const stop = (): void => {
        clearTimeout(timer);
        // Requests that fit may have waited behind this one.
        if (queue.delete(waiting)) grantWaiting();
      };
      const refuse = (): void => {
        stop();
        given.refuse();
      };
      /** Takes memory from other requests to end the wait. Returns whether that succeeded. */
      const borrow = (): boolean => {
        const { userId, bytes } = given;
        // When memory is already free, requests before this one wait for it.
        const isTaken = !fits(userId, bytes) && ledger.take(userId, bytes);
        if (isTaken) {
          queue.delete(waiting);
          waiting.grant();
        }
        grantWaiting();
        return isTaken;
      };
      const timer = setTimeout(() => borrow() || refuse(), waitMs);
      const waiting: Waiting = {
        ...given,
        grant() {
          clearTimeout(timer);
          given.grant();
        },
        refuse,
      };
      queue.add(waiting);
      // All earlier requests may belong to users at their limit.
      serve(given.userId);
      if (queue.has(waiting)) borrow();
      return stop;
    },
  };
}

/** Returns a request to refuse when all of a user, or of all users, wait for one another. */
function lastStuck(
  queue: readonly Waiting[],
  { hasShare, heldBy, held }: MemoryLedger,
  userId: number,
): Waiting | undefined {
  const holding = queue.filter((one) => one.held > 0);
  const own = holding.filter((one) => one.userId === userId);
  // A request that fits into the user's half waits for memory of other users.
  const ofUser = own.some(({ bytes }) => hasShare(userId, bytes)) ? [] : own;
  return lastIfAll(ofUser, heldBy(userId)) ?? lastIfAll(holding, held());
}

/** Returns the last of several requests when together they have all of the bytes. */
function lastIfAll(waiting: readonly Waiting[], bytes: number): Waiting | undefined {
  const held = waiting.reduce((sum, one) => sum + one.held, 0);
  return waiting.length > 1 && held === bytes ? waiting.at(-1) : undefined;
}

function openRequest(shares: Shares, userId: number): OpenRequest {
  let own = 0;
  let [isLeft, isWaiting] = [false, false];
  let stopLending: (() => void) | undefined;
  let stopWaiting: (() => void) | undefined;
  const change = (bytes: number): void => {
    const more = bytes - own;
    own = bytes;
    shares.add(userId, more);
  };
  const leave = (): void => {
    isLeft = true;
    stopWaiting?.();
  };
  return {
    mostBytes: shares.limitBytes,
    reserve(asked) {
      // Limits a request to the share of a user: a larger request then runs alone instead of never.
      const more = Math.max(0, Math.min(asked, shares.limitOfUser) - own);
      if (more === 0 && shares.fits(userId, 0)) return Promise.resolve();
      if (isLeft) return Promise.reject(overloadedError());
      // A user who would hold little waits for no other user, who may wait for both halves.
      const isNext = !shares.isWaitedFor() || shares.isLittle(userId, more);
      if (isNext && shares.fits(userId, more)) {
        change(own + more);
        return Promise.resolve();
      }
      return new Promise((resolve, reject) => {
        isWaiting = true;
        const refuse = (): void => {
          isWaiting = false;
          // Releases at once, because others may wait for this memory and its content is dropped.
          change(0);
          reject(overloadedError());
        };
        const grant = (): void => {
          isWaiting = false;
          own += more;
          resolve();
        };
        const stop = shares.wait({ userId, held: own, bytes: more, grant, refuse });
        stopWaiting = () => {
          stop();
          reject(overloadedError());
        };
      });
    },
    settle(asked) {
      const bytes = Math.min(asked, shares.limitOfUser);
      const more = bytes - own;
      if (more <= 0) return change(bytes);
      if (isLeft || !shares.take(userId, more)) throw overloadedError();
      own = bytes;
    },
    hold(bytes) {
      // A released request would never return memory that it reserves now.
      if (!isLeft || bytes < own) change(bytes);
    },
    lend(onLost) {
      stopLending = shares.lend({
        userId,
        sinceMs: performance.now(),
        held: () => (isWaiting ? 0 : own),
        onLost() {
          own = 0;
          onLost();
        },
      });
      return stopLending;
    },
    leave,
    release() {
      leave();
      stopLending?.();
      change(0);
    },
  };
}

/**
 * Gives each request its memory, and the limit of its body. Comes after authentication. Takes the
 * memory back when the answer is sent and the work is done. A client that leaves does not end its
 * statement, nor its wait for a turn. When memory was released at that point, 200 bodies of 1 MB
 * ended a process of 512 MB.
 */
export function createRequestMemory(budget: MemoryBudget, bodyLimitBytes: number): ApiMiddleware {
  return async (ctx, next) => {
    const memory = budget.open(ctx.state.caller.id);
    let [isAtWork, isClosed] = [true, false];
    ctx.state.memory = memory;
    ctx.state.bodyLimitBytes = bodyLimitBytes;
    ctx.res.once("close", () => {
      isClosed = true;
      if (isAtWork) memory.leave();
      else memory.release();
    });
    try {
      await next();
    } finally {
      isAtWork = false;
      if (isClosed) memory.release();
      else
        memory.lend(() => {
          ctx.state.errorCode = "server.overloaded";
          ctx.res.destroy();
        });
    }
  };
}

/**
 * Creates a function that returns the budget of a limit, the same one each time. A reload seldom
 * changes the limit, and so keeps the requests in flight.
 */
export function createMemoryBudgets(): (limitBytes: number) => MemoryBudget {
  const budgets = new Map<number, MemoryBudget>();
  return (limitBytes) => getOrSet(budgets, limitBytes, () => createMemoryBudget({ limitBytes }));
}

/**
 * Returns a quarter of the memory of the process, and at least the memory of two of the largest
 * bodies. The cgroup, the machine, and the heap, which holds most of a request, limit the memory of
 * the process.
 */
export function defaultMemoryBudget(bodyLimitBytes: number): number {
  // The value is 0 when the system has no limit.
  const constrained = process.constrainedMemory() || Number.POSITIVE_INFINITY;
  const memory = Math.min(constrained, totalmem(), getHeapStatistics().heap_size_limit);
  return Math.max(Math.floor(memory / 4), leastBudgetOf(bodyLimitBytes));
}
