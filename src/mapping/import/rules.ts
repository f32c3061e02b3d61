import { deriveCreateRules, deriveUpdateRules } from "../derive-rules.ts";
import type { Field, FieldDefault } from "../definition.ts";
import type { FileField } from "../read/draft.ts";
import type { RuleSpec, RuleSpecs } from "../../validation/syntax.ts";
import { defaultLength } from "../storable.ts";
import { typeOptionsOf } from "../type-options.ts";
import type { ImportedColumn } from "./column.ts";

/** A field of the file with the column behind it. */
export interface FieldOfColumn {
  readonly name: string;
  readonly field: FileField;
  readonly imported: ImportedColumn;
}

type Rule = string | Readonly<Record<string, unknown>>;

/** The rules of a file that the service would not derive from its fields. */
export interface ImportedRules {
  readonly createRules?: RuleSpecs;
  readonly updateRules?: RuleSpecs;
}

/**
 * Returns rules where a column takes less than the type of its field, or where the client gives the
 * key. For any other table there are none: the service derives them.
 */
export function importedRules({
  resource,
  fields,
  ownerColumn,
  isSoleKey,
}: {
  readonly resource: string;
  readonly fields: readonly FieldOfColumn[];
  readonly ownerColumn: string | undefined;
  readonly isSoleKey: boolean;
}): ImportedRules {
  const more = new Map(fields.map((one) => [one.name, furtherRules(one)]));
  const givenKey = fields.find((one) => isSoleKey && isGivenKey(one));
  if (givenKey === undefined && [...more.values()].every((rules) => rules.length === 0)) return {};
  const definition = {
    name: resource,
    fields: fields.map((one) => fieldOf(one, one === givenKey)),
    ...(ownerColumn !== undefined && { ownerColumn }),
  };
  const withMore = (specs: RuleSpecs): RuleSpecs =>
    Object.fromEntries(
      Object.entries(specs).map(([key, spec]) => {
        const isItem = key.endsWith(".*");
        const [name = ""] = key.split(".");
        const isList = fields.some((one) => one.name === name && one.field.list === true);
        const own = isItem === isList ? (more.get(name) ?? []) : [];
        const derived = ([spec].flat() as Rule[]).filter((rule) => !isDefaultLength(rule));
        return [key, written([...derived, ...own])];
      }),
    );
  return {
    createRules: withMore(deriveCreateRules(definition)),
    updateRules: withMore(deriveUpdateRules(definition)),
  };
}

/** Every text without a length of its own is held to this one, whatever the rules say. */
function isDefaultLength(rule: Rule): boolean {
  return typeof rule === "object" && rule["max"] === defaultLength;
}

/** Returns whether the client gives a key that the service would take for one of the database. */
function isGivenKey({ field, imported }: FieldOfColumn): boolean {
  const isNumber = field.type === "Int" || field.type === "BigInt" || field.type === "Uuid";
  return (
    field.id === true &&
    isNumber &&
    field.references === undefined &&
    imported.default === undefined &&
    !imported.isGenerated &&
    !imported.isCounted
  );
}

const int2 = [-32_768, 32_767];

function furtherRules({
  field,
  imported: { baseType, checks, isGenerated },
}: FieldOfColumn): readonly Rule[] {
  if (isGenerated) return [];
  const isNumber = ["Int", "BigInt", "Float", "Decimal"].includes(field.type);
  const rules: Rule[] = baseType === "int2" ? [{ between: int2 }] : [];
  for (const check of checks) {
    const isText = field.type === "String";
    const isMeasured = { length: isText, size: isNumber, values: isText || isNumber }[check.kind];
    if (field.list === true || !isMeasured || field.native !== undefined) continue;
    // A blank text is null before any rule sees it.
    if (check.kind === "values") rules.push({ in: check.values.filter((value) => value !== "") });
    else rules.push({ [check.rule]: Number(check.bound) });
  }
  return rules;
}

/** Returns the part of a definition's field that the derived rules depend on. */
function fieldOf({ name, field, imported }: FieldOfColumn, isGiven: boolean): Field {
  const { type, references, as = "" } = field;
  const [resource = "", target = ""] = references?.split(".") ?? [];
  const isMade = imported.isCounted && field.id === true;
  const given: FieldDefault | undefined =
    Array.isArray(field.default) || imported.default === undefined
      ? field.default === undefined
        ? undefined
        : { kind: "literal", value: field.default }
      : isMade
        ? { kind: "autoincrement" }
        : imported.default;
  return {
    name,
    type,
    column: name,
    isList: field.list === true,
    isOptional: field.optional === true,
    isKey: field.id === true,
    isUnique: field.unique === true,
    isIndexed: false,
    isUpdatedAt: false,
    ...typeOptionsOf(field),
    ...(imported.isGenerated && { isGenerated: true as const }),
    ...(!isGiven && given !== undefined && { default: given }),
    ...(references !== undefined && { references: { resource, field: target, as, onDelete: "restrict" } }),
  };
}

/** Returns rules as a text, or as a list where a value has a character that separates them. */
function written(rules: readonly Rule[]): RuleSpec {
  const texts = rules.map((rule) => {
    if (typeof rule === "string") return rule;
    const [[name, given] = ["", ""]] = Object.entries(rule);
    const values = [given].flat().map(String);
    return values.every((value) => /^[\w.+-]+$/.test(value)) ? `${name}:${values.join(",")}` : undefined;
  });
  return texts.includes(undefined) ? rules : texts.join("|");
}
