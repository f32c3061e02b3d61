import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import Table from "cli-table3";
import { messageOf, OperatorError } from "./errors.ts";

/** The option of every command with an answer. */
export interface JsonOption {
  readonly json?: boolean;
}

/** The output of a command: its answer, its remarks and its questions. */
export interface Terminal {
  /** Writes the answer. Adds no line break. */
  readonly stdout: (text: string) => void;
  /** Writes faults and remarks. Adds no line break. */
  readonly stderr: (text: string) => void;
  /**
   * Asks a person a question. Rejects when the input ends without an answer. Undefined without a
   * terminal.
   */
  readonly ask: ((question: string) => Promise<string>) | undefined;
}

/**
 * Creates a terminal from the streams of the process. Questions go to stderr, so that stdout can be
 * piped.
 */
export function createTerminal(
  stdin: Readable & { readonly isTTY?: boolean },
  stdout: Writable,
  stderr: Writable & { readonly isTTY?: boolean },
): Terminal {
  const hasPerson = stdin.isTTY === true && stderr.isTTY === true;
  return {
    stdout: (text) => void stdout.write(text),
    stderr: (text) => void stderr.write(text),
    ask: hasPerson ? createAsk(stdin, stderr) : undefined,
  };
}

function createAsk(stdin: Readable, stderr: Writable): Terminal["ask"] {
  /** Lines that were typed or pasted before their question. */
  const ahead: string[] = [];
  return async (question) => {
    if (ahead.length > 0) stderr.write(`${question}${ahead[0] ?? ""}\n`);
    else {
      // One interface per question: while one is open, Ctrl-C closes it instead of ending the
      // program.
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

/**
 * A row of an answer: `--json` prints it unchanged, and a table shows it as text. Its keys are
 * those of the API.
 */
export type OutputRow = Readonly<Record<string, unknown>>;

/**
 * Prints a list: a JSON array, or a table with the keys of the first row as its head.
 *
 * @param empty The text for an empty list.
 * @param widths Characters of each column; longer text is wrapped. Default: as wide as the text.
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
  const head = keys.map((key, index) => breakWords(key, widths?.[index]));
  const table = new Table({ head, style: plain, ...wrapping });
  for (const row of rows) table.push(keys.map((key, index) => breakWords(cellOf(row[key]), widths?.[index])));
  terminal.stdout(`${table.toString()}\n`);
}

/**
 * Prints one object: as JSON, or as a table with a line per key.
 *
 * @param width Characters of a value; longer text is wrapped. Default: as wide as the text.
 */
export function printRow(
  terminal: Terminal,
  row: OutputRow,
  { json, width }: { readonly json: boolean; readonly width?: number },
): void {
  if (json) return printJson(terminal, row);
  const keyWidth = Math.max(...Object.keys(row).map((key) => key.length));
  const wrapping = width === undefined ? {} : { colWidths: [keyWidth + 2, width + 2], wordWrap: true };
  const table = new Table({ style: plain, ...wrapping });
  for (const [key, value] of Object.entries(row)) table.push({ [key]: breakWords(cellOf(value), width) });
  terminal.stdout(`${table.toString()}\n`);
}

/** Prints the result of the command: a JSON object, or a sentence. */
export function printDone(
  terminal: Terminal,
  { row, sentence, json }: { readonly row: OutputRow; readonly sentence: string; readonly json: boolean },
): void {
  if (json) printJson(terminal, row);
  else terminal.stdout(`${replaceControlCharacters(sentence)}\n`);
}

/**
 * Prints JSON. Escapes the characters that could steer the terminal and that JSON may contain as
 * they are: answers of receivers have any.
 */
export function printJson(terminal: Terminal, value: unknown): void {
  const text = JSON.stringify(value, null, 2).replace(/[\x7f-\x9f\p{Cf}]/gu, escaped);
  terminal.stdout(`${text}\n`);
}

/** Returns the JSON escapes of a character, two for one outside of the basic plane. */
function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}

/** Style without colours, since tables are often piped and pasted. */
const plain = { head: [], border: [] };

/** Breaks words that are longer than the column, because cli-table3 would cut them off. */
function breakWords(text: string, width: number | undefined): string {
  return width === undefined ? text : text.replace(new RegExp(`\\S{${width}}(?=\\S)`, "g"), "$&\n");
}

function cellOf(value: unknown): string {
  if (value === null || value === undefined) return "-";
  if (Array.isArray(value)) return value.map(cellOf).join(", ");
  if (typeof value === "boolean") return value ? "yes" : "no";
  return replaceControlCharacters(typeof value === "string" ? value : JSON.stringify(value));
}

/**
 * Replaces control characters, which could steer the terminal: names and addresses come from users.
 */
export function replaceControlCharacters(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, "\uFFFD");
}

/**
 * Returns the message of a failure, without a stack. It is the only renderer of errors for the
 * command line. A message may contain keys and values of rows, which come from users.
 */
export function describeFailure(error: unknown): string {
  return messageOfFailure(error).split("\n").map(replaceControlCharacters).join("\n");
}

function messageOfFailure(error: unknown): string {
  // Prisma puts the call and the source lines first, and the reason last.
  const paragraphs = messageOf(error)
    .trim()
    .split(/\n\s*\n/);
  const isPrisma = error instanceof Error && error.name.startsWith("PrismaClient");
  return (isPrisma ? paragraphs.at(-1) : paragraphs.join("\n\n")) ?? "";
}

interface Opened {
  close(): Promise<void>;
}

/** Dependencies of a command: the function that opens its subject, and the terminal. */
export interface CommandOptions<Context extends Opened> {
  readonly open: () => Promise<Context>;
  readonly terminal: Terminal;
}

/** Opens a resource, works with it, and closes it, whether the work succeeds or fails. */
export async function withOpened<C extends Opened, T>(
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
