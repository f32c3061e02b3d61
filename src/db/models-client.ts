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

/**
 * Returns a client that is opened when it is first used. Loading Prisma takes 95 ms of CPU and 18
 * MB, and reading the models takes a process of 100 MB. Few services ever use it.
 *
 * @param open Opens the client. Called once, and again after a failure.
 */
export function createLazyModelsClient(open: () => Promise<ModelsClient>): ModelsClient {
  let opening: Promise<ModelsClient> | undefined;
  const opened = (): Promise<ModelsClient> =>
    (opening ??= open().catch((error: unknown) => {
      opening = undefined;
      throw error;
    }));
  const delegateOf = (which: "delegate" | "listDelegate" | "relayDelegate", model: string): Delegate => {
    const delegate = async (): Promise<Delegate> => (await opened())[which](model);
    return {
      findMany: async (args) => (await delegate()).findMany(args),
      findFirst: async (args) => (await delegate()).findFirst(args),
      count: async (args) => (await delegate()).count(args),
      create: async (args) => (await delegate()).create(args),
      update: async (args) => (await delegate()).update(args),
      delete: async (args) => (await delegate()).delete(args),
    };
  };
  return {
    delegate: (model) => delegateOf("delegate", model),
    listDelegate: (model) => delegateOf("listDelegate", model),
    relayDelegate: (model) => delegateOf("relayDelegate", model),
    transaction: async (work) => (await opened()).transaction(work),
    async close() {
      const client = await opening?.catch(() => undefined);
      await client?.close();
    },
  };
}
