/**
 * Opens something before the tests of a suite, and closes it after them. Where it could not be
 * opened, that is the one fault. What it gives can be used in hooks and tests only.
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
