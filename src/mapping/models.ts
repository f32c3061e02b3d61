import { Decimal } from "../kit/prisma-values.ts";
import { fittingName, partsOfTable, quoteText, tablesSchema } from "../db/names.ts";
import type { Definition, Definitions, DeleteAction, Field, FieldType, Relation } from "./definition.ts";
import { isUniqueAlone } from "./keys.ts";
import { digitsOf } from "./storable.ts";

/** Prisma's names of the referential actions. */
const deleteActions: Readonly<Record<DeleteAction, string>> = {
  restrict: "Restrict",
  cascade: "Cascade",
  setNull: "SetNull",
  noAction: "NoAction",
};

/**
 * Returns the Prisma schema of the models client: one model per definition, in their order. Pure.
 *
 * An enum is a String with a CHECK constraint from the migration: values can be added without
 * `ALTER TYPE`. When a key changes, the references to it follow (`onUpdate: Cascade`, Prisma's
 * default).
 *
 * @param schemas Schemas of the tables, and those that foreign keys lead into.
 */
export function prismaSchemaOf(definitions: Definitions, schemas = schemasOf(definitions)): string {
  const hasSchemas = schemas.length > 1;
  const header = block("datasource db", [
    `provider = "postgresql"`,
    ...(hasSchemas ? [`schemas = [${schemas.map(quote).join(", ")}]`] : []),
  ]);
  const models = [...definitions.values()].map((definition) => modelOf(definition, definitions, hasSchemas));
  return `${[header, ...models].join("\n\n")}\n`;
}

/** Returns the model of one resource, as in `prismaSchemaOf`. */
export function prismaModelOf(definition: Definition, definitions: Definitions): string {
  return modelOf(definition, definitions, schemasOf(definitions).length > 1);
}

/** Returns the PostgreSQL schemas of the tables, `public` first. */
export function schemasOf(definitions: Definitions): readonly string[] {
  const named = [...definitions.values()].map(({ table }) => partsOfTable(table).schema);
  return [...new Set([tablesSchema, ...named])];
}

/**
 * Returns one definition's model without the references of other resources to it. It describes the
 * resource's own table only, so that another mapping file does not change it.
 */
export function tableModelOf(definition: Definition, definitions: Definitions): string {
  const relations = definition.relations.filter(({ kind }) => kind === "one");
  const hasSchema = partsOfTable(definition.table).schema !== tablesSchema;
  return modelOf({ ...definition, relations }, definitions, hasSchema);
}

/**
 * Returns the wanted type, nullability and default of a column, in the words of the Prisma schema.
 * A part changes if and only if the mapping file changes it.
 */
export function columnWishOf(field: Field): Readonly<Record<"type" | "nullability" | "default", string>> {
  const type = [`${prismaType(field, true)}${field.isList ? "[]" : ""}`, nativeType(field, true)];
  return {
    type: type.filter((part) => part !== undefined).join(" "),
    nullability: field.isOptional ? "optional" : "required",
    default: defaultOf(field, true).join(" "),
  };
}

function modelOf(definition: Definition, definitions: Definitions, hasSchema: boolean): string {
  const { keys, uniques } = definition;
  const { schema, name: table } = partsOfTable(definition.table);
  return block(`model ${definition.model}`, [
    ...definition.fields.map((field) => fieldLine(field, definition)),
    ...definition.relations.map((relation) => relationLine(relation, definition, definitions)),
    ...(keys.length > 1
      ? [`@@id([${keys.map(({ name }) => name).join(", ")}]${longName(definition, [], "_pkey", ", ")})`]
      : []),
    ...uniques.map((names) => `@@unique([${names.join(", ")}]${longName(definition, names, "_key", ", ")})`),
    ...definition.fields
      .filter((field) => definition.isManaged && isIndexDue(field, definition))
      .map(({ name }) => `@@index([${name}])`),
    `@@map(${quote(table)})`,
    ...(hasSchema ? [`@@schema(${quote(schema)})`] : []),
  ]);
}

