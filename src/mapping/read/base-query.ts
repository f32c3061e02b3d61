import { hint } from "../../kit/did-you-mean.ts";
import type { YamlPath } from "../../config/yaml-source.ts";
import {
  numberTypes,
  type BaseQuery,
  type Field,
  type FieldType,
  type PrismaArgs,
  type Relation,
} from "../definition.ts";
import { isUniqueAlone } from "../keys.ts";
import { hasOrder } from "../native.ts";
import { hasFields, keysOf, type Draft, type Drafts } from "./draft.ts";
import { expectedText } from "./defaults.ts";
import { expectedOperand } from "./operands.ts";
import { isObject } from "../../kit/is-object.ts";

/** The place of the check in the query, with the resource of its names. */
interface Place {
  /** The draft that gets the reports. */
  readonly draft: Draft;
  readonly drafts: Drafts;
  /** Undefined when another fault hides the resource; nothing is checked then. */
  readonly here: Draft | undefined;
  readonly path: YamlPath;
  /** Whether texts such as `$user.id` stand for values of the caller. */
  readonly hasUser?: true;
}

/** Checks the names and the comparisons in the filter of an access rule. */
export function checkAccessFilter(draft: Draft, drafts: Drafts, path: YamlPath, where: PrismaArgs): void {
  checkWhere({ draft, drafts, here: draft, path, hasUser: true }, where);
}

/** Reads `baseQuery`, and checks every name in it against the fields and relations. */
export function readBaseQuery(draft: Draft, drafts: Drafts): BaseQuery {
  const { baseQuery } = draft.content;
  if (baseQuery === undefined) return {};
  const { include, orderBy, where } = baseQuery;
  const place: Place = { draft, drafts, here: draft, path: ["baseQuery"] };
  if (include !== undefined) checkInclude(within(place, "include"), include);
  if (orderBy !== undefined) checkOrderBy(within(place, "orderBy"), orderBy);
  if (where !== undefined) checkWhere(within(place, "where"), where);
  return {
    ...(include !== undefined && { include }),
    ...(orderBy !== undefined && { orderBy: [orderBy].flat() }),
    ...(where !== undefined && { where }),
  };
}

function within(place: Place, step: string | number): Place {
  return { ...place, path: [...place.path, step] };
}

function at(place: Place, relation: Relation | undefined): Place {
  return { ...place, here: relation === undefined ? undefined : place.drafts.get(relation.resource) };
}

function report({ draft, path }: Place, message: string, where?: "key"): void {
  draft.report(path, message, where);
}

type NameLookup =
  | { readonly kind: "field"; readonly field: Field }
  | { readonly kind: "relation"; readonly relation: Relation }
  /** The name is already reported, or unknown because of another fault. */
  | { readonly kind: "unknown" };

function lookUp(place: Place, name: string): NameLookup {
  const { here } = place;
  const field = here?.fields.get(name);
  if (field !== undefined) return { kind: "field", field };
  const relation = here?.relations.get(name);
  if (relation !== undefined) return { kind: "relation", relation };
  const isReported =
    here === undefined || !hasFields(here) || here.fields.has(name) || here.relations.has(name);
  if (!isReported && !here.mayHaveRelation(name)) {
    const known = [...here.fields.keys(), ...here.relations.keys()];
    report(place, `"${name}" is neither a field nor a relation${hint(name, known)}`, "key");
  }
  return { kind: "unknown" };
}

const includeKeys = ["include", "where", "orderBy", "take", "skip"];

function checkInclude(place: Place, include: PrismaArgs): void {
  for (const [name, value] of Object.entries(include)) {
    const inner = within(place, name);
    const named = lookUp(inner, name);
    if (named.kind === "field") {
      report(inner, "is a field, which every record has without it; expected a relation", "key");
    } else if (isObject(value)) {
      checkIncluded(inner, named.kind === "relation" ? named.relation : undefined, value);
    } else if (typeof value !== "boolean") report(inner, `expected true, or ${includeKeys.join(", ")}`);
  }
}

function checkIncluded(place: Place, relation: Relation | undefined, args: PrismaArgs): void {
  // A single record cannot be filtered, sorted or cut.
  const known = relation?.kind === "one" ? ["include"] : includeKeys;
  for (const [key, value] of Object.entries(args)) {
    const inner = within(at(place, relation), key);
    if (!known.includes(key)) report(inner, `unknown key${hint(key, known)}`, "key");
    else if (key === "take") {
      if (!Number.isInteger(value)) report(inner, "expected a whole number");
    } else if (key === "skip") {
      if (!Number.isInteger(value) || Number(value) < 0) report(inner, "expected a whole number from 0 on");
    } else if (key === "orderBy") checkOrderBy(inner, value);
    else if (!isObject(value)) report(inner, "expected keys and values");
    else if (key === "include") checkInclude(inner, value);
    else checkWhere(inner, value);
  }
}

