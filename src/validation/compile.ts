import { getOrSet } from "../kit/group-by.ts";
import type { RuleSpec } from "./syntax.ts";
import { parseRules, type ParsedRule, type RuleName } from "./syntax.ts";
import { toPath } from "./body-paths.ts";
import type {
  Check,
  Exclusion,
  FieldRules,
  LookupRule,
  MakeCheck,
  Modifier,
  SizeKind,
  Subject,
  TestName,
} from "./check.ts";
import { choiceChecks } from "./choice.ts";
import { dateChecks, readerOfFormats, type ReadDate } from "./date-checks.ts";
import { formatChecks } from "./format.ts";
import { exclusions, presenceChecks } from "./presence.ts";
import { sizeChecks } from "./size.ts";
import { textChecks } from "./text.ts";
import { typeChecks } from "./types.ts";

/** A rule that the body alone decides. */
interface Test {
  readonly name: TestName;
  /** Runs on absent and empty values too, and ends the field's rules when it is broken. */
  readonly isImplicit: boolean;
  readonly check: Check;
}

/** A rule that queries the database. */
export interface LookupTest {
  readonly name: LookupRule;
  readonly target: string;
  readonly column: string;
  /** See `CompiledField`. */
  readonly readDate?: ReadDate;
}

/** The compiled rules of one key. */
export interface CompiledField extends FieldRules {
  readonly tests: readonly Test[];
  readonly lookups: readonly LookupTest[];
  readonly isNullable: boolean;
  readonly isSometimes: boolean;
  readonly isBail: boolean;
  readonly excludes: readonly ((subject: Subject) => boolean)[];
  /** Only with `date_format`: how a date in its formats is read. */
  readonly readDate?: ReadDate;
}

/** The rules as a tree of keys, which decides which parts of a body are returned. */
export interface KeyNode {
  readonly children: Map<string, KeyNode>;
  /** False for an intermediate step only, such as `address` of `address.city`. */
  hasRules: boolean;
  /** With `array` or `list`, only children with rules are returned. */
  isArray: boolean;
}

/** The check of every rule that needs no database. */
const checks: Readonly<Record<Exclude<TestName, LookupRule>, MakeCheck>> = {
  ...presenceChecks,
  ...typeChecks,
  ...sizeChecks,
  ...formatChecks,
  ...textChecks,
  ...choiceChecks,
  ...dateChecks,
};

const exclusionNames: ReadonlySet<string> = new Set(Object.keys(exclusions));
const modifierNames: ReadonlySet<string> = new Set(["bail", "nullable", "sometimes", ...exclusionNames]);

const isExclusion = (rule: ParsedRule): rule is ParsedRule & { readonly name: Exclusion } =>
  exclusionNames.has(rule.name);
const isLookup = (rule: ParsedRule): rule is ParsedRule & { readonly name: LookupRule } =>
  rule.name === "exists" || rule.name === "unique";
const isTest = (
  rule: ParsedRule,
): rule is ParsedRule & { readonly name: Exclude<RuleName, Modifier | LookupRule> } =>
  !modifierNames.has(rule.name) && !isLookup(rule);

const implicit: ReadonlySet<RuleName> = new Set([
  "required",
  "required_if",
  "required_unless",
  "required_with",
  "required_with_all",
  "required_without",
  "required_without_all",
  "present",
  "filled",
  "missing",
  "accepted",
  "declined",
] as const);

/** Compiles one key of the specification. Throws for faults that `ruleFaults` reports. */
export function compileField(keyText: string, spec: RuleSpec): CompiledField {
  const key = toPath(keyText);
  const rules = parseRules(spec);
  const names = new Set<RuleName>(rules.map((rule) => rule.name));
  const dateFormats = rules.find((rule) => rule.name === "date_format")?.args ?? [];
  const field: FieldRules = { key, sizeKind: sizeKindOf(names), dateFormats };
  const reading = dateFormats.length === 0 ? {} : { readDate: readerOfFormats(dateFormats) };
  return {
    ...field,
    ...reading,
    tests: rules
      .filter(isTest)
      .map(({ name, args }) => ({ name, isImplicit: implicit.has(name), check: checks[name](args, field) })),
    lookups: rules.filter(isLookup).map(({ name, args: [target = "", column] }) => ({
      name,
      target,
      column: column ?? lookupColumnOf(keyText),
      ...reading,
    })),
    isNullable: names.has("nullable"),
    isSometimes: names.has("sometimes"),
    isBail: names.has("bail"),
    excludes: rules.filter(isExclusion).map(({ name, args }) => exclusions[name](args)),
  };
}

/** Returns the column of `exists` and `unique` when they name none. */
export function lookupColumnOf(keyText: string): string {
  return toPath(keyText).findLast((step) => step !== "*") ?? "";
}

function sizeKindOf(names: ReadonlySet<RuleName>): SizeKind {
  if (names.has("numeric") || names.has("integer") || names.has("decimal")) return "numeric";
  return names.has("array") || names.has("list") ? "array" : "string";
}

const emptyNode = (): KeyNode => ({ children: new Map(), hasRules: false, isArray: false });

/** Builds the tree of all keys of a specification. */
export function keysOf(fields: readonly CompiledField[]): KeyNode {
  const root = emptyNode();
  for (const { key, tests } of fields) {
    let node = root;
    for (const step of key) node = getOrSet(node.children, step, emptyNode);
    node.hasRules = true;
    node.isArray = tests.some(({ name }) => name === "array" || name === "list");
  }
  return root;
}
