/**
 * Returns the CPU time in ms that this process spends on a piece of work. Other load on the machine
 * hardly affects it.
 *
 * @param tries Number of runs, of which the least counts: a garbage collection may fall into a run.
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
