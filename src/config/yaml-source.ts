import { readFileSync, statSync } from "node:fs";
import {
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  parseDocument,
  Parser,
  visit,
} from "yaml";
import type { Document, ErrorCode, Node } from "yaml";
import { codeOf } from "../kit/errors.ts";

/** Exceeds every real file by far. Keeps a wrong or hostile file from blocking the start. */
const maxBytes = 256 * 1024;
const tooLarge = `expected at most ${maxBytes / 1024} KiB`;
const maxDepth = 32;
/**
 * Bounds the expanded size ("billion laughs"), since aliases within aliased values are refused.
 * yaml's own `maxAliasCount` lets a value that contains its own alias through, as a cycle.
 */
const maxAliases = 100;

/** Options of the parser: plain data with texts as keys. The parser prints nothing. */
export const parseOptions = {
  schema: "core",
  resolveKnownTags: false,
  stringKeys: true,
  logLevel: "error",
} as const;

/** Steps from the root of a file to a value: keys, and indexes of list items. */
export type YamlPath = readonly (string | number)[];

/** A fault in a file. Line and column start at 1. */
export interface Fault {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** `fields.id.type` or `triggers[1]`; empty for the whole file. */
  readonly key: string;
  /** Description of the fault, such as the expected form. */
  readonly message: string;
}

/** A YAML text as plain data, with the position of each value. */
export interface YamlSource {
  readonly file: string;
  /** Undefined for an unreadable text, which has faults. Null for an empty text. */
  readonly value: unknown;
  readonly faults: readonly Fault[];
  /**
   * Creates a fault at the value of `path`, or at its key. Uses the nearest value around it when
   * there is none.
   */
  faultAt(path: YamlPath, message: string, place?: "value" | "key"): Fault;
}

/** Formats a fault: `service.yaml:3:9: http.port: expected ...` */
export function faultText({ file, line, column, key, message }: Fault): string {
  return `${file}:${line}:${column}: ${key === "" ? "" : `${key}: `}${message}`;
}

/** Compares by file, then by position in it. */
export function compareFaults(a: Fault, b: Fault): number {
  if (a.file !== b.file) return a.file < b.file ? -1 : 1;
  return a.line - b.line || a.column - b.column;
}

/**
 * Reads a YAML file: UTF-8, at most 256 KiB. Returns problems as faults, and never throws for them.
 *
 * @param file The name to show in faults.
 */
export function readYamlFile(path: string, file: string): YamlSource {
  try {
    const stats = statSync(path);
    if (!stats.isFile()) return unreadable(file, "expected a file");
    if (stats.size > maxBytes) return unreadable(file, tooLarge);
    return parseYaml(new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(path)), file);
  } catch (error) {
    if (error instanceof TypeError) return unreadable(file, "expected text in UTF-8");
    return unreadable(file, `cannot be read (${codeOf(error) ?? "unknown error"})`);
  }
}

/**
 * Parses one YAML 1.2 document. No message quotes the document, since it may contain secrets.
 *
 * @param file The name to show in faults.
 */
export function parseYaml(text: string, file: string): YamlSource {
  if (Buffer.byteLength(text) > maxBytes) return unreadable(file, tooLarge);
  if (isTooDeep(text)) return unreadable(file, `expected at most ${maxDepth} levels of nesting`);
  const lines = new LineCounter();
  const place = (offset: number): { line: number; column: number } => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const document = parseDocument(text, { ...parseOptions, lineCounter: lines, prettyErrors: false });

  const faultAt: YamlSource["faultAt"] = (path, message, at = "value") => {
    const offset = offsetOf(document, path, at);
    return { file, ...place(offset), key: keyText(path), message };
  };
  const notReadable = (faults: readonly Fault[]): YamlSource => ({ file, value: undefined, faults, faultAt });

  const problems = withoutFollowUps(text, [...document.errors, ...document.warnings]);
  const faults = problems.map((problem): Fault => ({
    file,
    ...place(problem.pos[0]),
    key: "",
    message: isVariable(text, problem.pos[0]) ? quoteVariable : syntaxMessage(problem),
  }));
  if (faults.length > 0) return notReadable(faults);
  const refused = refusedNode(document);
  if (refused !== undefined) {
    return notReadable([{ file, ...place(refused.offset), key: "", message: refused.message }]);
  }
  return { file, value: document.toJS({ maxAliasCount: -1 }) as unknown, faults, faultAt };
}

