import type { Fault } from "../config/yaml-source.ts";
import type { RuleSpecs } from "../validation/syntax.ts";
import type { Caller } from "../kit/caller.ts";

/** The changes that a resource can send webhooks for. */
export const triggers = ["on_create", "on_update", "on_delete"] as const;
export type Trigger = (typeof triggers)[number];

export const fieldTypes = [
  "Int",
  "BigInt",
  "Float",
  "Decimal",
  "String",
  "Boolean",
  "DateTime",
  "Date",
  "Time",
  "Interval",
  "Json",
  "Bytes",
  "Uuid",
  "Enum",
] as const;
/**
 * An `Instant` is a `DateTime` that is a key, unique or a reference. Its values are texts, because
 * a Date has no microseconds, and PostgreSQL distinguishes rows by them.
 */
export type FieldType = (typeof fieldTypes)[number] | "Instant";

export const numberTypes: readonly FieldType[] = ["Int", "BigInt", "Float", "Decimal"];

/**
 * The default of a field: a literal, or a value that the database makes. `database` is any default
 * of the table itself.
 */
export type FieldDefault =
  | { readonly kind: "literal"; readonly value: unknown }
  | { readonly kind: "now" | "autoincrement" | "uuid" | "database" };

/** Actions on a record when the record that it references is deleted. */
export type DeleteAction = "restrict" | "cascade" | "setNull" | "noAction";

/** A field's reference to the key or a unique field of a resource. */
export interface Reference {
  readonly resource: string;
  readonly field: string;
  /** Name of the relation on this model. */
  readonly as: string;
  readonly onDelete: DeleteAction;
}

export interface Field {
  readonly name: string;
  readonly type: FieldType;
  readonly column: string;
  readonly isList: boolean;
  readonly isOptional: boolean;
  /** Whether the field is the key, or a part of it. */
  readonly isKey: boolean;
  /** Key of a view only: a row may have no value, such as the row of a GROUP BY without a value. */
  readonly isNullable?: boolean;
  readonly isUnique: boolean;
  readonly isIndexed: boolean;
  readonly isUpdatedAt: boolean;
  /** Whether the database computes the column, so that it is never written. */
  readonly isGenerated?: true;
  /** String only: the column's type in PostgreSQL, whose values are read and written as texts. */
  readonly native?: string;
  readonly length?: number;
  readonly precision?: number;
  readonly scale?: number;
  /** Enum only. */
  readonly values?: readonly string[];
  readonly default?: FieldDefault;
  readonly references?: Reference;
}

/**
 * A relation of one resource: `one` follows its own reference, `many` is the inverse of another
 * resource's reference.
 */
export interface Relation {
  readonly name: string;
  readonly kind: "one" | "many";
  /** The other resource. */
  readonly resource: string;
  /**
   * Name of the field of this resource. It has the same value as `foreignField` of the other
   * resource.
   */
  readonly localField: string;
  readonly foreignField: string;
  /** Shared by the two ends, and unique among all relations. */
  readonly relationName: string;
}

export type TransformNode =
  /**
   * `customer.id`: a field, or relations and a field. A missing relation on the path gives null.
   */
  | { readonly kind: "path"; readonly path: readonly string[] }
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "object"; readonly entries: readonly (readonly [string, TransformNode])[] };

/** Rule that decides who sees and changes all records. */
export type AdminRule =
  | { readonly kind: "flag" }
  | { readonly kind: "nobody" }
  | { readonly kind: "emails"; readonly emails: readonly string[] };

export const operations = ["read", "create", "update", "delete", "reference"] as const;
export type AccessOperation = (typeof operations)[number];

/** A part of the arguments of Prisma's `findMany`: a filter, an item of an order, an `include`. */
export type PrismaArgs = Readonly<Record<string, unknown>>;

/**
 * Rule that decides who may perform an operation on a record. Admins of the resource may perform
 * every operation.
 */
export type AccessRule =
  | { readonly kind: "owner" | "everyone" | "admin" }
  /** A Prisma filter, in which texts such as `$user.id` stand for values of the caller. */
  | { readonly kind: "filter"; readonly where: PrismaArgs };

export type Access = Readonly<Record<AccessOperation, AccessRule>>;