function checkOrderBy(place: Place, orderBy: unknown): void {
  if (Array.isArray(orderBy))
    return orderBy.forEach((item, index) => checkOrderBy(within(place, index), item));
  if (!isObject(orderBy)) return report(place, "expected a field and asc or desc");
  for (const [name, value] of Object.entries(orderBy)) {
    const inner = within(place, name);
    const named = lookUp(inner, name);
    if (named.kind === "field") checkDirection(inner, named.field, value);
    else if (named.kind === "relation" && named.relation.kind === "many") {
      if (!isObject(value) || !isDirection(value["_count"]) || Object.keys(value).length !== 1) {
        report(inner, "expected { _count: asc } or { _count: desc } for a relation to many");
      }
    } else if (named.kind === "relation") checkOrderBy(at(inner, named.relation), value);
  }
}

const isDirection = (value: unknown): boolean => value === "asc" || value === "desc";

function checkDirection(place: Place, field: Field, value: unknown): void {
  const { isOptional, native } = field;
  if (!hasOrder(field))
    return report(place, `the native type ${native} has no order; expected another field`, "key");
  if (isDirection(value)) return;
  const isPlaced =
    isObject(value) &&
    isDirection(value["sort"]) &&
    (value["nulls"] === "first" || value["nulls"] === "last") &&
    Object.keys(value).length === 2;
  if (!isPlaced) report(place, "expected asc, desc or { sort: asc, nulls: last }");
  else if (!isOptional) report(place, "expected asc or desc; `nulls` is for optional fields");
}

const combinations = ["AND", "OR", "NOT"];
const toOne = ["is", "isNot"];
const toMany = ["some", "every", "none"];
const comparisons = ["equals", "not", "in", "notIn", "lt", "lte", "gt", "gte"];
const textComparisons = ["contains", "startsWith", "endsWith"];
const listComparisons = ["equals", "has", "hasEvery", "hasSome", "isEmpty"];
const jsonTexts = ["string_contains", "string_starts_with", "string_ends_with"];
const jsonValues = ["equals", "not", "array_contains", "array_starts_with", "array_ends_with"];
const jsonOrders = ["lt", "lte", "gt", "gte"];
const jsonComparisons = ["path", "mode", ...jsonTexts, ...jsonValues, ...jsonOrders];

function checkWhere(place: Place, where: PrismaArgs): void {
  for (const [name, value] of Object.entries(where)) {
    const inner = within(place, name);
    if (combinations.includes(name)) {
      if (name === "OR" && !Array.isArray(value)) report(inner, "expected a list of filters");
      for (const [index, item] of [value].flat().entries()) {
        const one = Array.isArray(value) ? within(inner, index) : inner;
        if (isObject(item)) checkWhere(one, item);
        else report(one, "expected a filter, such as { status: open }");
      }
      continue;
    }
    const named = lookUp(inner, name);
    if (named.kind === "field") checkComparison(inner, named.field, value);
    else if (named.kind === "relation") checkRelated(inner, named.relation, value);
  }
}

function checkComparison(place: Place, field: Field, value: unknown): void {
  if (field.type === "Json") {
    if (place.hasUser) report(place, "a Json field cannot decide on access; expected another field", "key");
    else checkJson(place, field, value);
    return;
  }
  if (!isObject(value))
    return checkOperand(place, field, value, { isList: field.isList, mayBeNull: !field.isList });
  const isText = field.type === "String" || field.type === "Enum";
  const known = field.isList
    ? listComparisons
    : [...comparisons, ...(isText ? [...textComparisons, "mode"] : [])];
  for (const [operator, operand] of Object.entries(value)) {
    const inner = within(place, operator);
    if (!known.includes(operator)) report(inner, `unknown comparison${hint(operator, known)}`, "key");
    else if (operator === "not" && isObject(operand)) checkComparison(inner, field, operand);
    else if (operator === "mode") checkMode(inner, operand);
    // These operators would compare with the text `$user.id` itself, which NOT makes true for every
    // user.
    else if (textComparisons.includes(operator) && isUserValue(inner, operand))
      report(inner, `${operator} cannot compare with a value of the user; expected equals or in`);
    else if (operator === "isEmpty") {
      if (typeof operand !== "boolean") report(inner, "expected true or false");
    } else if (textComparisons.includes(operator)) {
      const expected = expectedText(operand);
      if (expected !== undefined) report(inner, `expected ${expected}`);
    } else {
      const isList = field.isList ? operator !== "has" : ["in", "notIn"].includes(operator);
      checkOperand(inner, field, operand, { isList, mayBeNull: ["equals", "not", "has"].includes(operator) });
    }
  }
}

