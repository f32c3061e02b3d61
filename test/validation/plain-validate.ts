import {
  maxPlaces,
  toPath,
  valueAt,
  countOf,
  isContainer,
  type Path,
} from "../../src/validation/body-paths.ts";
import { atOnce } from "../../src/kit/parts.ts";
import type { Subject } from "../../src/validation/check.ts";
import { cleanBody } from "../../src/validation/clean.ts";
import { compileField, type CompiledField, type KeyNode, keysOf } from "../../src/validation/compile.ts";
import { createAsker, maxLookups } from "../../src/validation/existence.ts";
import { messageFor } from "../../src/validation/messages.ts";
import type { RuleSpecs } from "../../src/validation/syntax.ts";
import type { Lookup, Validation } from "../../src/validation/validate.ts";
import { displayName } from "../../src/validation/values.ts";

interface Place {
  readonly path: Path;
  readonly captures: readonly string[];
}

interface Finding {
  readonly name: string;
  readonly messages: string[];
  readonly value: unknown;
  readonly lookups: CompiledField["lookups"];
}

const idOf = (path: Path): string => JSON.stringify(path);

/** Does the same as `validate`, without regard to time: paths are lists, and nothing is skipped. */
export async function plainValidate(
  specs: RuleSpecs,
  body: Readonly<Record<string, unknown>>,
  { lookup, now }: { readonly lookup: Lookup; readonly now: Date },
): Promise<Validation> {
  const fields = Object.entries(specs).map(([name, spec]) => compileField(name, spec));
  const { body: cleaned } = atOnce(cleanBody(body));
  const memo = new Map<string, unknown>();
  const excluded = new Set<string>();
  const isExcluded = (path: Path): boolean => path.some((_, i) => excluded.has(idOf(path.slice(0, i + 1))));
  const findings: Finding[] = [];
  for (const field of fields) {
    const limit = field.lookups.length > 0 ? maxLookups : maxPlaces;
    const places = placesOf(cleaned, field.key);
    if (places.length > limit) {
      const name = field.key.slice(0, field.key.indexOf("*")).join(".");
      const message = messageFor({
        rule: "max",
        field: name,
        sizeKind: "array",
        blanks: { max: String(limit) },
      });
      findings.push({ name, messages: [message], value: undefined, lookups: [] });
      continue;
    }
    for (const place of places) {
      if (isExcluded(place.path)) continue;
      const subject = subjectOf(place, cleaned, { now, memo });
      if (field.excludes.some((applies) => applies(subject))) excluded.add(idOf(place.path));
      else findings.push(examine(field, place, subject));
    }
  }
  const ask = createAsker((query) => lookup.exists(query), undefined);
  const open = findings.filter(({ messages, lookups }) => messages.length === 0 && lookups.length > 0);
  await Promise.all(
    open.map(async ({ name, messages, value, lookups }) => {
      const answers = await Promise.all(lookups.map((test) => ask(test, value)));
      const failed = lookups.find((_, i) => answers[i] === false);
      if (failed !== undefined)
        messages.push(messageFor({ rule: failed.name, field: name, sizeKind: "string" }));
    }),
  );
  const errors = new Map<string, string[]>();
  for (const { name, messages } of findings)
    if (messages.length > 0) errors.set(name, [...(errors.get(name) ?? []), ...messages]);
  if (errors.size > 0) return { kind: "invalid", errors: Object.fromEntries(errors) };
  const isKept = (path: Path): boolean => !excluded.has(idOf(path));
  const values = [...keysOf(fields).children].flatMap(([key, node]): [string, unknown][] => {
    const value = partOf(node, cleaned[key], [key], isKept);
    return value === undefined ? [] : [[key, value]];
  });
  return { kind: "valid", values: Object.fromEntries(values) };
}

function placesOf(body: unknown, key: Path): readonly Place[] {
  let places: Place[] = [{ path: [], captures: [] }];
  for (const step of key)
    places = places.flatMap(({ path, captures }) => {
      if (step !== "*") return [{ path: [...path, step], captures }];
      const value = valueAt(body, path);
      const keys = isContainer(value) ? Object.keys(value) : [];
      return keys.map((one) => ({ path: [...path, one], captures: [...captures, one] }));
    });
  return places;
}

function subjectOf(
  { path, captures }: Place,
  body: unknown,
  { now, memo }: { readonly now: Date; readonly memo: Map<string, unknown> },
): Subject {
  const at = (other: Path): Path => {
    const left = [...captures];
    return other.map((step) => (step === "*" ? (left.shift() ?? step) : step));
  };
  return {
    value: valueAt(body, path),
    now,
    at: (other) => valueAt(body, at(other)),
    nameOf: (other) => displayName(at(toPath(other)).join(".")),
    allAt: (other) => placesOf(body, other).map((place) => valueAt(body, place.path)),
    once<T>(name: string, compute: () => T): T {
      if (!memo.has(name)) memo.set(name, compute());
      return memo.get(name) as T;
    },
  };
}

function examine(field: CompiledField, { path }: Place, subject: Subject): Finding {
  const { value } = subject;
  const name = path.join(".");
  const messages: string[] = [];
  const skips = value === undefined || (value === null && field.isNullable);
  const found = { name, messages, value };
  if (value === undefined && field.isSometimes) return { ...found, lookups: [] };
  for (const { name: rule, isImplicit, check } of field.tests) {
    const broken = isImplicit || !skips ? check(subject) : undefined;
    if (broken === undefined) continue;
    messages.push(messageFor({ rule, field: name, sizeKind: field.sizeKind, ...broken }));
    if (isImplicit || field.isBail) break;
  }
  return { ...found, lookups: skips ? [] : field.lookups };
}

type IsKept = (path: Path) => boolean;

/** Returns the part of a value that has rules and is not excluded; undefined without one. */
function partOf(node: KeyNode, value: unknown, path: Path, isKept: IsKept): unknown {
  if (!isKept(path)) return undefined;
  if (node.children.size === 0 || !isContainer(value)) return node.hasRules ? value : undefined;
  if (node.hasRules && (!node.isArray || countOf(value) === 0)) return wholeOf(node, value, path, isKept);
  return mapped(node, value, (child, item, key) => child && partOf(child, item, [...path, key], isKept));
}

/** Returns the whole value without its excluded parts. */
function wholeOf(node: KeyNode, value: unknown, path: Path, isKept: IsKept): unknown {
  if (node.children.size === 0 || !isContainer(value) || countOf(value) === 0) return value;
  return mapped(node, value, (child, item, key) => {
    const own = [...path, key];
    if (child === undefined) return item;
    return isKept(own) ? wholeOf(child, item, own, isKept) : undefined;
  });
}

function mapped(
  { children }: KeyNode,
  value: object,
  act: (child: KeyNode | undefined, item: unknown, key: string) => unknown,
): unknown {
  const items = Object.entries(value)
    .map(([key, item]) => [key, act(children.get(key) ?? children.get("*"), item, key)] as const)
    .filter(([, item]) => item !== undefined);
  if (items.length === 0) return undefined;
  return Array.isArray(value) ? items.map(([, item]) => item) : Object.fromEntries(items);
}
