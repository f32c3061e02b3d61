import type { Comments } from "../../config/edit-yaml.ts";
import type { CatalogRelation } from "./catalog.ts";
import type { ImportedColumns } from "./column.ts";
import type { TableKey } from "./table-key.ts";

/** The data of a mapping file, in the order of its keys. */
export type FileContent = Readonly<Record<string, unknown>>;

export interface ImportedFile {
  /** `orders.yaml`. */
  readonly file: string;
  /** `public.orders`. */
  readonly table: string;
  readonly resource: string;
  readonly kind: CatalogRelation["kind"];
  readonly content: FileContent;
  readonly comments: Comments;
  /** Sentences about differences from the database, and about points to check. */
  readonly remarks: readonly string[];
}

/** A table, or a column, that no file contains. */
export interface LeftOut {
  /** `public.orders`. */
  readonly table: string;
  readonly column?: string;
  readonly reason: string;
}

/** Names in an existing file of the table, which an update keeps. */
export interface KnownFile {
  readonly file: string;
  readonly resource: string;
  readonly model: string;
  /** Names of fields by column. */
  readonly fields: ReadonlyMap<string, string>;
}

/** Names of the files that the import does not write, and the names that it keeps. */
export interface KnownNames {
  readonly resources: ReadonlySet<string>;
  readonly models: ReadonlySet<string>;
  /** Files of tables that svc creates, by table. */
  readonly managed: ReadonlyMap<string, string>;
  /** Existing files by table: `public.orders`. */
  readonly files: ReadonlyMap<string, KnownFile>;
}

/** Options of an import, with the parts that it must not use after a fault. */
export interface ImportOptions {
  readonly isWanted: (relation: CatalogRelation) => boolean;
  readonly ownerColumn: string | undefined;
  readonly known: KnownNames;
  /** Reasons from a check of the files, by table, or by table and column. */
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

/** Returns the name of a table for the report and for the record of the import. */
export function tableNameOf({ schema, name }: Pick<CatalogRelation, "schema" | "name">): string {
  return `${schema}.${name}`;
}
