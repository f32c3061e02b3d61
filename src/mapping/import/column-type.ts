import type { FieldType } from "../definition.ts";
import type { TypeOptions } from "../type-options.ts";
import type { CatalogColumn, CatalogType } from "./catalog.ts";

/** The type of a column, resolved to the type beneath its domains and its list. */
export interface ResolvedType {
  readonly base: CatalogType;
  readonly modifier: number;
  readonly isList: boolean;
  /** Type of the column itself. */
  readonly outer: CatalogType;
  /** Domains from the column's own to the innermost, including those of the items of a list. */
  readonly domains: readonly CatalogType[];
}

/** The part of a field that follows from its column's type. */
export interface TypedField extends TypeOptions {
  readonly type: FieldType;
  readonly list?: true;
  readonly native?: string;
  /** Property of the type that the field does not express. */
  readonly remark?: string;
}

/** Resolves a column's type. Returns undefined for a list of lists. */
export function resolveType(
  { typeOid, modifier }: Pick<CatalogColumn, "typeOid" | "modifier">,
  types: ReadonlyMap<number, CatalogType>,
): ResolvedType | undefined {
  const domains: CatalogType[] = [];
  let isList = false;
  const outer = types.get(typeOid);
  let current = outer;
  let typmod = modifier;
  while (outer !== undefined && current !== undefined) {
    if (current.kind === "domain") {
      domains.push(current);
      if (current.domainModifier !== -1) typmod = current.domainModifier;
      current = types.get(current.domainBase);
    } else if (current.item !== 0) {
      if (isList) return undefined;
      isList = true;
      current = types.get(current.item);
    } else return { base: current, modifier: typmod, outer, isList, domains };
  }
  return undefined;
}

/** Limit of the digits. Numbers of 19 digits in PostgreSQL may exceed 64 bits. */
const mostDigits = 18;

/**
 * Returns whether the values are whole numbers of at most 64 bits. Databases of other vendors have
 * keys of `numeric(10)`.
 */
export function isWholeNumber({ type, list, precision = mostDigits + 1, scale }: TypedField): boolean {
  if (list === true) return false;
  return (
    type === "Int" || type === "BigInt" || (type === "Decimal" && scale === 0 && precision <= mostDigits)
  );
}

const plain = new Map<string, FieldType>(
  Object.entries({
    int2: "Int",
    int4: "Int",
    int8: "BigInt",
    float4: "Float",
    float8: "Float",
    bool: "Boolean",
    timestamptz: "DateTime",
    timestamp: "DateTime",
    date: "Date",
    time: "Time",
    interval: "Interval",
    json: "Json",
    jsonb: "Json",
    bytea: "Bytes",
    uuid: "Uuid",
    text: "String",
    name: "String",
  } as const),
);

/**
 * Types whose values the database creates for its own use, with the reason why no field holds them.
 */
const internal = new Map(
  Object.entries({ tsvector: "a search index, which is no data of its own", tsquery: "a search query" }),
);

const mostValues = 1000;
const longestText = 10_485_760;

/** Returns the type of a field for a column, or the reason why there is none. */
export function typedField(resolved: ResolvedType): TypedField | { readonly reason: string } {
  const { base, modifier, isList, domains } = resolved;
  const typed = scalarField(base, modifier);
  if ("reason" in typed) return typed;
  const native = isUncompared(resolved) ? domains[0]?.name : typed.native;
  return { ...typed, ...(isList && { list: true }), ...(native !== undefined && { native }) };
}

/**
 * Returns whether PostgreSQL finds no operator for the column and a value. It looks for the
 * operators of enums, ranges and arrays before it looks beneath a domain.
 */
function isUncompared({ base, isList, outer }: ResolvedType): boolean {
  return outer.kind === "domain" && (isList || ["enum", "range", "multirange"].includes(base.kind));
}

function scalarField(base: CatalogType, modifier: number): TypedField | { readonly reason: string } {
  const type = plain.get(base.name);
  if (base.kind === "enum") return enumField(base);
  if (base.kind === "composite" || base.kind === "pseudo")
    return { reason: "no field holds a value of several parts" };
  const isBuiltIn = base.kind === "base";
  if (isBuiltIn && type !== undefined) return { type };
  if (isBuiltIn && base.name === "numeric") return decimalField(modifier);
  if (isBuiltIn && (base.name === "varchar" || base.name === "bpchar")) {
    const length = modifier - 4;
    return { type: "String", ...(modifier > 4 && length <= longestText && { length }) };
  }
  const reason = internal.get(base.name);
  if (reason !== undefined) return { reason };
  // A `bit(4)` requires exactly four digits.
  return { type: "String", native: base.name === "bit" && modifier > 0 ? `bit(${modifier})` : base.name };
}

/**
 * Returns the field of an enum. Where a file cannot list the values, it is a text that only the
 * database checks.
 */
function enumField({ name, labels }: CatalogType): TypedField {
  if (labels.length > 0 && labels.length <= mostValues && !labels.includes(""))
    return { type: "Enum", values: labels };
  const what = labels.includes("") ? "an empty value" : `${labels.length} values`;
  return {
    type: "String",
    native: name,
    remark: `an enum with ${what}, which no file can list; the database alone checks its values`,
  };
}

function decimalField(modifier: number): TypedField {
  if (modifier < 4) return { type: "Decimal" };
  const precision = ((modifier - 4) >> 16) & 0xffff;
  // The scale has 11 bits, and may be negative.
  const scale = (((modifier - 4) & 0x7ff) ^ 1024) - 1024;
  return scale < 0 || scale > precision ? { type: "Decimal" } : { type: "Decimal", precision, scale };
}
