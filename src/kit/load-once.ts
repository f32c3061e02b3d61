import { getOrSet } from "./group-by.ts";

/** Returns a loader that calls `load` once for each name, and again after a failure. */
export function loadOnce<T>(load: (name: string) => Promise<T>): (name: string) => Promise<T> {
  const known = new Map<string, Promise<T>>();
  return (name) => {
    const loaded = getOrSet(known, name, () => load(name));
    loaded.catch(() => known.delete(name));
    return loaded;
  };
}
