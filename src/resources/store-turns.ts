import { getOrSet } from "../kit/group-by.ts";
import { createTurns } from "../kit/turns.ts";
import type { RecordStore } from "./record-store.ts";

/** Turns of the requests for single records. */
export interface RecordTurns {
  /** Runs `act` when the user has a turn of the resource. */
  run<T>(resource: string, userId: number, act: () => Promise<T>): Promise<T>;
}

interface Resource {
  /** Number of turns taken, in all and of each user. */
  taken: number;
  readonly ofUsers: Map<number, number>;
  /** In the order of their arrival. */
  readonly waiting: Set<{ readonly userId: number; readonly begin: () => void }>;
}

const newResource = (): Resource => ({ taken: 0, ofUsers: new Map(), waiting: new Set() });

/**
 * Creates the turns. A locked table blocks no more than its resource's share of the connections. No
 * user has more than that over all resources.
 *
 * A user alone may fill a resource with writes that wait for its own batch. So there is one further
 * turn, for a user without a turn there. Without it, that user's read took as long as the batch: up
 * to 30 s.
 *
 * @param places Turns of a resource, and of a user.
 */
export function createRecordTurns(places: number): RecordTurns {
  const users = createTurns(places);
  const resources = new Map<string, Resource>();

  const mayBegin = ({ taken, ofUsers }: Resource, userId: number): boolean =>
    taken < places || (taken === places && !ofUsers.has(userId));

  function begin(resource: Resource, userId: number): void {
    resource.taken += 1;
    resource.ofUsers.set(userId, (resource.ofUsers.get(userId) ?? 0) + 1);
  }

  function leave(resource: Resource, userId: number): void {
    const { ofUsers, waiting } = resource;
    resource.taken -= 1;
    const left = (ofUsers.get(userId) ?? 1) - 1;
    if (left > 0) ofUsers.set(userId, left);
    else ofUsers.delete(userId);
    for (const one of waiting) {
      if (!mayBegin(resource, one.userId)) continue;
      waiting.delete(one);
      begin(resource, one.userId);
      one.begin();
    }
  }

  return {
    run: (name, userId, act) =>
      users.run(userId, async () => {
        const resource = getOrSet(resources, name, newResource);
        if (mayBegin(resource, userId)) begin(resource, userId);
        else await new Promise<void>((resolve) => resource.waiting.add({ userId, begin: resolve }));
        try {
          return await act();
        } finally {
          leave(resource, userId);
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
