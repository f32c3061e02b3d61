import type { Turns } from "../kit/turns.ts";
import type { RecordStore } from "./record-store.ts";

/**
 * Returns a store whose requests for single records take turns. A locked table blocks no more than
 * its resource's share of the connections. Lists take turns for each statement, see `ListDatabase`.
 *
 * @param records Turns of the requests, by the name of the resource.
 */
export function takingTurns(store: RecordStore, name: string, records: Turns<string>): RecordStore {
  return {
    ...store,
    find: (key, read) => records.run(name, () => store.find(key, read)),
    version: (key) => records.run(name, () => store.version(key)),
    create: (options) => records.run(name, () => store.create(options)),
    update: (key, options) => records.run(name, () => store.update(key, options)),
    remove: (key, conditions) => records.run(name, () => store.remove(key, conditions)),
  };
}
