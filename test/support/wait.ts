/**
 * Waits until `condition` returns a truthy value, and returns it.
 *
 * @param what Name of the condition in the error.
 * @param everyMs Time between two polls: longer for a poll that costs much, and for long waits.
 * @throws When `condition` is not met in time (10 s by default), with its last error as the cause.
 *   An error that `condition` throws counts as "not yet".
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  {
    timeoutMs = 10_000,
    everyMs = 15,
    what,
  }: { readonly timeoutMs?: number; readonly everyMs?: number; readonly what: string },
): Promise<Exclude<T, undefined | null | false | 0 | "">> {
  const deadline = performance.now() + timeoutMs;
  let cause: unknown;
  for (;;) {
    try {
      const value = await condition();
      if (value) return value as Exclude<T, undefined | null | false | 0 | "">;
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    if (performance.now() > deadline) {
      throw new Error(`Waited ${timeoutMs} ms in vain for ${what}`, { cause });
    }
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
