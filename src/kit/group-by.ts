/** Returns the items by key, in their order. */
export function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): ReadonlyMap<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) getOrSet(groups, keyOf(item), () => []).push(item);
  return groups;
}

/** Returns the value of the key, and computes and keeps it when there is none. */
export function getOrSet<K, V>(values: Map<K, V>, key: K, compute: () => V): V {
  const value = values.get(key) ?? compute();
  values.set(key, value);
  return value;
}
