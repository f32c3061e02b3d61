import { mostNamedFields, type FieldErrors } from "../kit/errors.ts";
import { inParts, isPartOver, type Steps } from "../kit/parts.ts";
import type { RuleSpecs } from "./syntax.ts";
import {
  maxKeyLength,
  maxPlaces,
  placesOf,
  put,
  toPath,
  valueAt,
  type Path,
  type Place,
  type PlacesFault,
} from "./body-paths.ts";
import type { Subject } from "./check.ts";
import { cleanBody, maxDepth } from "./clean.ts";
import { compileField, keysOf, type CompiledField, type KeyNode, type LookupTest } from "./compile.ts";
import { createAsker, maxLookups, type LookupQuery } from "./existence.ts";
import { fill, messageFor } from "./messages.ts";
import { displayName } from "./values.ts";
import { exclude, isExcluded, noExclusions, validatedOf, type Exclusions } from "./validated.ts";

/** The compiled rules of one body, so that validation is a walk over tables. */
export interface CompiledRules {
  /** Fields in the order in which the rules name them. */
  readonly fields: readonly CompiledField[];
  readonly keys: KeyNode;
}

/** The only look-up that validation needs from outside. */
export interface Lookup {
  /**
   * Returns whether a record of the resource or table `target` has `value` in the field or column
   * `column`.
   *
   * A value that cannot be compared with the column, such as `abc` with an integer, is in no
   * record: the result is false, not an error. `except` is the key of the record that is being
   * updated, for `unique`. That record is ignored only where `target` is its own resource.
   */
  exists(query: LookupQuery): Promise<boolean>;
}

interface ValidateOptions {
  readonly lookup: Lookup;
  /** Key of the record that is being updated, which `unique` ignores. */
  readonly ignoreKey?: unknown;
  /** Time for `today` and similar words. Default: the current time. */
  readonly now?: Date;
  /** User of a body that may be large. Bodies without a user take turns like those of one user. */
  readonly userId?: number;
}

/** The values that passed, or the messages by field. */
export type Validation =
  | { readonly kind: "valid"; readonly values: Record<string, unknown> }
  | { readonly kind: "invalid"; readonly errors: FieldErrors };

/**
 * Parses every rule once. Throws for faults that `ruleFaults` reports beforehand for a mapping
 * file.
 */
export function compileRules(specs: RuleSpecs): CompiledRules {
  const fields = Object.entries(specs).map(([name, spec]) => compileField(name, spec));
  return { fields, keys: keysOf(fields) };
}

/** The result of a check of one place in the body: messages, or look-ups. */
interface Finding {
  readonly name: string;
  readonly messages: string[];
  readonly value: unknown;
  readonly lookups: readonly LookupTest[];
}

/**
 * Checks a body (docs/mapping.md, "How a body is checked"). Checks every field, and trims texts
 * first. Returns only keys that have rules, unconverted. Look-ups run together at the end, for
 * fields without faults so far. A long check runs in parts, between which other requests run.
 *
 * @param body A JSON object. It is not trusted: its depth and the items that match `*` are limited.
 * @returns The errors in the order of the rules, at least one; or the values. After
 *   `mostNamedFields` places with a fault, no more are checked.
 */
export async function validate(
  { fields, keys }: CompiledRules,
  body: Readonly<Record<string, unknown>>,
  { lookup, ignoreKey, now = new Date(), userId = 0 }: ValidateOptions,
): Promise<Validation> {
  const { body: cleaned, tooDeep } = await inParts(userId, cleanBody(body));
  const excluded = noExclusions();
  const findings: Finding[] = [...tooDeep].map((name) => ({
    name,
    messages: [fill(`The :attribute field must not be nested more than ${maxDepth} levels deep.`, name)],
    value: undefined,
    lookups: [],
  }));
  const open = fields.filter(({ key }) => !tooDeep.has(key[0] ?? ""));
  await inParts(
    userId,
    examineAll(open, { subjectAt: createSubjects(cleaned, now), body: cleaned, excluded, findings }),
  );
  await lookUp(
    findings,
    createAsker((query) => lookup.exists(query), ignoreKey),
  );

  const errors = errorsOf(findings);
  if (errors !== undefined) return { kind: "invalid", errors };
  return { kind: "valid", values: validatedOf(keys, cleaned, excluded) };
}

