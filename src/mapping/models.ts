import { Decimal } from "@prisma/client/runtime/client";
import type { Definition, Definitions, DeleteAction, Field, FieldType, Relation } from "./definition.ts";

/** Prisma's names of the referential actions. */
const deleteActions: Readonly<Record<DeleteAction, string>> = {
  restrict: "Restrict",
  cascade: "Cascade",
  setNull: "SetNull",
  noAction: "NoAction",
};

/**
 * The Prisma schema of the models client: one model per definition, in the order of the definitions.
 * Pure: the same definitions give the same text.
 *
 * An enum is a String, checked by the table's CHECK constraint, which the migration makes: values can be added without `ALTER TYPE`.
 * Keys are followed by the references to them when they change (`onUpdate: Cascade`, as Prisma does by default).
 */
export function prismaSchemaOf(definitions: Definitions): string {
  const header = block("datasource db", [`provider = "postgresql"`]);
  const models = [...definitions.values()].map((definition) => modelOf(definition, definitions));
  return `${[header, ...models].join("\n\n")}\n`;
}

/**
 * One definition's model without the other resources' references to it: what its own table is made from. It changes when that table may
 * have to, and not with another mapping file.
 */
export function tableModelOf(definition: Definition, definitions: Definitions): string {
  const relations = definition.relations.filter(({ kind }) => kind === "one");
  return modelOf({ ...definition, relations }, definitions);
}

/**
 * What a mapping file asks of a column of a table that the service makes: its type, whether it may be null, and its default, in the words of
 * the Prisma schema. They change when, and only when, the file asks for something else.
 */
export function columnWishOf(field: Field): Readonly<Record<"type" | "nullability" | "default", string>> {
  const type = [`${prismaType(field)}${field.isList ? "[]" : ""}`, nativeType(field, true)];
  return {
    type: type.filter((part) => part !== undefined).join(" "),
    nullability: field.isOptional ? "optional" : "required",
    default: defaultOf(field, true).join(" "),
  };
}

function modelOf(definition: Definition, definitions: Definitions): string {
  return block(`model ${definition.model}`, [
    ...definition.fields.map((field) => fieldLine(field, definition.isManaged)),
    ...definition.relations.map((relation) => relationLine(relation, definition, definitions)),
    ...definition.fields.filter(isIndexDue).map(({ name }) => `@@index([${name}])`),
    `@@map(${quote(definition.table)})`,
  ]);
}

/** Key and unique columns have an index already; PostgreSQL makes none for a foreign key. */
function isIndexDue(field: Field): boolean {
  return !field.isKey && !field.isUnique && (field.isIndexed || field.references !== undefined);
}

function fieldLine(field: Field, isManaged: boolean): string {
  const suffix = field.isList ? "[]" : field.isOptional ? "?" : "";
  return [
    field.name,
    `${prismaType(field)}${suffix}`,
    field.isKey && "@id",
    field.isUnique && !field.isKey && "@unique",
    ...defaultOf(field, isManaged),
    field.column !== field.name && `@map(${quote(field.column)})`,
    nativeType(field, isManaged),
  ]
    .filter((part) => typeof part === "string")
    .join(" ");
}

function prismaType({ type }: Field): string {
  return type === "Enum" || type === "Uuid" ? "String" : type;
}

/**
 * `@db` attributes shape the tables that the service makes. A table that someone else made keeps its own types, so
 * none is stated, except `Uuid`: a comparison of a uuid column with text is an error in PostgreSQL.
 */
function nativeType(field: Field, isManaged: boolean): string | undefined {
  if (field.type === "Uuid") return "@db.Uuid";
  if (!isManaged) return undefined;
  if (field.type === "DateTime") return "@db.Timestamptz(3)";
  if (field.type === "String" && field.length !== undefined) return `@db.VarChar(${field.length})`;
  if (field.type === "Decimal" && field.precision !== undefined)
    return `@db.Decimal(${field.precision}, ${field.scale ?? 0})`;
  return undefined;
}

