import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { findExecutable } from "./apt.ts";
import { findPostgres } from "./postgres.ts";

const run = promisify(execFile);

/**
 * Runs `psql`, like a person or another program beside the service, and returns its output: rows
 * unaligned, without headings. The first failed statement ends it, and rejects with its message.
 *
 * @param input SQL, each text in a separate transaction, or a file of SQL.
 */
export async function psql(
  url: string,
  input: { readonly sql: string } | { readonly file: string },
): Promise<string> {
  const bin = findPostgres();
  const program = findExecutable("psql", bin === undefined ? [] : [join(bin, "psql")]);
  if (program === undefined) throw new Error("psql is not installed; it is in the package postgresql-client");
  const what = "sql" in input ? ["--command", input.sql] : ["--file", input.file];
  const { stdout } = await run(
    program,
    ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1", url, ...what],
    { env: { PATH: process.env["PATH"], PGCLIENTENCODING: "UTF8" } },
  );
  return stdout.trim();
}
