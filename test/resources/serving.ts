import { openDatabase, type Database } from "../../src/db/client.ts";
import type { ModelsClient } from "../../src/db/models-client.ts";
import { openModelsClient } from "../../src/db/prisma-internals/models-client.ts";
import { createSql, type Sql } from "../../src/db/sql.ts";
import { createBatchedSql } from "../../src/db/batched-sql.ts";
import { createTextSql } from "../../src/db/text-sql.ts";
import { createStatementNames } from "../../src/db/statement-name.ts";
import { createInTransaction } from "../../src/db/transaction.ts";
import type { Definition, Definitions } from "../../src/mapping/definition.ts";
import { prismaSchemaOf } from "../../src/mapping/models.ts";
import { createTurns } from "../../src/kit/turns.ts";
import { createListDatabase } from "../../src/resources/list-database.ts";
import { createTestDatabase } from "../support/database.ts";
import type { RecordDatabase } from "../../src/resources/record-database.ts";
import { definition, definitionsOf, field, keyField } from "../support/definitions.ts";
import { ofSuite } from "../support/of-suite.ts";

const customers = definition({
  name: "customers",
  model: "Customer",
  fields: [field("name", "String"), field("country", "String", { isOptional: true })],
});

const orders = definition({
  name: "orders",
  model: "Order",
  fields: [
    keyField(),
    field("reference", "String", { length: 40, isUnique: true }),
    field("status", "Enum", {
      values: ["open", "paid", "shipped"],
      default: { kind: "literal", value: "open" },
    }),
    field("amount", "Decimal", { precision: 12, scale: 2 }),
    field("notes", "String", { column: "remarks", isOptional: true }),
    field("token", "Uuid", { isOptional: true }),
    field("customer_id", "Int", {
      isOptional: true,
      references: { resource: "customers", field: "id", as: "customer", onDelete: "restrict" },
    }),
    field("user_id", "Int"),
    field("created_at", "DateTime", { default: { kind: "now" } }),
  ],
  triggers: ["on_create", "on_update"],
  ownerColumn: "user_id",
  searchableColumns: ["reference", "notes"],
  baseQuery: { include: { customer: true } },
  transform: {
    kind: "object",
    entries: [
      ...["id", "reference", "status", "amount", "notes", "user_id"].map(
        (name) => [name, { kind: "path", path: [name] }] as const,
      ),
      ["customer", { kind: "path", path: ["customer", "name"] }],
    ],
  },
  createRules: {
    reference: "required|string|max:40|unique:orders,reference",
    amount: "required|numeric|min:0",
    status: "sometimes|in:open,paid,shipped",
    notes: "nullable|string",
    customer_id: "nullable|integer|exists:customers,id",
    secret_word: "nullable|string",
    user_id: "nullable|integer",
  },
  updateRules: {
    id: "sometimes|integer",
    reference: "sometimes|string|max:40|unique:orders,reference",
    amount: "sometimes|numeric|min:0",
    status: "sometimes",
    notes: "sometimes|nullable|string",
    customer_id: "sometimes|nullable|integer",
  },
});

/** String key, no rules of its own, owner in a String column, a scope in the base query. */
const pages = definition({
  name: "pages",
  model: "Page",
  table: "site_pages",
  fields: [
    field("slug", "String", { isKey: true, length: 20 }),
    field("title", "String"),
    field("meta", "Json", { isOptional: true }),
    field("is_hidden", "Boolean", { default: { kind: "literal", value: false } }),
    field("author", "String"),
  ],
  ownerColumn: "author",
  baseQuery: { where: { is_hidden: false }, orderBy: [{ title: "desc" }] },
});

/** No owner column, and read only. */
const notices = definition({
  name: "notices",
  model: "Notice",
  fields: [field("text", "String")],
  searchableColumns: ["text"],
  supportsUpdate: false,
  supportsDelete: false,
});

export const definitions = definitionsOf(customers, orders, pages, notices);

