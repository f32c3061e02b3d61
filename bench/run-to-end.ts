/** Takes a function to call at the end, in reverse order. */
export type AtEnd = (release: () => Promise<void> | void) => void;

/** Prints one line for people on stderr. */
export function progress(text: string): void {
  console.error(`${new Date().toISOString().slice(11, 19)} ${text}`);
}

/**
 * Runs a program of this folder, releases its resources and ends the process. The exit status is
 * the result of `main`, 1 when it fails, 130 after Ctrl-C and 143 after SIGTERM.
 */
export async function runToEnd(main: (atEnd: AtEnd) => Promise<number>): Promise<never> {
  const releases: (() => Promise<void> | void)[] = [];
  const release = async (): Promise<void> => {
    while (releases.length > 0) {
      try {
        await releases.pop()?.();
      } catch (error) {
        // The other resources are still released.
        console.error(error);
      }
    }
  };
  const signalled = new Promise<number>((resolve) => {
    process.once("SIGINT", () => resolve(130));
    process.once("SIGTERM", () => resolve(143));
  });
  // After a signal, all running work fails, so its errors are not printed.
  let isSignalled = false;
  void signalled.then(() => (isSignalled = true));
  const finished = main((work) => void releases.push(work)).catch((error: unknown) => {
    if (!isSignalled) console.error(error);
    return 1;
  });
  const status = await Promise.race([signalled, finished]);
  await release();
  process.exit(status);
}