const quoteVariable = 'inside [ ] and { } a variable goes into quotes, as in ["${NAME}"]';

/**
 * Returns whether a variable without quotes is the cause, because a brace ends a plain text in a
 * flow collection.
 */
function isVariable(text: string, offset: number): boolean {
  return text.startsWith("${", offset - 1);
}

type Problem = Pick<Document.Parsed["errors"][number], "pos" | "code" | "message">;

/**
 * Leaves out problems that follow from another one. The others of a line follow from its first one,
 * or from a variable without quotes. Those of the lines below follow from a wrong indentation: the
 * parser compares each line with the previous one.
 */
function withoutFollowUps(text: string, problems: readonly Problem[]): readonly Problem[] {
  const lineOf = ({ pos: [offset] }: Problem): number => text.lastIndexOf("\n", offset - 1);
  const isVariableOf = (line: number) => (problem: Problem) =>
    lineOf(problem) === line && isVariable(text, problem.pos[0]);
  const left = withoutIndentFollowUps(problems);
  return left.filter((problem) => {
    const line = lineOf(problem);
    const first = left.find(isVariableOf(line)) ?? left.find((other) => lineOf(other) === line);
    // Each duplicate key is a fault of its own.
    return problem === first || (problem.code === "DUPLICATE_KEY" && first?.code === "DUPLICATE_KEY");
  });
}

function withoutIndentFollowUps(problems: readonly Problem[]): readonly Problem[] {
  return problems.flatMap((problem, index) => {
    const [before, after] = [problems[index - 1], problems[index + 1]];
    const isBelow = before !== undefined && indentCodes.includes(before.code);
    if (isBelow && problem.code === "BAD_INDENT") return [];
    // The two problems have one cause: by their indentation, the lines below belong to this value.
    if (isDeeper(problem, after)) return [{ ...problem, code: "BAD_INDENT", message: deeper }];
    return isDeeper(before, problem) ? [] : [problem];
  });
}

const indentCodes: readonly ErrorCode[] = ["BAD_INDENT", "TAB_AS_INDENT"];

function isDeeper(one: Problem | undefined, other: Problem | undefined): boolean {
  return (
    one?.code === "BLOCK_AS_IMPLICIT_KEY" &&
    other?.code === "MULTILINE_IMPLICIT_KEY" &&
    one.pos[0] === other.pos[0]
  );
}

function unreadable(file: string, message: string): YamlSource {
  const fault: Fault = { file, line: 1, column: 1, key: "", message };
  return { file, value: undefined, faults: [fault], faultAt: () => fault };
}

/**
 * Reads the depth from the parser's stack. Composing a document recurses, and a deep document would
 * end the process.
 */
function isTooDeep(text: string): boolean {
  const parser = new Parser();
  for (const lexeme of new Lexer().lex(text)) {
    for (const _token of parser.next(lexeme)) continue;
    // The stack holds the document and the current scalar in addition to the collections.
    if (parser.stack.length > maxDepth + 2) return true;
  }
  return false;
}

function keyText(path: YamlPath): string {
  return path.reduce<string>(
    (text, step) => (typeof step === "number" ? `${text}[${step}]` : text === "" ? step : `${text}.${step}`),
    "",
  );
}

