/**
 * Counts the bytes that all connections together read or write in one turn of the event loop.
 * Returns a function that adds some, and returns whether the turn has had `most`. With a count for
 * each connection, all requests wait for as many bytes of each.
 */
export function createTurnBytes(most: number): (bytes: number) => boolean {
  let used = 0;
  return (bytes) => {
    if (used === 0) setImmediate(() => (used = 0));
    used += bytes;
    return used >= most;
  };
}