/** Adds the findings and the exclusions of all fields. Yields after each part of a long check. */
function* examineAll(
  fields: readonly CompiledField[],
  {
    body,
    subjectAt,
    findings,
    excluded,
  }: {
    readonly body: Readonly<Record<string, unknown>>;
    readonly subjectAt: (place: Place) => Subject;
    readonly findings: Finding[];
    readonly excluded: Exclusions;
  },
): Steps<void> {
  let faults = 0;
  for (const field of fields) {
    const limit = field.lookups.length > 0 ? maxLookups : maxPlaces;
    const places = placesOf(body, field.key, limit);
    if (typeof places === "string") {
      const name = field.key.slice(0, field.key.indexOf("*")).join(".");
      findings.push({ name, messages: [placesMessage(places, name, limit)], value: undefined, lookups: [] });
      continue;
    }
    for (const place of places) {
      if (isPartOver()) yield;
      const subject = subjectAt(place);
      if (excluded.children.size > 0 && isExcluded(excluded, put(field.key, place.captures))) continue;
      if (field.excludes.some((applies) => applies(subject))) {
        exclude(excluded, put(field.key, place.captures));
        continue;
      }
      const finding = examine(field, place, subject);
      if (finding === undefined) continue;
      findings.push(finding);
      if (finding.messages.length > 0 && ++faults === mostNamedFields) return;
    }
  }
}

function placesMessage(fault: PlacesFault, field: string, limit: number): string {
  if (fault === "long_key")
    return fill(`The :attribute field must not have keys of more than ${maxKeyLength} characters.`, field);
  return messageFor({ rule: "max", field, sizeKind: "array", blanks: { max: String(limit) } });
}

/** Returns the subject of each place. It is one object, whose place the next call changes. */
function createSubjects(body: Readonly<Record<string, unknown>>, now: Date): (place: Place) => Subject {
  const memo = new Map<string, unknown>();
  const once = <T>(name: string, compute: () => T): T => {
    if (!memo.has(name)) memo.set(name, compute());
    return memo.get(name) as T;
  };
  const allAt = (path: Path): readonly unknown[] => {
    const places = placesOf(body, path, maxPlaces);
    return typeof places === "string" ? [] : places.map(({ value }) => value);
  };

  let captures: readonly string[] = [];
  const subject = {
    value: undefined as unknown,
    now,
    once,
    allAt,
    at: (other: Path) => valueAt(body, other, captures),
    nameOf: (other: string) => displayName(nameAt(toPath(other), captures)),
  };
  return (place) => {
    subject.value = place.value;
    captures = place.captures;
    return subject;
  };
}

const nameAt = (key: Path, captures: readonly string[]): string => put(key, captures).join(".");

/** Returns undefined for a place without a fault and without look-ups. */
function examine(field: CompiledField, { value, captures }: Place, subject: Subject): Finding | undefined {
  if (value === undefined && field.isSometimes) return undefined;
  const messages: string[] = [];
  const isAbsent = value === undefined || (typeof value === "string" && value.trim() === "");
  const skipsPlainRules = isAbsent || (value === null && field.isNullable);
  for (const { name: rule, isImplicit, check } of field.tests) {
    const broken = isImplicit || !skipsPlainRules ? check(subject) : undefined;
    if (broken === undefined) continue;
    const name = nameAt(field.key, captures);
    messages.push(messageFor({ rule, field: name, sizeKind: field.sizeKind, ...broken }));
    if (isImplicit || field.isBail) break;
  }
  const lookups = messages.length > 0 || skipsPlainRules ? [] : field.lookups;
  if (messages.length === 0 && lookups.length === 0) return undefined;
  return { name: nameAt(field.key, captures), messages, value, lookups };
}

async function lookUp(findings: readonly Finding[], ask: ReturnType<typeof createAsker>): Promise<void> {
  const open = findings.filter(({ lookups }) => lookups.length > 0);
  await Promise.all(
    open.map(async ({ name, messages, value, lookups }) => {
      const answers = await Promise.all(lookups.map((test) => ask(test, value)));
      const failed = lookups.find((_, i) => answers[i] === false);
      if (failed !== undefined)
        messages.push(messageFor({ rule: failed.name, field: name, sizeKind: "string" }));
    }),
  );
}

function errorsOf(findings: readonly Finding[]): FieldErrors | undefined {
  const errors = new Map<string, string[]>();
  for (const { name, messages } of findings) {
    if (messages.length > 0) errors.set(name, [...(errors.get(name) ?? []), ...messages]);
  }
  return errors.size === 0 ? undefined : Object.fromEntries(errors);
}
