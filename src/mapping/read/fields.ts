import { maxNameBytes } from "../../db/names.ts";
import { fieldTypes, type Field } from "../definition.ts";
import { readDefault } from "./defaults.ts";
import { textFault } from "../storable.ts";
import { typeOptionsOf } from "../type-options.ts";
import { hasFields, type Draft, type FileField } from "./draft.ts";

/** Types whose values have exactly one text, which can be the id of a record. */
export const keyTypes: readonly string[] = fieldTypes.filter(
  (type) => !["Float", "Interval", "Json", "Bytes"].includes(type),
);

/** Types that can hold the id of a user. */
export const ownerTypes: readonly string[] = ["Int", "BigInt", "String"];

/** Words of Prisma's filters. */
const filterWords = new Set(["AND", "OR", "NOT"]);

/** Reads every field of the file, except for its references; see relations.ts. */
export function readFields(draft: Draft): void {
  const { fields = {} } = draft.content;
  const keys = Object.values(fields).filter((given) => given?.id === true).length;
  for (const [name, given] of Object.entries(fields)) {
    if (isReserved(name))
      draft.report(
        ["fields", name],
        "the name is reserved; expected another, with `column: ` for the database's",
        "key",
      );
    draft.fields.set(name, given === undefined ? undefined : readField(draft, name, given, keys === 1));
  }
  checkKey(draft);
  checkColumns(draft);
}

/**
 * Returns whether every object has a property of that name, so that its absence cannot be detected.
 */
export function isReserved(name: string): boolean {
  return name in Object.prototype || filterWords.has(name);
}

/**
 * Reads a field.
 *
 * @param isSoleKey Whether the key has one field only, in case the field is part of it.
 */
function readField(draft: Draft, name: string, given: FileField, isSoleKey: boolean): Field | undefined {
  const before = draft.faults.length;
  const { type, precision, scale, length, values, native } = given;
  const report = (key: keyof FileField, message: string): void =>
    draft.report(["fields", name, key], message);
  const only = (key: keyof FileField, isFine: boolean, types: string): void => {
    if (given[key] !== undefined && given[key] !== false && !isFine) report(key, `is for ${types} only`);
  };
  const isKey = given.id === true;
  const isList = given.list === true;

  only("length", type === "String", "String");
  only("precision", type === "Decimal", "Decimal");
  only("scale", type === "Decimal", "Decimal");
  only("values", type === "Enum", "Enum");
  only("updatedAt", type === "DateTime" && !isList, "a DateTime");
  const isText = type === "String" && length === undefined;
  only("native", isText || type === "Enum" || isList, "a String without `length`, an Enum or a list");
  only("unique", native !== "xml", "types that PostgreSQL compares");
  only("index", native !== "xml", "types that PostgreSQL compares");
  only("generated", draft.content.managed === false, "a table with `managed: false`");
  only("as", given.references !== undefined, "a field with `references`");
  only("onDelete", given.references !== undefined, "a field with `references`");
  only("optional", !isKey && !isList, "a field that is neither the key nor a list");
  only("list", !isKey && given.references === undefined, "a field that is neither the key nor a reference");
  if (type === "Enum" && values === undefined) draft.report(["fields", name], 'expected the key "values"');
  if (values !== undefined && new Set(values).size < values.length)
    report("values", "expected each value once");
  const fault = values?.map(textFault).find((found) => found !== undefined);
  if (fault !== undefined) report("values", `expected values without ${fault}`);
  if (type === "Decimal" && scale !== undefined && precision === undefined)
    report("scale", "expected `precision` beside it");
  if (scale !== undefined && scale > (precision ?? scale)) report("scale", "expected at most the precision");
  if (isKey && !keyTypes.includes(type)) report("type", `expected one of ${keyTypes.join(", ")} for the key`);
  if (isKey && native !== undefined && draft.content.managed !== false)
    report("native", "the key of a managed table has one of the types of svc");
  if (given.generated === true && given.default !== undefined)
    report("default", "the database computes a field with `generated`; expected no default");
  if (given.generated === true && given.updatedAt === true)
    report("updatedAt", "the database computes a field with `generated`; expected one of the two");
  if (given.updatedAt === true && given.default !== undefined)
    report("default", "a field with `updatedAt` is set anyway; expected no default");
  if (Buffer.byteLength(given.column ?? "") > maxNameBytes)
    report("column", `expected at most ${maxNameBytes} bytes`);
  if (given.onDelete === "setNull" && given.optional !== true)
    report("onDelete", "setNull needs `optional: true`");
  if (draft.faults.length > before) return undefined;

  const field: Field = {
    name,
    type: type === "DateTime" && !isList && isIdentifying(given) ? "Instant" : type,
    column: given.column ?? name,
    isList,
    isOptional: given.optional === true,
    isKey,
    ...(isKey && draft.content.view === true && { isNullable: true }),
    isUnique: given.unique === true,
    isIndexed: given.index === true,
    isUpdatedAt: given.updatedAt === true,
    ...(given.generated === true && { isGenerated: true }),
    ...(native !== undefined && { native }),
    ...typeOptionsOf(given),
  };
  return withDefault(draft, field, given, isSoleKey);
}

/** Returns whether the values of a field lead to single records. */
function isIdentifying({ id, unique, references }: FileField): boolean {
  return id === true || unique === true || references !== undefined;
}

function withDefault(draft: Draft, field: Field, given: FileField, isSoleKey: boolean): Field | undefined {
  if (given.default === undefined) {
    // The client gives a key that is another resource's key, and every part of a key of several
    // fields.
    const isMade = ["Int", "BigInt", "Uuid"].includes(field.type) && !field.isGenerated;
    if (!field.isKey || !isSoleKey || given.references !== undefined || !isMade) return field;
    return { ...field, default: { kind: field.type === "Uuid" ? "uuid" : "autoincrement" } };
  }
  // Null is also the value of an optional field without a default.
  if (given.default === null && field.isOptional) return field;
  const read = readDefault(field, given.default);
  if (read.kind === "ok") return { ...field, default: read.value };
  draft.report(["fields", field.name, "default"], read.message);
  return undefined;
}

function checkKey(draft: Draft): void {
  if (!hasFields(draft)) return;
  const given = Object.entries(draft.content.fields ?? {});
  // A faulty field may be the key.
  const isMissing = given.every(([, field]) => field !== undefined && field.id !== true);
  if (isMissing)
    draft.report(
      ["fields"],
      "expected `id: true` at the field that is the key, or at each one of its fields",
    );
}

function checkColumns(draft: Draft): void {
  const taken = new Map<string, string>();
  for (const field of draft.fields.values()) {
    if (field === undefined) continue;
    const other = taken.get(field.column);
    if (other !== undefined)
      draft.report(["fields", field.name], `the column "${field.column}" is that of the field "${other}"`);
    taken.set(field.column, field.name);
  }
}
