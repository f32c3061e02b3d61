import { Client } from "pg";
import { OperatorError } from "../../src/kit/errors.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { applyMigration } from "../../src/app/apply-migration.ts";
import { planMigration, type MigrationPlan } from "../../src/app/plan-migration.ts";
import type { Definition, Definitions, Field } from "../../src/mapping/definition.ts";
import { createCoreDatabase } from "./core-database.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";
import { definition, definitionsOf } from "./definitions.ts";
import { ofSuite } from "./of-suite.ts";
import { customers, orders, withFields } from "./shop.ts";

/** A database to migrate, with a separate connection. */
export interface Scene {
  readonly url: string;
  readonly client: Client;
  plan(definitions: Definitions): Promise<MigrationPlan>;
  migrate(definitions: Definitions, allowDestructive?: boolean): ReturnType<typeof applyMigration>;
  /** Migrates, and returns "done", or the message of the refusal. */
  apply(definitions: Definitions, allowDestructive?: boolean): Promise<string>;
  rows(sql: string): Promise<readonly unknown[]>;
  /** Returns the type of each column of a table. */
  columns(table: string): Promise<Readonly<Record<string, string>>>;
  /** Returns the rows of `svc.made`, one per line. */
  record(): Promise<readonly string[]>;
  /** Returns columns, indexes and constraints of everything in the schema `public`. */
  shape(): Promise<string>;
  close(): Promise<void>;
}

/** Names of databases that were migrated to definitions. Scenes copy them. */
const templates = new Map<Definitions, Promise<string>>();

/** Opens a database with the service's tables, and with those of definitions. */
export async function openScene(definitions?: Definitions): Promise<Scene> {
  if (definitions === undefined) return sceneOn(await createCoreDatabase());
  let template = templates.get(definitions);
  if (template === undefined) templates.set(definitions, (template = makeTemplate(definitions)));
  return sceneOn(await createTestDatabase({ template: await template }));
}

/** Opens an empty database. */
export async function openEmptyScene(): Promise<Scene> {
  return sceneOn(await createTestDatabase());
}

async function makeTemplate(definitions: Definitions): Promise<string> {
  const { url } = await createCoreDatabase();
  await applyMigration({ url, definitions, allowDestructive: false, log: createLog({ level: "silent" }) });
  return new URL(url).pathname.slice(1);
}

async function sceneOn(database: TestDatabase): Promise<Scene> {
  const { url } = database;
  const client = new Client({ connectionString: url });
  await client.connect();
  const linesOf = async (sql: string): Promise<readonly string[]> =>
    (await client.query<{ line: string }>(sql)).rows.map(({ line }) => line);
  const migrate: Scene["migrate"] = (definitions, allowDestructive = false) =>
    applyMigration({ url, definitions, allowDestructive, log: createLog({ level: "silent" }) });
  return {
    url,
    client,
    plan: (definitions) => planMigration({ url, definitions }),
    migrate,
    apply: (definitions, allowDestructive) =>
      migrate(definitions, allowDestructive).then(
        () => "done",
        (error: unknown) => {
          if (error instanceof OperatorError) return error.message;
          throw error;
        },
      ),
    rows: async (sql) => (await client.query(sql)).rows,
    columns: async (table) => {
      const { rows } = await client.query<{ name: string; type: string }>(
        `SELECT attname AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute
         WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped`,
        [table],
      );
      return Object.fromEntries(rows.map(({ name, type }) => [name, type]));
    },
    record: () =>
      linesOf(
        `SELECT concat_ws(' ', "table", kind, name, CASE WHEN NOT is_made THEN 'found' END) AS line FROM svc.made ORDER BY 1`,
      ),
    shape: async () => {
      const lines = await linesOf(`
        SELECT concat_ws(' ', attrelid::regclass, attname, format_type(atttypid, atttypmod), attnotnull) AS line
        FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid AND relkind = 'r' AND relnamespace = 'public'::regnamespace
        WHERE attnum > 0 AND NOT attisdropped
        UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
        UNION ALL SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint
          WHERE connamespace = 'public'::regnamespace ORDER BY 1`);
      return lines.join("\n");
    },
    async close() {
      await client.end();
      await database.drop();
    },
  };
}

/** Opens such a database before the tests of a suite, and closes it after them. */
export function sceneOfSuite(definitions?: Definitions): Scene {
  return ofSuite(
    () => openScene(definitions),
    (scene) => scene.close(),
  );
}

/** Returns the titles of a plan's steps. */
export function titlesOf({ steps }: MigrationPlan): readonly string[] {
  return steps.map(({ title }) => title);
}

/** Another resource that an order may refer to. */
export const buyers = definition({ name: "buyers", fields: [] });

/** The shop of shop.ts, and buyers. */
export const market = definitionsOf(customers, buyers, orders);

/** Returns orders with other fields; the function returns undefined to leave a field out. */
export function ordersWith(
  change: (given: Field) => Field | undefined,
  ...more: readonly Field[]
): Definition {
  return withFields(orders, [...orders.fields.slice(1).flatMap((one) => change(one) ?? []), ...more]);
}

/** Returns the market with such orders. */
export function marketWith(
  change: (given: Field) => Field | undefined,
  ...more: readonly Field[]
): Definitions {
  return definitionsOf(customers, buyers, ordersWith(change, ...more));
}

/** Returns the market with one changed field of its orders. */
export function withField(name: string, overrides: Partial<Field>): Definitions {
  return marketWith((one) => (one.name === name ? { ...one, ...overrides } : one));
}

/** Returns the market without some fields of its orders. */
export function without(...names: readonly string[]): Definitions {
  return marketWith((one) => (names.includes(one.name) ? undefined : one));
}

/** Rows of `svc.made` for the orders of shop.ts. */
export const recordOfOrders: readonly string[] = [
  "orders column amount",
  "orders column customer_id",
  "orders column id",
  "orders column notes",
  "orders column reference",
  "orders column status",
  "orders column user_id",
  "orders constraint orders_customer_id_fkey",
  "orders constraint orders_status_svc_values",
  "orders index orders_customer_id_idx",
  "orders index orders_pkey",
  "orders index orders_reference_key",
  "orders table orders",
];