const tables = `
  CREATE TABLE customers (id serial PRIMARY KEY, name text NOT NULL, country text);
  CREATE TABLE orders (
    id serial PRIMARY KEY,
    reference varchar(40) NOT NULL UNIQUE,
    status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'paid', 'shipped')),
    amount numeric(12, 2) NOT NULL,
    remarks text,
    token uuid,
    customer_id int REFERENCES customers (id) ON DELETE RESTRICT,
    user_id int NOT NULL,
    created_at timestamptz(3) NOT NULL DEFAULT now()
  );
  CREATE TABLE site_pages (
    slug varchar(20) PRIMARY KEY,
    title text NOT NULL,
    meta jsonb,
    is_hidden boolean NOT NULL DEFAULT false,
    author text NOT NULL
  );
  CREATE TABLE notices (id serial PRIMARY KEY, text text NOT NULL);
  CREATE TABLE countries (code text PRIMARY KEY, size int);
`;

export interface ServedDatabase {
  readonly url: string;
  readonly database: Database;
  readonly models: ModelsClient;
  readonly sql: Sql;
  /** For the stores, with the resources for which the Prisma client answered. */
  readonly records: RecordDatabase;
  readonly fallbacks: string[];
  /** Texts of the statements since the last call. */
  statements(): readonly string[];
  close(): Promise<void>;
}

/** Opens a database of its own with the tables of `definitions`, empty. */
export async function openServedDatabase(): Promise<ServedDatabase> {
  const created = await createTestDatabase();
  const database = await openDatabase({ url: created.url, poolSize: 4, isEmbedded: false });
  let seen: string[] = [];
  watch(database, (text) => seen.push(text));
  await database.pool.query(tables);
  const models = await openModelsClient({
    schemaText: prismaSchemaOf(definitions),
    pool: database.pool,
    isEmbedded: false,
  });
  const fallbacks: string[] = [];
  return {
    url: created.url,
    database,
    models,
    sql: createSql({ pool: database.pool, isEmbedded: false }),
    fallbacks,
    records: recordDatabaseOf({ database, models, onFallback: (resource) => fallbacks.push(resource) }),
    statements() {
      const all = seen;
      seen = [];
      return all;
    },
    async close() {
      await models.close();
      await database.close();
      await created.drop();
    },
  };
}

/** Opens such a database before the tests of a suite, and closes it after them. */
export function servedOfSuite(): ServedDatabase {
  return ofSuite(openServedDatabase, (served) => served.close());
}

/** Returns the access of stores to a database, as `svc api` has it. */
export function recordDatabaseOf({
  database,
  models,
  onFallback = () => undefined,
}: {
  readonly database: Database;
  readonly models: ModelsClient;
  readonly onFallback?: (resource: string) => void;
}): RecordDatabase {
  const names = createStatementNames(false);
  const patient = {
    records: createTextSql(database.pool, names),
    writes: createBatchedSql<number>({ pool: database.pool, names, keyOf: String, kind: "writes" }),
    transact: createInTransaction(database.pool, names),
  };
  return {
    ...patient,
    hasty: patient,
    reads: createBatchedSql<undefined>({ pool: database.pool, names, keyOf: () => "", kind: "reads" })(
      undefined,
    ),
    lists: createListDatabase({
      pool: database.lists,
      names,
      users: createTurns(10),
      places: { ofAll: 10, ofEach: 10 },
    }),
    models: async () => models,
    onFallback,
    comment: () => "",
  };
}

/** Passes the text of every statement to `tell`, from every connection. */
function watch({ pool }: Database, tell: (text: string) => void): void {
  pool.on("connect", (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    Object.assign(client, {
      query(...args: unknown[]) {
        const [first] = args;
        tell(typeof first === "string" ? first : (first as { readonly text: string }).text);
        return query(...args);
      },
    });
  });
}

/** Returns the definition with the name, changed as given. */
export function variant(name: string, overrides: Partial<Definition>): Definition {
  const found = definitions.get(name);
  if (found === undefined) throw new Error(`no definition ${name}`);
  return { ...found, ...overrides };
}

/** Returns the definitions with one of them changed. */
export function withVariant(name: string, overrides: Partial<Definition>): Definitions {
  return new Map([...definitions, [name, variant(name, overrides)]]);
}
