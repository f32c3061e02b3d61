/** All data that the import reads from a database: rows of `pg_catalog`, as JSON. */
export interface Catalog {
  readonly relations: readonly CatalogRelation[];
  readonly columns: readonly CatalogColumn[];
  readonly constraints: readonly CatalogConstraint[];
  readonly indexes: readonly UniqueIndex[];
  readonly types: readonly CatalogType[];
  /** Tables that svc itself created in this database. */
  readonly made: readonly { readonly schema: string; readonly name: string }[];
}

/** A table or view, with the privileges of the connection's role. */
export interface CatalogRelation {
  readonly oid: number;
  readonly schema: string;
  readonly name: string;
  readonly kind: "table" | "partitioned table" | "view" | "materialized view" | "foreign table";
  readonly isPartition: boolean;
  readonly hasRowSecurity: boolean;
  readonly comment: string | null;
  /** Name of the extension that the table belongs to. */
  readonly extension: string | null;
  /** SQL of a view. */
  readonly definition: string | null;
  /** Whether a function in the view's SELECT list may return several rows. */
  readonly makesRows: boolean;
  /** Commands that its rules replace: INSERT, UPDATE, DELETE. */
  readonly replaced: readonly string[];
  /** Whether a trigger of its own may fill columns of a new row. */
  readonly fillsRows: boolean;
  /** False for a materialized view before its first REFRESH. */
  readonly isPopulated: boolean;
  /** Tables that inherit from this one, without partitions. */
  readonly children: readonly string[];
  /** Names of its triggers, without those of svc. */
  readonly triggers: readonly string[];
  readonly mayUseSchema: boolean;
  readonly maySelect: boolean;
  readonly mayInsert: boolean;
  /** Sequences of its defaults that the role may not use, so that no row can be created. */
  readonly deniedSequences: readonly string[];
  readonly mayUpdate: boolean;
  readonly mayDelete: boolean;
  readonly mayAddTriggers: boolean;
}

/** A column, in the order of its table. */
export interface CatalogColumn {
  readonly relation: number;
  readonly number: number;
  readonly name: string;
  readonly typeOid: number;
  readonly modifier: number;
  /** SQL of the type: `character varying(40)`. */
  readonly type: string;
  readonly isNotNull: boolean;
  /** SQL of the default, or of a generated column. */
  readonly expression: string | null;
  /** "a": always, "d": by default, "": no identity. */
  readonly identity: "" | "a" | "d";
  readonly isGenerated: boolean;
  /** Whether it is generated at each read, and not stored (PostgreSQL 18). */
  readonly isVirtual: boolean;
  readonly comment: string | null;
  readonly maySelect: boolean;
  /**
   * As `mayUpdate` for a table of which the role may insert no column, and the other way round.
   * Both are true where it may write none.
   */
  readonly mayInsert: boolean;
  readonly mayUpdate: boolean;
}

/** A foreign key or check of a table, or the check of a domain. */
export interface CatalogConstraint {
  readonly kind: "foreign" | "check";
  /** 0 for the check of a domain. */
  readonly relation: number;
  /** The domain of a check; 0 otherwise. */
  readonly domain: number;
  /** Numbers of columns. */
  readonly columns: readonly number[];
  readonly target: number;
  /** Name of the target with its schema. */
  readonly targetName: string | null;
  readonly targetColumns: readonly number[];
  readonly onDelete: "noAction" | "restrict" | "cascade" | "setNull" | "setDefault" | null;
  /** SQL of the condition of a check. */
  readonly condition: string | null;
  readonly isValidated: boolean;
}

/**
 * A unique index over plain columns, of all rows. A deferred index only applies to committed rows.
 */
export interface UniqueIndex {
  readonly relation: number;
  readonly name: string;
  readonly columns: readonly number[];
  readonly isPrimary: boolean;
}

/** A type of a column, of a column's items, or under a domain. */
export interface CatalogType {
  readonly oid: number;
  readonly name: string;
  readonly kind: "base" | "composite" | "domain" | "enum" | "range" | "multirange" | "pseudo";
  /** Type of the items of an array; 0 otherwise. */
  readonly item: number;
  readonly domainBase: number;
  readonly domainModifier: number;
  readonly isNotNullDomain: boolean;
  readonly domainDefault: string | null;
  readonly labels: readonly string[];
}
