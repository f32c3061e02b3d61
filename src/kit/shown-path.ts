import { relative } from "node:path";

/** Returns a path for people: from the working folder, or as it is outside of that. */
export function shownPath(path: string, cwd = process.cwd()): string {
  const fromHere = relative(cwd, path);
  return fromHere.startsWith("..") ? path : fromHere || ".";
}
