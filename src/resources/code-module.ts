import type { CodeModule, Definition } from "./definition.ts";

/**
 * Runs an export of a resource's code module.
 *
 * @param call Makes the call; what it throws comes back as the cause of an error that names the resource and the export.
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
    return call();
  } catch (error) {
    throw new Error(`${name} of the resource ${definition.name} failed`, { cause: error });
  }
}
