import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { PrismaPg } from "@prisma/adapter-pg";
import {
  bindMigrationAwareSqlAdapterFactory,
  ColumnTypeEnum,
  type SqlDriverAdapter,
  type SqlMigrationAwareDriverAdapterFactory,
} from "@prisma/driver-adapter-utils";
import * as engineModule from "@prisma/schema-engine-wasm/schema_engine_bg";
import { type Client, Pool, type QueryArrayConfig, type QueryArrayResult } from "pg";
import { messageOf, OperatorError } from "../../kit/errors.ts";
import { shortTable } from "../names.ts";

/** The changes that bring the tables to a Prisma schema. */
export interface SchemaChange {
  /**
   * One SQL statement per item, without a semicolon; empty when nothing is missing. Table names are
   * not qualified.
   */
  readonly statements: readonly string[];
  /** Losses and possible failures, given the existing rows. */
  readonly warnings: readonly string[];
  /** Changes that the existing rows make impossible. */
  readonly impossible: readonly string[];
}

/** The parts of live tables that the comparison sees, by table and name. */
export interface VisibleParts {
  readonly column: (table: string, name: string) => boolean;
  /** Indexes, including primary keys and unique constraints. */
  readonly index: (table: string, name: string) => boolean;
  readonly foreignKey: (table: string, name: string) => boolean;
}

const all: VisibleParts = { column: () => true, index: () => true, foreignKey: () => true };

/**
 * Compares the live tables with a Prisma schema and changes nothing. Uses only the given
 * connection, so it can run inside its transaction.
 *
 * @param externalTables Tables with their schema (`public.orders`) that are neither compared nor
 *   changed, but that foreign keys may reference.
 * @param externalEnums Enums that are neither compared nor changed.
 * @param visible The parts of the other tables to compare. The rest stays unchanged, as if it did
 *   not exist. Default: everything.
 */
export async function compareSchema({
  client,
  schemaText,
  externalTables,
  externalEnums,
  visible = all,
}: {
  readonly client: Client;
  readonly schemaText: string;
  readonly externalTables: readonly string[];
  readonly externalEnums: readonly string[];
  readonly visible?: VisibleParts;
}): Promise<SchemaChange> {
  const { SchemaEngine } = await loadEngine();
  const files = [{ path: "schema.prisma", content: schemaText }];
  const filters = { externalTables: [...externalTables], externalEnums: [...externalEnums] };
  const statements: string[] = [];
  const seen = new Set<string>();
  let fault: unknown;
  const refuse = (error: unknown): never => refuseFor(fault ?? error);
  const adapterFactory = createAdapterFactory({
    client,
    onChange: (sql) => statements.push(sql),
    onFault: (error) => (fault = error),
    onRows: (result) => {
      const description = descriptions.find(({ fields }) => hasFields(result, fields));
      if (description === undefined) return;
      seen.add(description.name);
      keepRows(result, (row) => description.isSeen(row, visible));
    },
  });

  const engine = await SchemaEngine.new(
    { datamodels: [["schema.prisma", schemaText]] },
    () => undefined,
    bindMigrationAwareSqlAdapterFactory(adapterFactory),
  ).catch(refuse);
  try {
    // Uses a push instead of `diff`: only a push reads the rows, and so knows that an empty column
    // can be dropped. "force" ignores warnings, but never impossible changes. The adapter keeps the
    // statements from the database.
    const { warnings, unexecutable } = await engine
      .schemaPush({ schema: { files }, filters, force: true })
      .catch(refuse);
    // A later version of the engine may use other queries. The engine would then see everything,
    // and drop it.
    if (seen.size < descriptions.length)
      throw new Error("The schema engine describes tables in an unknown way.");
    if (unexecutable.length === 0) return { statements, warnings, impossible: [] };
    const { stdout } = await engine
      .diff({
        from: { tag: "schemaDatasource", files, configDir: "." },
        to: { tag: "schemaDatamodel", files },
        script: true,
        exitCode: null,
        filters,
      })
      .catch(refuse);
    return { statements: statementsOf(stdout ?? ""), warnings, impossible: unexecutable };
  } finally {
    engine.free();
  }
}

type RowValues = Readonly<Record<string, unknown>>;

/** The engine's own queries of existing objects, recognised by the fields that they return. */
const descriptions: readonly {
  readonly name: string;
  readonly fields: readonly string[];
  readonly isSeen: (row: RowValues, visible: VisibleParts) => boolean;
}[] = [
  {
    name: "columns",
    fields: ["namespace", "table_name", "column_name", "formatted_type"],
    isSeen: (row, { column }) => column(tableOf(row), String(row["column_name"])),
  },
  {
    name: "indexes",
    fields: ["namespace", "table_name", "index_name", "column_name"],
    isSeen: (row, { index }) => index(tableOf(row), String(row["index_name"])),
  },
  {
    name: "foreign keys",
    fields: [
      "namespace",
      "table_name",
      "constraint_name",
      "parent_table",
      "parent_column",
      "child_column",
      "referenced_schema_name",
    ],
    // `parent` is the referenced end.
    isSeen: (row, { foreignKey, column }) =>
      foreignKey(tableOf(row), String(row["constraint_name"])) &&
      column(tableOf(row), String(row["child_column"])) &&
      column(
        shortTable(`${String(row["referenced_schema_name"])}.${String(row["parent_table"])}`),
        String(row["parent_column"]),
      ),
  },
];

