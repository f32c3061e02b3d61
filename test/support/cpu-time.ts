/**
 * Returns the CPU that this process spends on a piece of work, in ms: what else the machine does
 * counts little.
 *
 * @param tries Of these, the least: garbage that is not of the work may be collected during one.
 */
export async function cpuMsOf(work: () => unknown, tries = 1): Promise<number> {
  let least = Infinity;
  for (let made = 0; made < tries; made += 1) {
    const before = process.cpuUsage();
    await work();
    least = Math.min(least, process.cpuUsage(before).user / 1000);
  }
  return least;
}
