import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import Table from "cli-table3";
import { messageOf, OperatorError } from "./errors.ts";

/** Where a command's answer goes, and what else there is to say. */
export interface Terminal {
  /** The answer. Adds no line break. */
  readonly stdout: (text: string) => void;
  /** Faults and remarks. Adds no line break. */
  readonly stderr: (text: string) => void;
  /** Asks a person; rejects when they go away without an answer. Undefined when nobody is there to be asked. */
  readonly ask: ((question: string) => Promise<string>) | undefined;
}

/** The streams of the process as a terminal. Questions go to stderr, so that the answer can still be piped on. */
export function createTerminal({
  stdin,
  stdout,
  stderr,
}: {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable;
  readonly stderr: Writable & { readonly isTTY?: boolean };
}): Terminal {
  const hasPerson = stdin.isTTY === true && stderr.isTTY === true;
  return {
    stdout: (text) => void stdout.write(text),
    stderr: (text) => void stderr.write(text),
    ask: hasPerson ? createAsk({ stdin, stderr }) : undefined,
  };
}

function createAsk({
  stdin,
  stderr,
}: {
  readonly stdin: Readable;
  readonly stderr: Writable;
}): Terminal["ask"] {
  /** Lines that were typed or pasted before their question came. */
  const ahead: string[] = [];
  return async (question) => {
    if (ahead.length > 0) stderr.write(`${question}${ahead[0] ?? ""}\n`);
    else {
      // One interface per question: while one is open, Ctrl-C closes it instead of ending the program.
      const lines = createInterface({ input: stdin, output: stderr, prompt: question });
      lines.on("line", (line) => ahead.push(line));
      lines.prompt();
      // Ctrl-C and Ctrl-D close the interface without a line.
      await Promise.race([once(lines, "line"), once(lines, "close")]);
      lines.close();
    }
    const answer = ahead.shift();
    if (answer === undefined) throw new OperatorError("No answer was given; nothing was done.");
    return answer;
  };
}

/** A row of an answer: what `--json` prints as it is, and people see as text. Keys as in the API. */
export type OutputRow = Readonly<Record<string, unknown>>;

/**
 * Prints a list: a JSON array, or a table with the keys of the first row as its head.
 *
 * @param empty Says that there is nothing.
 * @param widths Characters of each column, in which longer text is wrapped. Default: as wide as the text.
 */
export function printRows(
  terminal: Terminal,
  rows: readonly OutputRow[],
  {
    json,
    empty,
    widths,
  }: { readonly json: boolean; readonly empty: string; readonly widths?: readonly number[] },
): void {
  const [first] = rows;
  if (json) return printJson(terminal, rows);
  if (first === undefined) return terminal.stdout(`${empty}\n`);
  const keys = Object.keys(first);
  const wrapping =
    widths === undefined ? {} : { colWidths: widths.map((width) => width + 2), wordWrap: true };
  const table = new Table({ head: keys, style: plain, ...wrapping });
  for (const row of rows) table.push(keys.map((key, index) => breakWords(cellOf(row[key]), widths?.[index])));
  terminal.stdout(`${table.toString()}\n`);
}

/** Prints one thing: a JSON object, or a table with a line per key. */
export function printRow(terminal: Terminal, row: OutputRow, { json }: { readonly json: boolean }): void {
  if (json) return printJson(terminal, row);
  const table = new Table({ style: plain });
  for (const [key, value] of Object.entries(row)) table.push({ [key]: cellOf(value) });
  terminal.stdout(`${table.toString()}\n`);
}

/** Prints what was done: a JSON object, or a sentence. */
export function printDone(
  terminal: Terminal,
  { row, sentence, json }: { readonly row: OutputRow; readonly sentence: string; readonly json: boolean },
): void {
  if (json) printJson(terminal, row);
  else terminal.stdout(`${visible(sentence)}\n`);
}

function printJson(terminal: Terminal, value: unknown): void {
  terminal.stdout(`${JSON.stringify(value, null, 2)}\n`);
}

/** No colours: a table is piped and pasted as often as it is looked at. */
const plain = { head: [], border: [] };

/** The table cuts off a word that is longer than its column; this one goes on in the next line. */
function breakWords(text: string, width: number | undefined): string {
  return width === undefined ? text : text.replace(new RegExp(`\\S{${width}}(?=\\S)`, "g"), "$&\n");
}

function cellOf(value: unknown): string {
  if (value === null || value === undefined) return "-";
  if (Array.isArray(value)) return value.map(cellOf).join(", ");
  if (typeof value === "boolean") return value ? "yes" : "no";
  return visible(typeof value === "string" ? value : JSON.stringify(value));
}

/** Names and addresses come from elsewhere: their control characters would steer the terminal. */
function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, "\uFFFD");
}

/** What is said about a failure: its message, without a stack. The one renderer of errors for the command line. */
export function describeFailure(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") return error.errors.map(messageOf).join("; ");
  // Prisma puts the call and the source lines first, and what went wrong last.
  const paragraphs = messageOf(error)
    .trim()
    .split(/\n\s*\n/);
  const isPrisma = error instanceof Error && error.name.startsWith("PrismaClient");
  return (isPrisma ? paragraphs.at(-1) : paragraphs.join("\n\n")) ?? "";
}

/** Opens, works and closes again, whether the work succeeds or not. */
export async function withOpened<C extends { close(): Promise<void> }, T>(
  open: () => Promise<C>,
  work: (opened: C) => Promise<T>,
): Promise<T> {
  const opened = await open();
  try {
    return await work(opened);
  } finally {
    await opened.close();
  }
}