/** Replacements of the parser's messages that quote the document or name parts of the parser. */
const syntaxMessages: Partial<Record<ErrorCode, string>> = {
  UNEXPECTED_TOKEN: "unexpected text; expected a key and a value, or a list",
  BAD_DIRECTIVE: "expected no directive (%...)",
  BAD_DQ_ESCAPE: "unknown escape in double quotes; single quotes take a backslash as it is",
  BLOCK_AS_IMPLICIT_KEY: 'a second ": " in one line; a text that contains it goes into quotes',
  DUPLICATE_KEY: "the key is there already; expected each key once",
  MULTIPLE_DOCS: "expected one document in the file",
  NON_STRING_KEY: "expected a plain text as the key",
  TAG_RESOLVE_FAILED: "expected a value without a tag (!...)",
};

const deeper = "the line below starts further to the right; expected it in the column of this key";

/** Messages for problems that share a code, by the parser's message. */
const messagesByText: Readonly<Record<string, string>> = {
  "All mapping items must start at the same column":
    "expected the key in the column of the keys before it; blanks at the start of a line count",
  "All sequence items must start at the same column": "expected the - in the column of those before it",
  "Implicit keys need to be on a single line": "expected a colon and a blank behind the key",
  "Implicit map keys need to be followed by map values": "expected a colon and a blank behind the key",
  "Tabs are not allowed as indentation": "expected blanks at the start of the line, and no tabs",
  "Flow map in block collection must be sufficiently indented and end with a }":
    "expected a }, for a { before this place is still open",
  "Flow sequence in block collection must be sufficiently indented and end with a ]":
    "expected a ], for a [ before this place is still open",
  'Missing closing "quote': 'expected a ", for a text that began with one has no end',
  "Missing closing 'quote": "expected a ', for a text that began with one has no end",
};

function syntaxMessage({ code, message }: Problem): string {
  return syntaxMessages[code] ?? messagesByText[message] ?? message;
}

/** Finds valid YAML that is still refused: the key `__proto__`, and aliases that multiply. */
function refusedNode(document: Document.Parsed): { offset: number; message: string } | undefined {
  let aliases = 0;
  let found: { offset: number; message: string } | undefined;
  const refuse = (node: unknown, message: string): symbol => {
    found = { offset: startOf(node), message };
    return visit.BREAK;
  };
  visit(document, {
    Pair(_key, { key }) {
      return isScalar(key) && key.value === "__proto__"
        ? refuse(key, 'the key "__proto__" is not allowed')
        : undefined;
    },
    Alias(_key, alias) {
      const target = alias.resolve(document);
      aliases += 1;
      if (target === undefined) return refuse(alias, "the alias names no anchor before it");
      if (hasAlias(target)) return refuse(alias, "expected an alias of a value that has no alias in it");
      return aliases > maxAliases ? refuse(alias, `expected at most ${maxAliases} aliases`) : undefined;
    },
  });
  return found;
}

function hasAlias(node: Node): boolean {
  let found = false;
  visit(node, {
    Alias() {
      found = true;
      return visit.BREAK;
    },
  });
  return found;
}

function offsetOf(document: Document.Parsed, path: YamlPath, at: "value" | "key"): number {
  let node: unknown = document.contents;
  let offset = startOf(node);
  for (const [index, step] of path.entries()) {
    const parent = isAlias(node) ? node.resolve(document) : node;
    if (isMap(parent)) {
      const pair = parent.items.find(({ key }) => isScalar(key) && key.value === String(step));
      if (pair === undefined) return offset;
      const isLast = index === path.length - 1;
      // A key without a value has a null value with a position behind the key; in `{ key }` it has
      // no position.
      offset = startOf((isLast && at === "key") || !isNode(pair.value) ? pair.key : pair.value);
      node = pair.value;
    } else if (isSeq(parent)) {
      node = parent.items[Number(step)];
      if (node === undefined) return offset;
      offset = startOf(node);
    } else return offset;
  }
  return offset;
}

function startOf(node: unknown): number {
  return isNode(node) ? ((node as Node).range?.[0] ?? 0) : 0;
}
