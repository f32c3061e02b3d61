import { isContainer } from "./body-paths.ts";
import { isPhpFormat, resolveDate } from "./dates.ts";
import { compilePattern } from "./patterns.ts";
import { questionOf } from "../kit/did-you-mean.ts";
import { isObject } from "../kit/is-object.ts";

/** `required|string|max:40`, or the list form `[nullable, { max: 2000 }]`, as in the file. */
export type RuleSpec = string | readonly (string | Readonly<Record<string, unknown>>)[];
/** The rules of each field, by its key. */
export type RuleSpecs = Readonly<Record<string, RuleSpec>>;

/** One rule as written: `between:1,5` is `{ name: "between", args: ["1", "5"] }`. */
export interface ParsedRule {
  readonly name: RuleName;
  readonly args: readonly string[];
}

interface Signature {
  readonly least: number;
  readonly most: number;
  /**
   * Returns the requirement for an argument, to complete "must be ..."; undefined when it is valid.
   */
  readonly fault?: (arg: string) => string | undefined;
}

const fieldPattern = /^[A-Za-z_][\w-]*(\.([\w-]+|\*))*$/;
const numberPattern = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)$/;

const isCount = (arg: string): boolean => /^\d{1,9}$/.test(arg);
const isNumber = (arg: string): boolean => numberPattern.test(arg);
const isField = (arg: string): boolean => fieldPattern.test(arg);
const isDate = (arg: string): boolean => resolveDate(arg, new Date(0)) !== undefined;

function args(least: number, most: number, expected?: string, isFine?: (arg: string) => boolean): Signature {
  if (isFine === undefined) return { least, most };
  return { least, most, fault: (arg) => (isFine(arg) ? undefined : expected) };
}

const someOf = (most: number, ...words: readonly string[]): Signature =>
  args(0, most, `one of ${words.join(", ")}`, (arg) => words.includes(arg));

const none = args(0, 0);
const values = args(1, Infinity);
const fields = args(1, Infinity, "the name of a field", isField);
const field = args(1, 1, "the name of a field", isField);
/** Signature of a field, then the values that it is compared with, which may be any text. */
const fieldAndValues = args(2, Infinity);
const number = args(1, 1, "a number", isNumber);
const count = args(1, 1, "a whole number", isCount);
const bound = args(1, 1, "a number or the name of a field", (arg) => isNumber(arg) || isField(arg));
const date = args(1, 1, "a date or the name of a field", (arg) => isDate(arg) || isField(arg));
const pattern: Signature = { least: 1, most: 1, fault: patternFault };
const asciiOnly = someOf(1, "ascii");
const strictly = someOf(1, "strict");
const lookup = args(1, 2, "a name", (arg) => /^[A-Za-z_][\w-]*$/.test(arg));

/**
 * Every rule with its arguments. The types keep the tables of messages.ts and compile.ts consistent
 * with this one.
 */
export const signatures = {
  bail: none,
  nullable: none,
  sometimes: none,
  exclude: none,
  exclude_if: fieldAndValues,
  exclude_unless: fieldAndValues,
  exclude_with: field,
  exclude_without: field,

  required: none,
  required_if: fieldAndValues,
  required_unless: fieldAndValues,
  required_with: fields,
  required_with_all: fields,
  required_without: fields,
  required_without_all: fields,
  present: none,
  filled: none,
  missing: none,
  prohibited: none,
  prohibits: fields,
  accepted: none,
  declined: none,

  string: none,
  integer: strictly,
  numeric: strictly,
  decimal: args(1, 2, "a whole number", isCount),
  boolean: strictly,
  array: args(0, Infinity),
  list: none,
  json: none,

  min: number,
  max: number,
  between: args(2, 2, "a number", isNumber),
  size: number,
  gt: bound,
  gte: bound,
  lt: bound,
  lte: bound,
  digits: count,
  digits_between: args(2, 2, "a whole number", isCount),
  min_digits: count,
  max_digits: count,
  multiple_of: args(1, 1, "a number other than 0", (arg) => isNumber(arg) && Number(arg) !== 0),

  // Refuses `dns` and `spoof` rather than ignoring them. `dns` would make the service query a
  // server of the client's choice. `spoof` needs tables that Node.js does not have.
  email: someOf(4, "rfc", "strict", "filter", "filter_unicode"),
  url: args(0, Infinity, "a URL scheme", (arg) => /^[a-z][a-z0-9+.-]*$/i.test(arg)),
  uuid: someOf(1, "1", "2", "3", "4", "5", "6", "7", "8"),
  ulid: none,
  ip: none,
  ipv4: none,
  ipv6: none,
  mac_address: none,
  hex_color: none,
  base64: none,
  timezone: none,
  regex: pattern,
  not_regex: pattern,

  date: none,
  date_format: args(1, Infinity, "a date format of known letters", isPhpFormat),
  date_equals: date,
  after: date,
  after_or_equal: date,
  before: date,
  before_or_equal: date,

  in: values,
  not_in: values,
  enum: values,
  in_array: field,
  exists: lookup,
  unique: lookup,
  confirmed: args(0, 1, "the name of a field", isField),
  same: field,
  different: fields,

  alpha: asciiOnly,
  alpha_dash: asciiOnly,
  alpha_num: asciiOnly,
  ascii: none,
  lowercase: none,
  uppercase: none,
  starts_with: values,
  ends_with: values,
  doesnt_start_with: values,
  doesnt_end_with: values,
  contains: values,
  doesnt_contain: values,
  distinct: someOf(1, "strict", "ignore_case"),
  required_array_keys: values,
} as const satisfies Readonly<Record<string, Signature>>;

