import { readdir, readFile } from "node:fs/promises";
import { codeOf, OperatorError } from "./errors.ts";

/**
 * Returns the names in a folder; none without the folder.
 *
 * @throws OperatorError that names the folder.
 */
export async function namesIn(folder: string): Promise<readonly string[]> {
  return readdir(folder).catch((error: unknown) => (codeOf(error) === "ENOENT" ? [] : refuse(folder, error)));
}

/**
 * Reads a file as UTF-8.
 *
 * @throws OperatorError that names the file.
 */
export async function readText(path: string): Promise<string> {
  return readFile(path, "utf8").catch((error: unknown) => refuse(path, error));
}

function refuse(path: string, error: unknown): never {
  const fault =
    codeOf(error) === "ENOTDIR" ? "is not a folder" : `cannot be read (${codeOf(error) ?? "unknown error"})`;
  throw new OperatorError(`${path} ${fault}`, { cause: error });
}
