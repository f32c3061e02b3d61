import { relative } from "node:path";

/** Returns a path for people: relative to the working folder, or unchanged outside of it. */
export function shownPath(path: string, cwd = process.cwd()): string {
  const fromHere = relative(cwd, path);
  return fromHere.startsWith("..") ? path : fromHere || ".";
}