/** Arguments for Prisma's `findMany`. */
export interface BaseQuery {
  readonly include?: PrismaArgs;
  readonly orderBy?: readonly PrismaArgs[];
  readonly where?: PrismaArgs;
}

/** Modes of counting a list: exactly, exactly only up to 10,000, or not at all. */
export const countModes = ["exact", "estimated", "none"] as const;
export type CountMode = (typeof countModes)[number];

/** A record of the models client, with included relations by name. */
export type Row = Readonly<Record<string, unknown>>;

/**
 * The exports of the code module of a mapping file. An export takes precedence over the key of the
 * same name.
 */
export interface CodeModule {
  readonly transform?: (model: Row) => unknown;
  readonly createRules?: () => RuleSpecs;
  readonly updateRules?: () => RuleSpecs;
  readonly isAdmin?: (user: Caller) => boolean;
  /**
   * Changes the arguments for Prisma's `findMany`. The owner filter is added afterwards and cannot
   * be widened.
   */
  readonly applySearch?: (query: BaseQuery, search: string) => BaseQuery;
  readonly baseQuery?: () => BaseQuery;
  readonly webhookMaxAttempts?: () => number;
  /** Waits, in seconds. */
  readonly webhookBackoff?: () => readonly number[];
}

/** An index of a managed table that the file defines, in addition to those of single fields. */
export interface TableIndex {
  /** Names of fields. */
  readonly fields: readonly string[];
  /** SQL condition of the indexed rows. Undefined: all rows. */
  readonly where?: string;
  /** Access method of PostgreSQL. */
  readonly type: "btree" | "hash" | "gin" | "gist" | "spgist" | "brin";
}

/** The definition of one mapping file, checked and with every default filled in. */
export interface Definition {
  /** Path of the mapping file, relative to the configuration folder. */
  readonly file: string;
  readonly name: string;
  readonly model: string;
  /** `orders` in the schema `public`, `sales.orders` in another. */
  readonly table: string;
  readonly isManaged: boolean;
  /** Whether the table is a view, whose records cannot be changed. */
  readonly isView: boolean;
  readonly fields: readonly Field[];
  /** The key, or the first field of a key of several fields. */
  readonly key: Field;
  /** Every field of the key, in the order of the file. */
  readonly keys: readonly Field[];
  /** Lists of names of fields whose values together are unique. */
  readonly uniques: readonly (readonly string[])[];
  readonly indexes: readonly TableIndex[];
  readonly relations: readonly Relation[];
  readonly triggers: readonly Trigger[];
  /** Whether events of updates keep the old row. */
  readonly keepsPrevious: boolean;
  /** Undefined: every field under its own name. */
  readonly transform?: TransformNode & { readonly kind: "object" };
  /** Undefined: derived from the fields, see derive-rules.ts. */
  readonly createRules?: RuleSpecs;
  readonly updateRules?: RuleSpecs;
  /** Name of a field. */
  readonly ownerColumn?: string;
  readonly isAdmin: AdminRule;
  readonly access: Access;
  readonly searchableColumns: readonly string[];
  /**
   * Paths of the record's JSON that a request may filter by; field names with a `transform` in
   * code. Undefined: all that `transform` shows, and none with a `transform` in code.
   */
  readonly filterable?: readonly string[];
  /** The same for sorting. */
  readonly sortable?: readonly string[];
  /** Relations that a request may include. */
  readonly includes: readonly string[];
  /** Count mode of requests without the parameter `count`. */
  readonly count: CountMode;
  readonly baseQuery: BaseQuery;
  readonly supportsCreate: boolean;
  readonly supportsUpdate: boolean;
  readonly supportsDelete: boolean;
  readonly webhookMaxAttempts?: number;
  /** Waits, in seconds. */
  readonly webhookBackoff?: readonly number[];
  readonly code: CodeModule;
  /** Hash of the code module's text. */
  readonly codeHash?: string;
  /**
   * Returns a sentence about a part of the mapping file, with its place relative to the working
   * folder: `config/resources/orders.yaml:5:3: fields.id: ...`. The path has keys and list indexes.
   */
  readonly remark: (path: readonly (string | number)[], message: string) => string;
  /** Returns a fault at a key of the mapping file, like those of a check. */
  readonly faultAt: (path: readonly (string | number)[], message: string) => Fault;
}

/** Every resource, by name. */
export type Definitions = ReadonlyMap<string, Definition>;