/** The name of any rule. */
export type RuleName = keyof typeof signatures;

/** Rules that compare a value with a fixed one or with another field. */
const comparing = new Set<RuleName>([
  "after",
  "after_or_equal",
  "before",
  "before_or_equal",
  "date_equals",
  "gt",
  "gte",
  "lt",
  "lte",
  "in_array",
]);

/** Returns the field that a rule compares its own with; undefined for any other rule. */
export function comparedField({ name, args: [other = ""] }: ParsedRule): string | undefined {
  return comparing.has(name) && isField(other) && !isDate(other) ? other : undefined;
}

const isRuleName = (name: string): name is RuleName => Object.hasOwn(signatures, name);

/**
 * Checks names and arguments of all rules.
 *
 * @returns One entry per fault, with a message that completes "createRules.<field>: "; empty
 *   without faults.
 */
export function ruleFaults(
  specs: RuleSpecs,
): readonly { readonly field: string; readonly message: string }[] {
  return Object.entries(specs).flatMap(([name, spec]) => {
    const faults = readSpec(spec).faults.map((message) => ({ field: name, message }));
    return isField(name)
      ? faults
      : [{ field: name, message: `"${name}" is not the name of a field` }, ...faults];
  });
}

/**
 * Parses the rules of one field, in order. Throws for a fault, which `ruleFaults` reports for a
 * mapping file.
 */
export function parseRules(spec: RuleSpec): readonly ParsedRule[] {
  const { rules, faults } = readSpec(spec);
  if (faults.length > 0) throw new Error(faults.join("; "));
  return rules;
}

function patternFault(text: string): string | undefined {
  try {
    compilePattern(text);
    return undefined;
  } catch (error) {
    return `a regular expression (${error instanceof Error ? error.message : String(error)}; one that contains | needs the list form)`;
  }
}

function readSpec(spec: unknown): { rules: ParsedRule[]; faults: string[] } {
  const rules: ParsedRule[] = [];
  const faults: string[] = [];
  for (const { name, args: given, fault } of written(spec)) {
    const problem = fault ?? problemOf(name, given);
    if (problem !== undefined) faults.push(problem);
    else if (isRuleName(name)) rules.push({ name, args: given });
  }
  return { rules, faults };
}

interface Written {
  readonly name: string;
  readonly args: readonly string[];
  readonly fault?: string;
}

function written(spec: unknown): Written[] {
  if (typeof spec === "string") return spec.split("|").filter(isNotBlank).map(fromText);
  if (!Array.isArray(spec))
    return [{ name: "", args: [], fault: "must be a text of rules or a list of rules" }];
  return spec.flatMap((item: unknown) => {
    if (typeof item === "string") return [fromText(item)];
    if (isObject(item)) return Object.entries(item).map(([name, value]) => fromEntry(name, value));
    return [{ name: "", args: [], fault: `must be a rule, not ${JSON.stringify(item)}` }];
  });
}

const isNotBlank = (text: string): boolean => text.trim() !== "";

function fromText(text: string): Written {
  const colon = text.indexOf(":");
  if (colon === -1) return { name: text.trim(), args: [] };
  const name = text.slice(0, colon).trim();
  const rest = text.slice(colon + 1);
  return { name, args: name === "regex" || name === "not_regex" ? [rest.trim()] : splitArguments(rest) };
}

/**
 * Splits `a, "b, c" ,d` into a / b, c / d. Commas in double quotes do not separate, and `""` within
 * them is one quote.
 */
function splitArguments(text: string): readonly string[] {
  const parts = text.matchAll(/\s*(?:"((?:[^"]|"")*)"|([^,]*))\s*(?:,|$)/gy);
  const found = [...parts].map(([, quoted, bare = ""]) => quoted?.replaceAll('""', '"') ?? bare.trim());
  // The pattern also matches an empty text at the end, unless the text ends in a comma.
  return text.trimEnd().endsWith(",") ? found : found.slice(0, -1);
}

/**
 * Reads `{ max: 2000 }` and `{ in: [a, b] }`. `{ required: true }` and `{ required: null }` (YAML's
 * `{ required }`) have no arguments.
 */
function fromEntry(name: string, value: unknown): Written {
  const takesNone = isRuleName(name) && signatures[name].most === 0;
  if (takesNone && (value === null || value === true)) return { name, args: [] };
  const given: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (given.some(isContainer))
    return { name, args: [], fault: `${name}: must be a value or a list of values` };
  return { name, args: given.map(String) };
}

function problemOf(name: string, given: readonly string[]): string | undefined {
  if (!isRuleName(name)) return `there is no rule "${name}"${questionOf(name, Object.keys(signatures))}`;
  const { least, most, fault }: Signature = signatures[name];
  if (given.length < least) return `${name}: needs ${countOf(least)}, ${given.length} given`;
  if (given.length > most)
    return `${name}: takes ${most === 0 ? "no argument" : `at most ${countOf(most)}`}, ${given.length} given`;
  if (least === 2 && most === Infinity && !isField(given[0] ?? ""))
    return `${name}: "${given[0]}" must be the name of a field`;
  for (const arg of given) {
    const expected = fault?.(arg);
    if (expected !== undefined) return `${name}: "${arg}" must be ${expected}`;
  }
  return undefined;
}

const countOf = (n: number): string => (n === 1 ? "1 argument" : `${n} arguments`);
