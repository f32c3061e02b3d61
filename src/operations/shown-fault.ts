import { readFile } from "node:fs/promises";
import { basename, relative, resolve } from "node:path";

interface Line {
  readonly line: number;
  readonly text: string;
}

/** A fault of the configuration, with its place. */
export interface ShownFault {
  readonly message: string;
  /** File of the fault. Null when it is in no file, like the next two. */
  readonly file: string | null;
  readonly line: number | null;
  readonly column: number | null;
  /** The lines around the fault when the file is on this host; otherwise null. */
  readonly excerpt: readonly Line[] | null;
}

const place = /^([^\n:]{1,400}):(\d{1,7}):(\d{1,7}): (.*)$/s;
const around = 3;
const longestLine = 300;
/** Most bytes of a file, as in the reader of the files. */
const mostBytes = 256 * 1024;

/** Parses a fault in the format of `faultText`. Any other text is a message without a place. */
export function faultOf(text: string): ShownFault {
  const [, file, line, column, message = text] = place.exec(text) ?? [];
  return {
    message,
    file: file ?? null,
    line: line === undefined ? null : Number(line),
    column: column === undefined ? null : Number(column),
    excerpt: null,
  };
}

/**
 * Parses a fault like `faultOf`, and adds the lines around its place when the file is within
 * `configDir`. Shows only the keys of `service.yaml`, which may hold secrets.
 *
 * @param cwd The folder to which the paths in faults are relative.
 */
export async function faultInFile(
  text: string,
  { configDir, cwd }: { readonly configDir: string; readonly cwd: string },
): Promise<ShownFault> {
  const fault = faultOf(text);
  if (fault.file === null || fault.line === null) return fault;
  const path = resolve(cwd, fault.file);
  const isWithin = !relative(configDir, path).startsWith("..");
  const content = isWithin ? await readFile(path, "utf8").catch(() => undefined) : undefined;
  if (content === undefined || content.length > mostBytes) return fault;
  const first = Math.max(1, fault.line - around);
  const lines = content.split("\n").slice(first - 1, fault.line + around);
  const show = basename(path) === "service.yaml" ? keyOf : (one: string): string => one;
  return {
    ...fault,
    excerpt: lines.map((one, index) => ({
      line: first + index,
      text: show(one.replace(/\r$/, "")).slice(0, longestLine),
    })),
  };
}

/** Keeps keys, and cuts every value. Cuts comments too: a secret may be commented out. */
function keyOf(line: string): string {
  const text = line.trimStart();
  if (text === "") return line;
  if (text.startsWith("#")) return `${line.slice(0, -text.length)}# …`;
  const [, key, value = ""] = /^(\s*[\w.-]+:)(.*)$/.exec(line) ?? [];
  if (key === undefined) return `${/^\s*/.exec(line)?.[0] ?? ""}…`;
  return value.trim() === "" ? key : `${key} …`;
}
