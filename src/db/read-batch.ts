import type { Connection, Submittable } from "pg";

/** A row as PostgreSQL's texts of its values. */
export type TextRow = (string | null)[];

/** A value that is sent as it is. */
export type BatchValue = string | Buffer | null;

/** One prepared statement, for several lists of values. */
export interface ReadBatch {
  readonly name: string;
  readonly text: string;
  readonly values: readonly (readonly BatchValue[])[];
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

/** The methods of pg's connection whose types say more than is asked of a caller. */
interface Sender {
  readonly stream: { cork(): void; uncork(): void };
  parse(query: { readonly name: string; readonly text: string }): void;
  bind(config: { readonly statement: string; readonly values: readonly BatchValue[] }): void;
  execute(config: { readonly portal: string }): void;
  sync(): void;
}

/** Names of the statements that each connection has parsed here. */
const parsed = new WeakMap<Connection, Set<string>>();

/**
 * Makes the query of a batch, for `client.query`. All executions go out in one write. One `Sync`
 * ends them, so that the server answers in one write too. Asks for no `Describe`, since all values
 * come as texts.
 *
 * After an error PostgreSQL skips the rest of the batch. The connection must not be used again:
 * which statement it has parsed is unknown.
 *
 * @param done Called once, with the rows of each list of values.
 */
export function createReadBatch(
  { name, text, values }: ReadBatch,
  done: (error: Error | undefined, rows: readonly TextRow[][]) => void,
): Submittable {
  const results: TextRow[][] = values.map(() => []);
  let current = 0;
  const query: RawQuery = {
    text,
    callback: (error) => done(error ?? undefined, results),
    submit(connection) {
      const known = parsed.get(connection) ?? new Set();
      parsed.set(connection, known);
      const sender = connection as unknown as Sender;
      sender.stream.cork();
      try {
        if (!known.has(name)) sender.parse({ name, text });
        known.add(name);
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
