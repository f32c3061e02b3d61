/** Returns the items by key, in their order. */
export function groupBy<T, K>(items: readonly T[], keyOf: (item: T) => K): ReadonlyMap<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) getOrSet(groups, keyOf(item), () => []).push(item);
  return groups;
}

/** Returns the value of the key. Computes and stores a missing value. */
export function getOrSet<K, V>(
  values: { get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: K,
  compute: () => V,
): V {
  const value = values.get(key) ?? compute();
  values.set(key, value);
  return value;
}
