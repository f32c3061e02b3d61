/**
 * Returns whether arrays and objects are nested more than `levels` deep. Never recurses deeper than
 * `levels`.
 */
export function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((item) => isDeeperThan(item, levels - 1));
}
