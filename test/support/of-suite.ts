/**
 * Opens an object before the tests of a suite, and closes it after them. When opening fails, that
 * is the only fault. The object can be used in hooks and tests only.
 */
export function ofSuite<T extends object>(open: () => Promise<T>, close: (opened: T) => Promise<void>): T {
  const opened = {} as T;
  let end: (() => Promise<void>) | undefined;
  before(async () => {
    const made = await open();
    end = () => close(made);
    Object.assign(opened, made);
  });
  after(() => end?.());
  return opened;
}
