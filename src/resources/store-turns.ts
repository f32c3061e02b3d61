import { createTurns } from "../kit/turns.ts";
import type { RecordStore } from "./record-store.ts";

/** Turns of the requests for single records. */
export interface RecordTurns {
  /** Runs `act` when the user has a turn of the resource. */
  run<T>(resource: string, userId: number, act: () => Promise<T>): Promise<T>;
}

/**
 * Creates the turns. A locked table blocks no more than its resource's share of the connections. No
 * user has more than that over all resources.
 *
 * A user alone may fill a resource with writes that wait for its own batch. Users who have no turn
 * there share a spare place. Otherwise their reads took as long as the batch: up to 30 s.
 *
 * @param places Turns of a resource, and of a user.
 */
export function createRecordTurns(places: number): RecordTurns {
  const users = createTurns(places);
  const resources = createTurns<string>(places);
  const spare = createTurns<string>(1);
  /** Number of turns that a user has or waits for, by resource and user. */
  const open = new Map<string, number>();
  return {
    run: (resource, userId, act) =>
      users.run(userId, async () => {
        const id = `${resource} ${userId}`;
        const count = open.get(id) ?? 0;
        if (count === 0 && !resources.isFree(resource)) return spare.run(resource, act);
        open.set(id, count + 1);
        try {
          return await resources.run(resource, act);
        } finally {
          const left = (open.get(id) ?? 1) - 1;
          if (left > 0) open.set(id, left);
          else open.delete(id);
        }
      }),
  };
}

/**
 * Returns a store whose requests for single records take turns. Lists take turns for each
 * statement, see `ListDatabase`.
 *
 * @param name Name of the resource.
 */
export function takingTurns(
  store: RecordStore,
  { name, userId, turns }: { readonly name: string; readonly userId: number; readonly turns: RecordTurns },
): RecordStore {
  const run = <T>(act: () => Promise<T>): Promise<T> => turns.run(name, userId, act);
  return {
    ...store,
    find: (key, read) => run(() => store.find(key, read)),
    version: (key) => run(() => store.version(key)),
    create: (options) => run(() => store.create(options)),
    update: (key, options) => run(() => store.update(key, options)),
    remove: (key, conditions) => run(() => store.remove(key, conditions)),
  };
}
