/**
 * Opens an object before the tests of a suite, and closes it after them and after the suite's other
 * hooks. When opening fails, that is the only fault. The object can be used in hooks and tests
 * only.
 */
export function ofSuite<T extends object>(open: () => Promise<T>, close: (opened: T) => Promise<void>): T {
  const opened = {} as T;
  before(async function () {
    const made = await open();
    this.test?.parent?.afterAll(() => close(made));
    Object.assign(opened, made);
  });
  return opened;
}
