import { createRequire } from "node:module";
import {
  type GetPrismaClientConfig,
  getPrismaClient,
  type SqlDriverAdapterFactory,
} from "@prisma/client/runtime/client";
import type { Pool } from "pg";
import type { Tracing } from "../../telemetry/tracing.ts";
import { createAdapter } from "./adapter.ts";
import { describeModels } from "./describe-models.ts";

type Args = Readonly<Record<string, unknown>>;
type PlainRecord = Readonly<Record<string, unknown>>;

/**
 * What the models client does for one model. Arguments and answers are Prisma's, untyped because
 * the models come from YAML. Its values (`Decimal`, `DbNull`, `JsonNull`) are those of
 * `@prisma/client/runtime/client`. A plain null in a Json field is JSON's null, not NULL.
 */
export interface Delegate {
  findMany(args?: Args): Promise<PlainRecord[]>;
  /** Null when nothing matches. */
  findFirst(args?: Args): Promise<PlainRecord | null>;
  count(args?: Args): Promise<number>;
  create(args: Args): Promise<PlainRecord>;
  /** Rejects with P2025 when nothing matches, see `databaseFaultOf`. */
  update(args: Args): Promise<PlainRecord>;
  delete(args: Args): Promise<PlainRecord>;
}

export interface ModelsClient {
  /** The delegate of a model by its name in the schema; throws for an unknown one. */
  delegate(model: string): Delegate;
  /** The same over the connections for lists. */
  listDelegate(model: string): Delegate;
  /** The same over the connections of the relay. */
  relayDelegate(model: string): Delegate;
  /** Runs `work` in one transaction, which is rolled back when it rejects. */
  transaction<T>(work: (delegate: (model: string) => Delegate) => Promise<T>): Promise<T>;
  /** Leaves the pool open: it is not this client's. */
  close(): Promise<void>;
}

type Delegates = Readonly<Record<string, Delegate | undefined>>;
type Client = Delegates & {
  $disconnect(): Promise<void>;
  $transaction<T>(work: (client: Delegates) => Promise<T>): Promise<T>;
};
type ClientClass = new (options: { readonly adapter: SqlDriverAdapterFactory }) => Client;
type CompilerLoading = NonNullable<GetPrismaClientConfig["compilerWasm"]>;

const { version } = createRequire(import.meta.url)("@prisma/client/package.json") as {
  readonly version: string;
};

/**
 * Opens the client of the tables that the mapping files describe. Nothing of it outlives `close`:
 * neither files nor loaded modules. Throws OperatorError with Prisma's own message when the schema
 * is refused.
 *
 * @param schemaText See `prismaSchemaOf`.
 * @param lists For `listDelegate`; default: `pool`.
 * @param relay For `relayDelegate`; default: `pool`.
 * @param isEmbedded See `createAdapter`.
 * @param tracing See `createAdapter`.
 */
export async function openModelsClient({
  schemaText,
  pool,
  lists = pool,
  relay = pool,
  isEmbedded,
  tracing,
}: {
  readonly schemaText: string;
  readonly pool: Pool;
  readonly lists?: Pool;
  readonly relay?: Pool;
  readonly isEmbedded: boolean;
  readonly tracing?: Tracing;
}): Promise<ModelsClient> {
  // What follows is all that the code says which `prisma generate` writes for JavaScript.
  const ClientOfModels = getPrismaClient({
    ...(await describeModels(schemaText)),
    inlineSchema: schemaText,
    activeProvider: "postgresql",
    previewFeatures: [],
    clientVersion: version,
    engineVersion: version,
    compilerWasm,
  }) as unknown as ClientClass;
  const open = (over: Pool): Client =>
    new ClientOfModels({ adapter: createAdapter({ pool: over, isEmbedded, tracing }) });
  const client = open(pool);
  const listClient = lists === pool ? client : open(lists);
  // Only transforms that name relations need it: most services never do.
  let relayClient = relay === pool ? client : undefined;
  return {
    delegate: (model) => delegateOf(client, model),
    listDelegate: (model) => delegateOf(listClient, model),
    relayDelegate: (model) => delegateOf((relayClient ??= open(relay)), model),
    transaction: (work) => client.$transaction((inside) => work((model) => delegateOf(inside, model))),
    async close() {
      for (const one of new Set([client, listClient, relayClient])) await one?.$disconnect();
    },
  };
}

function delegateOf(client: Delegates, model: string): Delegate {
  const delegate = client[model.charAt(0).toLowerCase() + model.slice(1)];
  if (delegate === undefined) throw new Error(`The models client has no model ${model}`);
  return delegate;
}

/**
 * The core client (src/db/generated) uses the same one: Prisma keeps one compiler per kind of
 * database, of the client that asks first.
 */
const compiler = "@prisma/client/runtime/query_compiler_fast_bg.postgresql";

const compilerWasm: CompilerLoading = {
  // Without types, hence not a literal.
  getRuntime: () => import(`${compiler}.mjs`) as ReturnType<CompilerLoading["getRuntime"]>,
  async getQueryCompilerWasmModule() {
    const { wasm } = (await import(`${compiler}.wasm-base64.mjs`)) as { readonly wasm: string };
    return new WebAssembly.Module(Buffer.from(wasm, "base64"));
  },
  importName: "./query_compiler_fast_bg.js",
};

// Node has it, but its types come with the browser's, which this project leaves out.
const { WebAssembly } = globalThis as unknown as {
  readonly WebAssembly: { readonly Module: new (bytes: Uint8Array) => unknown };
};
