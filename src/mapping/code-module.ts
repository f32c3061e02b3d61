import type { CodeModule, Definition } from "./definition.ts";

/**
 * Runs an export of a resource's code module.
 *
 * @param call Makes the call. What it throws becomes the cause of an error that names the resource
 *   and the export. A promise counts as thrown, since no export may be async: its rejection would
 *   end the process.
 */
export function callCode<T>({
  definition,
  name,
  call,
}: {
  readonly definition: Definition;
  readonly name: keyof CodeModule;
  readonly call: () => T;
}): T {
  try {
    const result = call();
    if (!(result instanceof Promise)) return result;
    result.catch(() => undefined);
    throw new Error("it returned a promise, which cannot be awaited here");
  } catch (error) {
    throw new Error(`${name} of the resource ${definition.name} failed`, { cause: error });
  }
}