function defaultOf(field: Field, isManaged: boolean): string[] {
  if (field.isUpdatedAt) return ["@default(now())", "@updatedAt"];
  if (field.default === undefined) return [];
  if (field.default.kind === "literal") {
    const expression = isManaged ? expressionOf(field, field.default.value) : undefined;
    if (expression !== undefined) return [`@default(dbgenerated(${quote(expression)}))`];
    return [`@default(${literalOf(field, field.default.value)})`];
  }
  // Made by the database, so that a writer other than this service gets one too.
  if (field.default.kind === "uuid")
    return [
      `@default(dbgenerated("${field.type === "Uuid" ? "gen_random_uuid()" : "(gen_random_uuid())::text"}"))`,
    ];
  return [`@default(${field.default.kind}())`];
}

/**
 * The default as an expression, for the literals that Prisma writes but does not know again in a live column: it would set them anew at
 * every migration. Undefined for all others. PostgreSQL keeps the cast from text as it is written, and folds any shorter form into
 * another spelling.
 */
function expressionOf(field: Field, value: unknown): string | undefined {
  const { type, isList, precision, scale } = field;
  const name = forgottenTypes[type];
  if (name === undefined || (type !== "Uuid" && !isList)) return undefined;
  const digits =
    type === "Decimal" ? `(${precision ?? 65},${precision === undefined ? 30 : (scale ?? 0)})` : "";
  const text = Array.isArray(value) ? `{${value.join(",")}}` : String(value);
  return `('${text}'::text)::${name}${digits}${isList ? "[]" : ""}`;
}

/** None of their literals has a character that is special in a text or in an array. */
const forgottenTypes: Partial<Record<FieldType, string>> = {
  BigInt: "bigint",
  Float: "double precision",
  Decimal: "numeric",
  Uuid: "uuid",
};

const bareLiterals: readonly FieldType[] = ["Int", "BigInt", "Float", "Decimal", "Boolean"];

function literalOf(field: Field, value: unknown): string {
  if (field.isList && Array.isArray(value))
    return `[${value.map((item) => literalOf({ ...field, isList: false }, item)).join(", ")}]`;
  if (field.type === "Json") return quote(JSON.stringify(value));
  // Prisma knows no exponents.
  if (field.type === "Float") return new Decimal(String(value)).toFixed();
  if (field.type === "DateTime") return quote(new Date(String(value)).toISOString());
  return bareLiterals.includes(field.type) ? String(value) : quote(String(value));
}

function relationLine(relation: Relation, definition: Definition, definitions: Definitions): string {
  const other = definitions.get(relation.resource);
  if (other === undefined)
    throw new Error(`${definition.name}.${relation.name}: no resource ${relation.resource}`);
  const name = `name: ${quote(relation.relationName)}`;
  const foreign = relation.kind === "many" ? fieldOf(other, relation.foreignField) : undefined;
  // The referencing field is unique: at most one record is at the other end, and Prisma wants it said.
  if (foreign !== undefined) {
    const suffix = foreign.isUnique || foreign.isKey ? "?" : "[]";
    return `${relation.name} ${other.model}${suffix} @relation(${name})`;
  }
  const local = fieldOf(definition, relation.localField);
  const parts = [
    name,
    `fields: [${relation.localField}]`,
    `references: [${relation.foreignField}]`,
    `onDelete: ${deleteActions[local.references?.onDelete ?? "restrict"]}`,
    "onUpdate: Cascade",
  ];
  return `${relation.name} ${other.model}${local.isOptional ? "?" : ""} @relation(${parts.join(", ")})`;
}

function fieldOf(definition: Definition, name: string): Field {
  const field = definition.fields.find((candidate) => candidate.name === name);
  if (field === undefined) throw new Error(`${definition.name}: no field ${name}`);
  return field;
}

function block(head: string, lines: readonly string[]): string {
  return `${head} {\n${lines.map((line) => `  ${line}\n`).join("")}}`;
}

/** JSON's escapes are the ones of Prisma's string literals. */
function quote(text: string): string {
  return JSON.stringify(text);
}
