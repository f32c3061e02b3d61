/**
 * Sets an entry at the end of a map, and removes the first entry when there are more than `most`.
 * With a `get` that sets the entry again, the most recently used entries stay.
 */
export function setBounded<Key, Value>(
  map: Map<Key, Value>,
  [key, value]: readonly [Key, Value],
  most: number,
): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= most) return;
  for (const first of map.keys()) {
    map.delete(first);
    return;
  }
}
