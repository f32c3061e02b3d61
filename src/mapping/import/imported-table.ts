import type { CatalogRelation } from "./catalog.ts";
import type { ImportedColumns } from "./column.ts";
import type { TableKey } from "./table-key.ts";

/** A mapping file as plain data, in the order of its keys. */
export type FileContent = Readonly<Record<string, unknown>>;

/**
 * Lines of comments by the place that they stand above: `fields.id`, or a key of the file. The
 * empty place is the head of the file.
 */
export type FileComments = Readonly<Record<string, readonly string[]>>;

/** A mapping file that the import makes. */
export interface ImportedFile {
  /** `orders.yaml`. */
  readonly file: string;
  /** `public.orders`. */
  readonly table: string;
  readonly resource: string;
  readonly kind: CatalogRelation["kind"];
  readonly content: FileContent;
  readonly comments: FileComments;
  /** Sentences about what is not as in the database, and what to look at. */
  readonly remarks: readonly string[];
}

/** A table, or a column of one, that no file has. */
export interface LeftOut {
  /** `public.orders`. */
  readonly table: string;
  readonly column?: string;
  readonly reason: string;
}

/** Names that a file of the table has already, which an update keeps. */
export interface KnownFile {
  readonly file: string;
  readonly resource: string;
  readonly model: string;
  /** Names of fields by column. */
  readonly fields: ReadonlyMap<string, string>;
}

/** Names that are taken by files which the import does not write, and those that it keeps. */
export interface KnownNames {
  readonly resources: ReadonlySet<string>;
  readonly models: ReadonlySet<string>;
  /** Files of tables that svc makes, by table. */
  readonly managed: ReadonlyMap<string, string>;
  /** By table: `public.orders`. */
  readonly files: ReadonlyMap<string, KnownFile>;
}

/** What the import has to work with, and what it must not use after a fault. */
export interface ImportOptions {
  readonly isWanted: (relation: CatalogRelation) => boolean;
  readonly ownerColumn: string | undefined;
  readonly known: KnownNames;
  /** Reasons by table, or by table and column, which a check of the files gave. */
  readonly refused: ReadonlyMap<string, string>;
}

/** A table that gets a file, with its names. */
export interface ChosenTable {
  readonly relation: CatalogRelation;
  readonly table: string;
  readonly columns: ImportedColumns;
  readonly key: TableKey;
  readonly file: string;
  readonly resource: string;
  readonly model: string;
  /** Names of fields by the number of the column. */
  readonly fields: ReadonlyMap<number, string>;
}

/** Returns the name of a table as the report and the record of the import have it. */
export function tableNameOf({ schema, name }: Pick<CatalogRelation, "schema" | "name">): string {
  return `${schema}.${name}`;
}