/**
 * Returns a name for an index or constraint of an existing table, where Prisma would cut its own
 * name. Two cut names may be equal. The table has other names, which are not used here.
 *
 * @param before Separator from the preceding text.
 */
function longName(
  { isManaged, table }: Definition,
  names: readonly string[],
  ending: string,
  before: string,
): string {
  const stem = [partsOfTable(table).name, ...names].join("_");
  const name = fittingName(stem, ending);
  return isManaged || name === stem + ending ? "" : `${before}map: ${quote(name)}`;
}

/** Adds a name in parentheses to an attribute without other arguments. */
function withName(attribute: string, name: string): string {
  return name === "" ? attribute : `${attribute}(${name})`;
}

/**
 * Returns whether the field needs an index. Unique columns and the first column of the key have
 * one. PostgreSQL creates none for a foreign key.
 */
function isIndexDue(field: Field, { key }: Pick<Definition, "key">): boolean {
  const isServed = field.name === key.name || field.isUnique;
  return !isServed && (field.isIndexed || field.references !== undefined);
}

function fieldLine(field: Field, definition: Definition): string {
  const { isManaged, keys } = definition;
  const isSoleKey = field.isKey && keys.length === 1;
  const suffix = field.isList ? "[]" : field.isOptional ? "?" : "";
  return [
    field.name,
    `${prismaType(field, isManaged)}${suffix}`,
    isSoleKey && withName("@id", longName(definition, [], "_pkey", "")),
    field.isUnique && !isSoleKey && withName("@unique", longName(definition, [field.column], "_key", "")),
    ...defaultOf(field, isManaged),
    field.column !== field.name && `@map(${quote(field.column)})`,
    nativeType(field, isManaged),
  ]
    .filter((part) => typeof part === "string")
    .join(" ");
}

function prismaType(field: Field, isManaged: boolean): string {
  const { type, native, isKey, isUnique, references } = field;
  // Prisma requires a separate type for keys and for both ends of a relation. It never reads these
  // fields: see `refuseUnsupportedFields`. No managed table has such a key or reference.
  const isNamed = !isManaged && (isKey || isUnique || references !== undefined);
  if (isUnsupported(field) && isNamed) return "String";
  if (isUnsupported(field)) return `Unsupported(${quote(native ?? "interval")})`;
  if (["Date", "Time", "Instant"].includes(type)) return "DateTime";
  return type === "Enum" || type === "Uuid" ? "String" : type;
}

/** Types of PostgreSQL that Prisma reads as texts. */
const nativeTypes: ReadonlyMap<string, string> = new Map([
  ["inet", "@db.Inet"],
  ["citext", "@db.Citext"],
  ["xml", "@db.Xml"],
]);

/**
 * Returns whether the Prisma client does not know the field, so that it can answer no query about
 * its resource.
 */
export function isUnsupported({ type, native }: Field): boolean {
  return type === "Interval" || (native !== undefined && !nativeTypes.has(native));
}

/**
 * Returns the `@db` attribute of a column of a managed table. An existing table keeps its own
 * types. Its columns get an attribute only where PostgreSQL cannot compare the column with Prisma's
 * values.
 */
function nativeType(field: Field, isManaged: boolean): string | undefined {
  if (field.type === "Uuid") return "@db.Uuid";
  if (field.type === "Date") return "@db.Date";
  if (field.type === "Time") return "@db.Time(6)";
  if (field.native !== undefined) return nativeTypes.get(field.native);
  if (!isManaged) return undefined;
  if (field.type === "DateTime" || field.type === "Instant") return "@db.Timestamptz(3)";
  if (field.type === "String" && field.length !== undefined) return `@db.VarChar(${field.length})`;
  if (field.type === "Decimal" && field.precision !== undefined)
    return `@db.Decimal(${field.precision}, ${field.scale ?? 0})`;
  return undefined;
}