function tableOf(row: RowValues): string {
  return shortTable(`${String(row["namespace"])}.${String(row["table_name"])}`);
}

function hasFields({ fields }: QueryArrayResult, names: readonly string[]): boolean {
  return names.every((name) => fields.some((field) => field.name === name));
}

function keepRows(result: QueryArrayResult, isKept: (row: RowValues) => boolean): void {
  const names = result.fields.map(({ name }) => name);
  result.rows = result.rows.filter((row: readonly unknown[]) =>
    isKept(Object.fromEntries(names.map((name, place) => [name, row[place]]))),
  );
}

/**
 * Splits a script into statements. The engine puts a comment, such as `-- AlterTable`, before each.
 */
function statementsOf(script: string): readonly string[] {
  return script
    .split(/^-- \w+$/m)
    .map((part) => part.trim().replace(/;$/, ""))
    .filter((part) => part !== "");
}

function refuseFor(error: unknown): never {
  throw new OperatorError(`The tables cannot be compared with the mapping files: ${messageOf(error)}`, {
    cause: error,
  });
}

type EngineModule = typeof engineModule;

interface PanicRegistry {
  set_message(message: string): never;
}

interface WebAssemblyGlobal {
  instantiate(
    bytes: Uint8Array,
    imports: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
  ): Promise<{ readonly instance: { readonly exports: Readonly<Record<string, unknown>> } }>;
}

let engine: Promise<EngineModule> | undefined;

/**
 * Loads the engine once: its JavaScript half keeps the WebAssembly half in a variable of its
 * module.
 */
function loadEngine(): Promise<EngineModule> {
  engine ??= instantiate();
  return engine;
}

async function instantiate(): Promise<EngineModule> {
  const require = createRequire(import.meta.url);
  const glue = require.resolve("@prisma/schema-engine-wasm/schema_engine_bg");
  const bytes = await readFile(glue.replace(/\.js$/, ".wasm"));
  // The engine limits a push to 60 s by a timer that it never clears. The timer would keep the
  // process alive for that long.
  const imports = Object.fromEntries(
    Object.entries(engineModule).map(([name, value]) => [
      name,
      name.startsWith("__wbg_setTimeout_") ? unreferenced(value) : value,
    ]),
  );
  // Node has WebAssembly, but its types come with those of the browser, which this project leaves
  // out.
  const { WebAssembly } = globalThis as unknown as { readonly WebAssembly: WebAssemblyGlobal };
  const { instance } = await WebAssembly.instantiate(bytes, { "./schema_engine_bg.js": imports });
  // Both halves of Prisma, this engine and the client's query compiler, report a panic through this
  // one global.
  const shared = globalThis as { PRISMA_WASM_PANIC_REGISTRY?: PanicRegistry };
  shared.PRISMA_WASM_PANIC_REGISTRY ??= {
    set_message(message) {
      throw new Error(message);
    },
  };
  engineModule.__wbg_set_wasm(instance.exports);
  (instance.exports["__wbindgen_start"] as () => void)();
  return engineModule;
}

function unreferenced(setTimer: unknown): (...args: unknown[]) => NodeJS.Timeout {
  return (...args) => (setTimer as (...args: unknown[]) => NodeJS.Timeout)(...args).unref();
}

/**
 * Creates Prisma's adapter on one connection, with three differences. `onRows` can hide rows from
 * the engine. Statements that would change something go to `onChange`. `"char"` columns of the
 * catalogs are read as the characters that the engine expects: the adapter refuses their type (18).
 * As text they make the engine panic at the first table with a CHECK constraint. They pass the
 * adapter as arrays of characters, which it knows.
 */
function createAdapterFactory({
  client,
  onChange,
  onFault,
  onRows,
}: {
  readonly client: Client;
  readonly onChange: (sql: string) => void;
  /** Gets the error of a query, because the engine does not keep its code. */
  readonly onFault: (error: unknown) => void;
  /** May remove rows before the engine sees them. */
  readonly onRows: (result: QueryArrayResult) => void;
}): SqlMigrationAwareDriverAdapterFactory {
  // The adapter only accepts a pool. This pool never connects, because its queries run on the
  // client.
  const pool = new Pool();
  const query = async (config: QueryArrayConfig): Promise<QueryArrayResult> => {
    const result = await client.query(config).catch((error: unknown) => {
      onFault(error);
      throw error;
    });
    onRows(result);
    for (const field of result.fields) if (field.dataTypeID === charType) field.dataTypeID = charArrayType;
    return result;
  };
  Object.assign(pool, { query });
  const factory = new PrismaPg(pool);
  return {
    provider: factory.provider,
    adapterName: factory.adapterName,
    async connect() {
      const adapter: SqlDriverAdapter = await factory.connect();
      const readAll = adapter.queryRaw.bind(adapter);
      return Object.assign(adapter, {
        async queryRaw(statement: Parameters<typeof readAll>[0]) {
          const result = await readAll(statement);
          return {
            ...result,
            columnTypes: result.columnTypes.map((type) =>
              type === ColumnTypeEnum.CharacterArray ? ColumnTypeEnum.Character : type,
            ),
          };
        },
        async executeRaw({ sql }: { readonly sql: string }) {
          onChange(sql);
          return 0;
        },
        async executeScript(script: string) {
          onChange(script);
        },
      });
    },
    connectToShadowDb() {
      throw new Error("A comparison needs no shadow database.");
    },
  };
}

/** Type ids of `"char"` and of its array. */
const charType = 18;
const charArrayType = 1002;
