/**
 * Returns a function whose calls are reported at most once a second. The report has the number of
 * calls, and the detail of the first.
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
