/**
 * Returns a function whose calls are reported once a second at most: how many there were, and what
 * the first one was about.
 */
export function createCountedReport<T>(report: (count: number, first: T) => void): (detail: T) => void {
  let count = 0;
  return (detail) => {
    count += 1;
    if (count > 1) return;
    setTimeout(() => {
      report(count, detail);
      count = 0;
    }, 1000).unref();
  };
}
