import { Pool, type ClientBase, type Connection, type Submittable } from "pg";

/** A row as PostgreSQL's texts of its values. */
export type TextRow = (string | null)[];

/** A value that is sent as it is. */
export type SentValue = string | Buffer | null;

/** One prepared statement, for several lists of values. */
export interface StatementBatch {
  readonly name: string;
  readonly text: string;
  readonly values: readonly (readonly SentValue[])[];
}

/** Returns what pg would send; undefined for values that pg has to write, such as lists. */
export function sentOf(values: readonly unknown[]): readonly SentValue[] | undefined {
  const sent: SentValue[] = [];
  for (const value of values) {
    if (typeof value === "string" || value === null || Buffer.isBuffer(value)) sent.push(value);
    else if (typeof value === "number" || typeof value === "boolean") sent.push(String(value));
    else return undefined;
  }
  return sent;
}

/**
 * Runs a batch, and returns the rows of each list of values. All executions go out in one write.
 * One `Sync` ends them, so that the server answers in one write too. Asks for no `Describe`, since
 * all values come as texts: this halves what pg itself takes for a statement.
 *
 * PostgreSQL takes a batch for one transaction. A fault of one execution therefore fails the batch.
 * A pool gives up the connection then, as it does after a fault of its own queries.
 */
export function runBatch(over: Pool | ClientBase, batch: StatementBatch): Promise<readonly TextRow[][]> {
  return new Promise((resolve, reject) => {
    const settle = (error: Error | undefined, results: readonly TextRow[][]): void => {
      if (error === undefined) resolve(results);
      else reject(error);
    };
    if (!(over instanceof Pool)) {
      over.query(createQuery(batch, settle));
      return;
    }
    over.connect((fault, client, release) => {
      if (fault !== undefined || client === undefined) {
        reject(fault ?? new Error("The pool gave no connection"));
        return;
      }
      client.query(
        createQuery(batch, (error, results) => {
          release(error);
          settle(error, results);
        }),
      );
    });
  });
}

/** What pg's client calls of a query that it did not make itself, as those of pg-cursor. */
interface RawQuery extends Submittable {
  readonly text: string;
  /** The client replaces it by one that ends its timer too. */
  callback: (error: Error | null) => void;
  handleDataRow(message: { readonly fields: TextRow }): void;
  handleCommandComplete(): void;
  handleReadyForQuery(): void;
  handleError(error: Error): void;
}

/** The methods of pg's connection, whose published types ask for more than they take. */
interface Sender {
  readonly stream: { cork(): void; uncork(): void };
  parse(query: { readonly name: string; readonly text: string }): void;
  bind(config: { readonly statement: string; readonly values: readonly SentValue[] }): void;
  execute(config: { readonly portal: string }): void;
  close(statement: { readonly type: "S"; readonly name: string }): void;
  sync(): void;
}

/** Unsure: its `Parse` may have failed, or its plan is stale. */
type StatementState = "parsed" | "unsure";

/** The statements that each connection has parsed here, by name. */
const statements = new WeakMap<Connection, Map<string, StatementState>>();

function statementsOf(connection: Connection): Map<string, StatementState> {
  let known = statements.get(connection);
  if (known === undefined) {
    known = new Map();
    statements.set(connection, known);
  }
  return known;
}

function createQuery(
  { name, text, values }: StatementBatch,
  done: (error: Error | undefined, results: readonly TextRow[][]) => void,
): Submittable {
  const results: TextRow[][] = values.map(() => []);
  let known: Map<string, StatementState> | undefined;
  let current = 0;
  let isDone = false;
  const query: RawQuery = {
    text,
    callback(error) {
      // The client reports a time limit twice.
      if (isDone) return;
      isDone = true;
      if (error === null) known?.set(name, "parsed");
      else if (isStalePlan(error)) known?.set(name, "unsure");
      done(error ?? undefined, results);
    },
    submit(connection) {
      known = statementsOf(connection);
      const sender = connection as unknown as Sender;
      sender.stream.cork();
      try {
        const state = known.get(name);
        // The close of a statement that is not there is no error.
        if (state === "unsure") sender.close({ type: "S", name });
        if (state !== "parsed") {
          sender.parse({ name, text });
          known.set(name, "unsure");
        }
        for (const one of values) {
          sender.bind({ statement: name, values: one });
          sender.execute({ portal: "" });
        }
        sender.sync();
      } finally {
        sender.stream.uncork();
      }
    },
    handleDataRow({ fields }) {
      results[current]?.push(fields);
    },
    handleCommandComplete() {
      current += 1;
    },
    handleReadyForQuery: () => query.callback(null),
    handleError: (error) => query.callback(error),
  };
  return query;
}

/**
 * Whether a prepared statement no longer fits its table: a column has another type since ("cached
 * plan must not change result type"). The connection keeps the statement for its life.
 */
export function isStalePlan(error: unknown): boolean {
  return (error as { readonly code?: unknown }).code === "0A000";
}