function defaultOf(field: Field, isManaged: boolean): string[] {
  if (field.isUpdatedAt) return ["@default(now())", "@updatedAt"];
  if (field.default === undefined) return [];
  if (field.default.kind === "database") return ["@default(dbgenerated())"];
  if (field.default.kind === "literal") {
    const isForeign = temporalTypes.includes(field.type) || isUnsupported(field);
    const expression = isManaged || isForeign ? expressionOf(field, field.default.value) : undefined;
    if (expression !== undefined) return [`@default(dbgenerated(${quote(expression)}))`];
    return [`@default(${literalOf(field, field.default.value)})`];
  }
  // The database generates the value, so that other writers get one too.
  if (field.default.kind === "uuid")
    return [
      `@default(dbgenerated("${field.type === "Uuid" ? "gen_random_uuid()" : "(gen_random_uuid())::text"}"))`,
    ];
  return [`@default(${field.default.kind}())`];
}

/**
 * Returns a default as an SQL expression, for literals that Prisma does not recognise in a live
 * column. It would set them again at every migration. Returns undefined for all other defaults.
 * PostgreSQL keeps the cast from text as written, and rewrites any shorter form.
 */
function expressionOf(field: Field, value: unknown): string | undefined {
  const { type, isList } = field;
  const name = field.native ?? forgottenTypes[type];
  const isExpressed = field.native !== undefined || expressedTypes.includes(type) || isList;
  if (name === undefined || !isExpressed) return undefined;
  const { precision, scale } = digitsOf(field);
  const digits = type === "Decimal" ? `(${precision},${scale})` : "";
  const text = Array.isArray(value) ? listText(field, value) : String(value);
  return `(${quoteText(text)}::text)::${name}${digits}${isList ? "[]" : ""}`;
}

/** Returns the text of an array. The items of a native type may contain any character. */
function listText({ native }: Field, values: readonly unknown[]): string {
  const items = values.map((value) =>
    native === undefined ? String(value) : `"${String(value).replaceAll(/["\\]/g, "\\$&")}"`,
  );
  return `{${items.join(",")}}`;
}

/** Types whose literals Prisma cannot write, or writes in another form than PostgreSQL keeps. */
const temporalTypes: readonly FieldType[] = ["Date", "Time", "Interval"];
const expressedTypes: readonly FieldType[] = ["Uuid", ...temporalTypes];

/** SQL names of types whose literals contain no special characters of texts or arrays. */
const forgottenTypes: Partial<Record<FieldType, string>> = {
  Date: "date",
  Time: "time without time zone",
  Interval: "interval",
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
  // Prisma does not parse exponents.
  if (field.type === "Float") return new Decimal(String(value)).toFixed();
  if (field.type === "DateTime" || field.type === "Instant")
    return quote(new Date(String(value)).toISOString());
  return bareLiterals.includes(field.type) ? String(value) : quote(String(value));
}

function relationLine(relation: Relation, definition: Definition, definitions: Definitions): string {
  const other = definitions.get(relation.resource);
  if (other === undefined)
    throw new Error(`${definition.name}.${relation.name}: no resource ${relation.resource}`);
  const name = `name: ${quote(relation.relationName)}`;
  const foreign = relation.kind === "many" ? fieldOf(other, relation.foreignField) : undefined;
  // A unique referencing field has at most one record at the other end, which Prisma's schema must
  // contain.
  if (foreign !== undefined) {
    const suffix = isUniqueAlone(foreign, other) ? "?" : "[]";
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
  const map = longName(definition, [local.column], "_fkey", ", ");
  return `${relation.name} ${other.model}${local.isOptional ? "?" : ""} @relation(${parts.join(", ")}${map})`;
}

function fieldOf(definition: Definition, name: string): Field {
  const field = definition.fields.find((candidate) => candidate.name === name);
  if (field === undefined) throw new Error(`${definition.name}: no field ${name}`);
  return field;
}

function block(head: string, lines: readonly string[]): string {
  return `${head} {\n${lines.map((line) => `  ${line}\n`).join("")}}`;
}

/** Quotes a text: JSON has the escapes of Prisma's string literals. */
function quote(text: string): string {
  return JSON.stringify(text);
}
