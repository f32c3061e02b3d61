import { addCount } from "../kit/add-count.ts";
import { isLockWaitOver } from "../db/database-fault.ts";
import { getOrSet } from "../kit/group-by.ts";
import { createTurns } from "../kit/turns.ts";
import type { RecordStore } from "./record-store.ts";

/** Turns of the requests for single records. */
export interface RecordTurns {
  /** Runs `act` when the user has a turn of the resource. */
  run<T>(resource: string, userId: number, act: () => Promise<T>): Promise<T>;
  /**
   * The same for a write. While half of the connections may wait for locks, `act` is hasty: it must
   * give up soon on a lock. It is then run again, and may wait.
   */
  runWrite<T>(resource: string, userId: number, act: (isHasty: boolean) => Promise<T>): Promise<T>;
}

/** Turns that are taken, in all and by each user. */
interface Share {
  /** Number of turns. There is one more for a user without a turn. */
  readonly places: number;
  taken: number;
  readonly ofUsers: Map<number, number>;
}

const newShare = (places: number): Share => ({ places, taken: 0, ofUsers: new Map() });

const mayBegin = ({ places, taken, ofUsers }: Share, userId: number): boolean =>
  taken < places || (taken === places && !ofUsers.has(userId));

function count(share: Share, userId: number, more: 1 | -1): void {
  share.taken += more;
  addCount(share.ofUsers, userId, more);
}

/**
 * Creates the turns. A locked table blocks no more than its resource's share of the connections. No
 * user has more than that over all resources.
 *
 * A single user may fill a resource with writes that wait for its own batch. So there is one
 * further turn, for a user without a turn there. Without it, that user's read took as long as the
 * batch: up to 30 s. Two users may fill all connections in the same way, so the last connection is
 * for a user without one.
 *
 * Only half of the connections may wait for locks. Otherwise four users could let a write wait for
 * the same row on each of them. No user's token was found then for 30 s.
 *
 * @param places Turns of a resource, and of a user.
 * @param connections Connections for the requests of all users.
 */
export function createRecordTurns({
  places,
  connections,
}: {
  readonly places: number;
  readonly connections: number;
}): RecordTurns {
  const users = createTurns(places);
  const all = newShare(connections - 1);
  const patient = newShare(Math.max(1, Math.floor(connections / 2) - 1));
  const resources = new Map<string, Share>();
  /** In the order of their arrival. */
  const waiting = new Set<{ readonly shares: readonly Share[]; userId: number; begin: () => void }>();

  const begins = (shares: readonly Share[], userId: number): boolean => {
    if (!shares.every((share) => mayBegin(share, userId))) return false;
    for (const share of shares) count(share, userId, 1);
    return true;
  };

  function leave(shares: readonly Share[], userId: number): void {
    for (const share of shares) count(share, userId, -1);
    for (const one of waiting) {
      if (!begins(one.shares, one.userId)) continue;
      waiting.delete(one);
      one.begin();
    }
  }

  async function run<T>(
    name: string,
    userId: number,
    act: () => Promise<T>,
    further: readonly Share[] = [],
  ): Promise<T> {
    return users.run(userId, async () => {
      const shares = [...further, all, getOrSet(resources, name, () => newShare(places))];
      if (!begins(shares, userId))
        await new Promise<void>((resolve) => waiting.add({ shares, userId, begin: resolve }));
      try {
        return await act();
      } finally {
        leave(shares, userId);
      }
    });
  }

  return {
    run,
    async runWrite(name, userId, act) {
      let isHasty = false;
      try {
        return await run(name, userId, async () => {
          isHasty = !begins([patient], userId);
          try {
            return await act(isHasty);
          } finally {
            if (!isHasty) leave([patient], userId);
          }
        });
      } catch (error) {
        if (!isHasty || !isLockWaitOver(error)) throw error;
        return run(name, userId, () => act(false), [patient]);
      }
    },
  };
}

/**
 * Returns a store whose requests for single records take turns. Lists take turns for each
 * statement, see `ListDatabase`.
 *
 * @param hasty The same store, whose writes give up soon on a lock.
 * @param name Name of the resource.
 */
export function takingTurns(
  store: RecordStore,
  hasty: RecordStore,
  { name, userId, turns }: { readonly name: string; readonly userId: number; readonly turns: RecordTurns },
): RecordStore {
  const run = <T>(act: () => Promise<T>): Promise<T> => turns.run(name, userId, act);
  const write = <T>(act: (one: RecordStore) => Promise<T>): Promise<T> =>
    turns.runWrite(name, userId, (isHasty) => act(isHasty ? hasty : store));
  return {
    ...store,
    find: (key, read) => run(() => store.find(key, read)),
    version: (key) => run(() => store.version(key)),
    create: (options) => write((one) => one.create(options)),
    update: (key, options) => write((one) => one.update(key, options)),
    remove: (key, conditions) => write((one) => one.remove(key, conditions)),
  };
}
