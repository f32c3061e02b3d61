import { createRequire } from "node:module";
import {
  type GetPrismaClientConfig,
  getPrismaClient,
  type SqlDriverAdapterFactory,
} from "@prisma/client/runtime/client";
import type { Pool } from "pg";
import type { Tracing } from "../../telemetry/tracing.ts";
import type { Delegate, ModelsClient } from "../models-client.ts";
import { createAdapter } from "./adapter.ts";
import { describeModels } from "./describe-models.ts";

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
 * Opens the client of the tables that the mapping files describe. Nothing remains after `close`,
 * neither files nor loaded modules. Throws OperatorError with Prisma's own message when the schema
 * is refused.
 *
 * @param schemaText See `prismaSchemaOf`.
 * @param lists Pool of `listDelegate`; default: `pool`.
 * @param relay Pool of `relayDelegate`; default: `pool`.
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
  // These are all the options in the code that `prisma generate` writes for JavaScript.
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
    new ClientOfModels({ adapter: createAdapter({ pool: over, isEmbedded, schemaText, tracing }) });
  const client = open(pool);
  const listClient = lists === pool ? client : open(lists);
  // Opened on first use, since only transforms that name relations need it, and most services have
  // none.
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

const compiler = "@prisma/client/runtime/query_compiler_fast_bg.postgresql";

const compilerWasm: CompilerLoading = {
  // The module has no types, so its name is not a literal.
  getRuntime: () => import(`${compiler}.mjs`) as ReturnType<CompilerLoading["getRuntime"]>,
  async getQueryCompilerWasmModule() {
    const { wasm } = (await import(`${compiler}.wasm-base64.mjs`)) as { readonly wasm: string };
    return new WebAssembly.Module(Buffer.from(wasm, "base64"));
  },
  importName: "./query_compiler_fast_bg.js",
};

// Node has WebAssembly, but its types come with those of the browser, which this project leaves
// out.
const { WebAssembly } = globalThis as unknown as {
  readonly WebAssembly: { readonly Module: new (bytes: Uint8Array) => unknown };
};
