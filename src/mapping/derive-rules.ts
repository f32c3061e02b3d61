import type { Definition, Field, FieldDefault, FieldType } from "./definition.ts";
import type { RuleSpecs } from "../validation/syntax.ts";
import { defaultLength } from "./storable.ts";

type Rules = (string | Readonly<Record<string, unknown>>)[];

/** The parts of a definition from which rules are derived. */
type Fields = Pick<Definition, "name" | "isManaged" | "fields" | "ownerColumn">;

/**
 * Derives the rules of a resource without its own rules. They contain the fields that a client may
 * set, required unless optional or with a default.
 */
export function deriveCreateRules(definition: Fields): RuleSpecs {
  return rulesOf(definition, ({ isOptional, default: given }) => isOptional || given !== undefined);
}

/** Derives the same rules with every field optional. The key never changes. */
export function deriveUpdateRules(definition: Fields): RuleSpecs {
  return rulesOf({ ...definition, fields: definition.fields.filter((field) => !field.isKey) }, () => true);
}

function rulesOf(definition: Fields, mayBeAbsent: (field: Field) => boolean): RuleSpecs {
  const settable = definition.fields.filter((field) => isSettable(field, definition));
  return Object.fromEntries(
    settable.flatMap((field): [string, Rules][] => {
      const presence = presenceOf(field, mayBeAbsent(field));
      const more = relationRules(field, definition.name);
      if (!field.isList) return [[field.name, [...presence, ...typeRules[field.type](field), ...more]]];
      // PostgreSQL allows NULL in every array, so an existing table may have it.
      const item = definition.isManaged ? "required" : "nullable";
      const items: [string, Rules][] = [[`${field.name}.*`, [item, ...typeRules[field.type](field)]]];
      return [[field.name, [...presence, "array"]], ...(field.type === "Json" ? [] : items)];
    }),
  );
}

/**
 * Returns whether a client may set the field, because neither the database nor the service fills
 * it.
 */
function isSettable(field: Field, { ownerColumn }: Fields): boolean {
  const isGenerated = field.isGenerated === true || isMade(field.default);
  return !isGenerated && !field.isUpdatedAt && field.name !== ownerColumn;
}

/**
 * Returns whether the database generates the value, so that clients give none. The effect of a
 * default of the table itself is unknown, so clients may give a value there.
 */
export function isMade(given: FieldDefault | undefined): boolean {
  return given !== undefined && given.kind !== "literal" && given.kind !== "database";
}

/**
 * Returns whether null and a blank text, which becomes null, are the empty text in the field. They
 * are where it is the default of the field, as in most tables of Rails and Django. No client could
 * empty such a text otherwise.
 */
export function isEmptyByDefault({ type, isList, isOptional, isKey, default: given }: Field): boolean {
  const isText = type === "String" && !isList && !isOptional && !isKey;
  return isText && given?.kind === "literal" && given.value === "";
}

function presenceOf(field: Field, mayBeAbsent: boolean): Rules {
  const nullable = field.isOptional || isEmptyByDefault(field) ? ["nullable"] : [];
  if (mayBeAbsent) return ["sometimes", ...nullable];
  // `required` refuses `[]` and `{}`, which are valid values here.
  return [field.isList || field.type === "Json" ? "present" : "required", ...nullable];
}

const typeRules: Readonly<Record<FieldType, (field: Field) => Rules>> = {
  String: ({ length = defaultLength }) => ["string", { max: length }],
  Int: () => ["integer"],
  BigInt: () => ["integer"],
  Float: () => ["numeric"],
  // `bail`, because "must be a number" is enough for a text that is not a number.
  Decimal: ({ scale }) =>
    scale === undefined ? ["numeric"] : ["bail", "numeric", { decimal: scale === 0 ? 0 : [0, scale] }],
  Boolean: () => ["boolean"],
  DateTime: () => ["date"],
  Instant: () => ["date"],
  Date: () => [{ date_format: "Y-m-d" }],
  // `coerce` checks their forms, for which Laravel has no rules.
  Time: () => ["string"],
  Interval: () => ["string"],
  Uuid: () => ["uuid"],
  Enum: ({ values = [] }) => [{ in: values }],
  Bytes: () => ["string", "base64"],
  Json: () => [],
};

function relationRules({ name, isUnique, references }: Field, resource: string): Rules {
  const unique: Rules = isUnique ? [{ unique: [resource, name] }] : [];
  return references === undefined ? unique : [...unique, { exists: [references.resource, references.field] }];
}
