type Args = Readonly<Record<string, unknown>>;
type PlainRecord = Readonly<Record<string, unknown>>;

/**
 * Operations of the models client for one model. Arguments and results are Prisma's, untyped
 * because the models come from YAML. Its values (`Decimal`, `DbNull`, `JsonNull`) are those of
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

/** The Prisma client of the tables that the mapping files describe. */
export interface ModelsClient {
  /** The delegate of a model by its name in the schema; throws for an unknown one. */
  delegate(model: string): Delegate;
  /** Returns the delegate of a model over the connections for lists. */
  listDelegate(model: string): Delegate;
  /** Returns the delegate of a model over the connections of the relay. */
  relayDelegate(model: string): Delegate;
  /** Runs `work` in one transaction, which is rolled back when it rejects. */
  transaction<T>(work: (delegate: (model: string) => Delegate) => Promise<T>): Promise<T>;
  /** Closes the client, but leaves the pool open because the client does not own it. */
  close(): Promise<void>;
}

/** The client of the tables, which is opened when it is first used. */
export interface LazyModels {
  /** Opens the client once, and again after a failure. */
  readonly get: () => Promise<ModelsClient>;
  close(): Promise<void>;
}

/**
 * Creates the client without opening it. Loading Prisma takes 95 ms of CPU and 18 MB, and reading
 * the models takes a process of 100 MB. Few services ever use it.
 */
export function createLazyModels(open: () => Promise<ModelsClient>): LazyModels {
  let opening: Promise<ModelsClient> | undefined;
  return {
    get: () =>
      (opening ??= open().catch((error: unknown) => {
        opening = undefined;
        throw error;
      })),
    async close() {
      const client = await opening?.catch(() => undefined);
      await client?.close();
    },
  };
}