function checkMode(place: Place, mode: unknown): void {
  if (mode !== "default" && mode !== "insensitive") report(place, "expected default or insensitive");
}

/** Checks Prisma's filter on a Json field, which may be compared with any JSON. */
function checkJson(place: Place, { isList }: Field, value: unknown): void {
  const example = isList ? "{ has: pro }" : "{ path: [plan], equals: pro }";
  const known = isList ? listComparisons : jsonComparisons;
  const words = isObject(value) ? Object.keys(value) : [];
  const isOnlyPath = words.includes("path") && words.every((word) => word === "path" || word === "mode");
  if (!isObject(value) || isOnlyPath || (isList && words.length === 0))
    return report(place, `expected a comparison, such as ${example}`);
  for (const [operator, operand] of Object.entries(value)) {
    const inner = within(place, operator);
    const isText = jsonTexts.includes(operator);
    if (!known.includes(operator)) report(inner, `unknown comparison${hint(operator, known)}`, "key");
    else if (operator === "mode") checkMode(inner, operand);
    else if (operator === "path") {
      if (!Array.isArray(operand) || operand.some((key) => typeof key !== "string"))
        report(inner, "expected a list of texts");
    } else if (isText && value["mode"] === "insensitive" && !("path" in value))
      report(inner, "expected `path` beside it, which `mode: insensitive` needs");
    else if (isText) {
      const expected = expectedText(operand);
      if (expected !== undefined) report(inner, `expected ${expected}`);
    } else if (jsonOrders.includes(operator) && typeof operand !== "number" && typeof operand !== "string")
      report(inner, "expected a number or a text");
  }
}

function checkOperand(
  place: Place,
  field: Field,
  operand: unknown,
  { isList, mayBeNull }: { readonly isList: boolean; readonly mayBeNull: boolean },
): void {
  if (isUserValue(place, operand)) return checkUserValue(place, field, operand);
  if (operand === null && mayBeNull) return;
  if (!isList && Array.isArray(operand))
    return report(place, field.isList ? "expected one value" : "expected one value, or { in: [...] }");
  if (!isList) return checkValue(place, field, operand);
  if (!Array.isArray(operand)) return report(place, "expected a list of values");
  for (const [index, one] of operand.entries()) checkValue(within(place, index), field, one);
}

function checkValue(place: Place, field: Field, value: unknown): void {
  if (isUserValue(place, value)) return checkUserValue(place, field, value);
  const expected = expectedOperand(field, value);
  if (expected !== undefined) report(place, `expected ${expected}`);
}

function isUserValue({ hasUser }: Place, value: unknown): value is string {
  return hasUser === true && typeof value === "string" && value.startsWith("$user.");
}

/**
 * Checks that the field may have the value. A `Boolean` reads `1` as true, which would admit the
 * user 1. A claim may have any type.
 */
function checkUserValue(place: Place, { type }: Field, value: string): void {
  if (!userValue.test(value))
    report(place, `there is no ${value}; expected $user.id, $user.email or $user.claims.NAME`);
  else if (value === "$user.id" && ![...numberTypes, ...texts].includes(type))
    report(place, "a field of this type is never a user's id; expected a number or a text", "key");
  else if (value === "$user.email" && !texts.includes(type))
    report(place, "a field of this type is never an e-mail address; expected a text", "key");
}

const userValue = /^\$user\.(?:id|email|claims\.[^.\s]+)$/;

const texts: readonly FieldType[] = ["String", "Enum"];

function checkRelated(place: Place, relation: Relation, value: unknown): void {
  const target = at(place, relation);
  if (value === null && relation.kind === "one") return;
  if (!isObject(value)) return report(place, `expected a filter on ${relation.resource}`);
  // A relation to many has at most one record when the field at the other end is unique.
  const foreign = target.here?.fields.get(relation.foreignField);
  const isUnique = foreign !== undefined && isUniqueAlone(foreign, { keys: keysOf(target.here) });
  const isOne = relation.kind === "one" || isUnique;
  const words = isOne ? toOne : toMany;
  if (isOne && !Object.keys(value).some((key) => words.includes(key))) return checkWhere(target, value);
  for (const [key, filter] of Object.entries(value)) {
    const inner = within(target, key);
    if (!words.includes(key)) report(inner, `unknown key${hint(key, words)}`, "key");
    else if (isObject(filter)) checkWhere(inner, filter);
    else if (filter !== null || !isOne) report(inner, `expected a filter on ${relation.resource}`);
  }
}
