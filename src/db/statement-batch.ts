import pg, {
  DatabaseError,
  Pool,
  Result,
  types,
  type ClientBase,
  type Connection,
  type QueryResultRow,
  type Submittable,
} from "pg";
import { statementName } from "./statement-name.ts";

/** A row whose values are PostgreSQL's texts. */
export type TextRow = (string | null)[];

/** A value that is sent unchanged. */
export type SentValue = string | Buffer | null;

/** The text of a statement, and the name under which it is prepared. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/** One prepared statement with several lists of values. */
interface StatementBatch extends Statement {
  readonly values: readonly (readonly SentValue[])[];
  /** A statement that runs first, without values. Its rows are dropped. */
  readonly before?: Statement | undefined;
}

/** Settings of the statements after another one. Default: those of the connection. */
export interface StatementLimits {
  /** Limit of the wait for a lock, in ms. */
  readonly lockLimitMs?: number | undefined;
  readonly timeLimitMs?: number | undefined;
  /** Whether statements read no table as a whole where an index leads to the rows. */
  readonly isByIndex?: boolean;
}

/** Returns a statement that sets the limits; undefined without any. */
export function limitsOf({ lockLimitMs, timeLimitMs, isByIndex }: StatementLimits): Statement | undefined {
  const settings = [
    ["lock_timeout", lockLimitMs],
    ["statement_timeout", timeLimitMs],
    ["enable_seqscan", isByIndex === true ? "off" : undefined],
  ].flatMap(([name, value]) => (value === undefined ? [] : [`set_config('${name}', '${value}', true)`]));
  if (settings.length === 0) return undefined;
  const text = `SELECT ${settings.join(", ")}`;
  return { name: statementName(text), text };
}

/** Returns values in the form that pg would send. */
export function sentOf(values: readonly unknown[]): readonly SentValue[] {
  return values.map((value) => utils.prepareValue(value));
}

/**
 * Runs a batch, and returns the rows of each list of values. All executions go out in one write.
 * One `Sync` ends them, so that the server answers in one write too. Sends no `Describe`, because
 * all values arrive as texts. This halves the time that pg itself takes for a statement.
 *
 * PostgreSQL runs a batch as one transaction. A fault of one execution therefore fails the batch.
 */
export async function runBatch(
  over: Pool | ClientBase,
  batch: StatementBatch,
): Promise<readonly TextRow[][]> {
  return resultsOf(await tryBatch(over, batch));
}

/** The rows of each list of values, and the fault. */
interface BatchEnd<Row> {
  readonly results: readonly Row[][];
  readonly fault: BatchFault | undefined;
  /** Time on the connection, without the wait for one. */
  readonly ms: number;
}

export interface BatchFault {
  readonly error: Error;
  /**
   * Index of the execution that failed: after the last when the commit failed, negative when
   * `before` failed.
   */
  readonly at: number;
}

/** Runs a batch, and returns the place of a fault. The rows of earlier executions are complete. */
export function tryBatch(over: Pool | ClientBase, batch: StatementBatch): Promise<BatchEnd<TextRow>> {
  return run(over, batch, ({ fields }) => fields);
}

function resultsOf<Row>({ results, fault }: BatchEnd<Row>): readonly Row[][] {
  if (fault !== undefined) throw fault.error;
  return results;
}

/**
 * Runs one prepared statement, and returns its rows like pg: values by column name, in JavaScript's
 * types. The server describes the columns once on each connection instead of at each run.
 */
export async function runDescribed<R extends QueryResultRow>(
  over: Pool | ClientBase,
  { values, ...statement }: Omit<StatementBatch, "values"> & { readonly values: readonly unknown[] },
): Promise<R[]> {
  const batch = { ...statement, values: [sentOf(values)], isDescribed: true };
  const end = await run(over, batch, ({ fields }, shape) => shape?.parseRow(fields) as R);
  return resultsOf(end)[0] ?? [];
}

/**
 * An untyped export of pg. It converts values to the form that PostgreSQL accepts, including lists
 * and dates.
 */
const { utils } = pg as unknown as { readonly utils: { prepareValue(value: unknown): SentValue } };

interface SentBatch extends StatementBatch {
  readonly isDescribed?: boolean;
}

type ReadRow<Row> = (message: { readonly fields: TextRow }, shape: Shape | undefined) => Row;

function run<Row>(over: Pool | ClientBase, batch: SentBatch, readRow: ReadRow<Row>): Promise<BatchEnd<Row>> {
  return new Promise((resolve, reject) => {
    if (!(over instanceof Pool)) {
      over.query(createQuery(batch, readRow, resolve));
      return;
    }
    over.connect((fault, client, release) => {
      if (fault !== undefined || client === undefined) {
        reject(fault ?? new Error("The pool gave no connection"));
        return;
      }
      client.query(
        createQuery(batch, readRow, (end) => {
          release(end.fault !== undefined && isLost(end.fault.error) ? end.fault.error : undefined);
          resolve(end);
        }),
      );
    });
  });
}

/** Methods that pg's client calls on a foreign query object, such as those of pg-cursor. */
interface RawQuery extends Submittable {
  readonly text: string;
  /** The client replaces it by a function that also ends its timer. */
  callback: (error: Error | null) => void;
  handleRowDescription(message: { readonly fields: unknown }): void;
  handleDataRow(message: { readonly fields: TextRow }): void;
  handleCommandComplete(): void;
  handleReadyForQuery(): void;
  handleError(error: Error): void;
}

/** Methods of pg's connection, whose published types require more than the methods use. */
interface Sender {
  readonly stream: { cork(): void; uncork(): void };
  parse(query: { readonly name: string; readonly text: string }): void;
  bind(config: { readonly statement: string; readonly values: readonly SentValue[] }): void;
  describe(config: { readonly type: "P"; readonly name: string }): void;
  execute(config: { readonly portal: string }): void;
  close(statement: { readonly type: "S"; readonly name: string }): void;
  sync(): void;
}

/**
 * State of a prepared statement. `unsure`: its `Parse` may have failed, or it no longer fits its
 * table. It is parsed again.
 */
type StatementState = "new" | "parsed" | "unsure";

/** Columns of a statement, which are valid as long as its plan. */
interface Shape {
  addFields(fields: unknown): void;
  parseRow(values: TextRow): unknown;
}

interface KnownStatement extends Statement {
  state: StatementState;
  shape?: Shape | undefined;
}

/** Known state of a connection. */
interface Prepared {
  /**
   * Statements that this module has parsed on the connection, by name: those used last at the end.
   */
  readonly statements: Map<string, KnownStatement>;
  /** Characters of their texts. */
  characters: number;
  /** Time before which no plan of the connection was made. */
  plannedAtMs: number;
}

const prepared = new WeakMap<Connection, Prepared>();

function preparedOf(connection: Connection): Prepared {
  let known = prepared.get(connection);
  if (known === undefined) {
    known = { statements: new Map(), characters: 0, plannedAtMs: performance.now() };
    prepared.set(connection, known);
  }
  return known;
}

/**
 * Statement that discards old plans. A plan made while a table was empty may read a whole index for
 * each row. PostgreSQL keeps it until the next ANALYZE
 * (docs/decisions/0037-plans-of-ten-seconds.md).
 */
const discardPlans = "DISCARD PLANS";
const oldestPlanMs = 10_000;

/** Discards the plans of a connection when they are old. Returns the number of statements sent. */
function sendDiscard(sender: Sender, known: Prepared): 0 | 1 {
  const now = performance.now();
  if (now - known.plannedAtMs < oldestPlanMs) return 0;
  known.plannedAtMs = now;
  sender.parse({ name: "", text: discardPlans });
  sender.bind({ statement: "", values: [] });
  sender.execute({ portal: "" });
  return 1;
}

/**
 * Limits of the statements that a connection keeps. Requests choose filters and fields, so there
 * are any number of texts. A plan takes up to a hundred times the memory of its text.
 */
const mostStatements = 1000;
const mostCharacters = 500_000;

/**
 * Returns a statement with its name on the connection. Closes the least recently used statements
 * when there are too many. Must come before everything that can fail, because the server skips all
 * messages after a fault.
 */
function use(sender: Sender, known: Prepared, { name, text }: Statement): KnownStatement {
  const { statements } = known;
  const used = statements.get(name) ?? { name, text, state: "new" };
  if (!statements.delete(name)) known.characters += text.length;
  statements.set(name, used);
  for (const one of statements.values()) {
    if (statements.size <= mostStatements && known.characters <= mostCharacters) break;
    sender.close({ type: "S", name: one.name });
    statements.delete(one.name);
    known.characters -= one.text.length;
  }
  return used;
}

/** Prepares the statement unless the connection has it. */
function parse(sender: Sender, statement: KnownStatement): void {
  const { state, name, text } = statement;
  if (state === "parsed") return;
  // Closing a statement that does not exist is no error.
  if (state === "unsure") sender.close({ type: "S", name });
  sender.parse({ name, text });
  statement.state = "unsure";
}

function createQuery<Row>(
  { name, text, values, before, isDescribed = false }: SentBatch,
  readRow: ReadRow<Row>,
  done: (end: BatchEnd<Row>) => void,
): Submittable {
  const results: Row[][] = values.map(() => []);
  /** The statements of the batch; none before it is sent. */
  let used: readonly KnownStatement[] = [];
  let shape: Shape | undefined;
  let current = before === undefined ? 0 : -1;
  let isDone = false;
  let startedAt = performance.now();
  let unreadable: Error | null = null;
  const query: RawQuery = {
    text,
    callback(error) {
      // The client reports a time limit twice.
      if (isDone) return;
      isDone = true;
      for (const one of used) one.state = error === null ? "parsed" : "unsure";
      if (used[0] !== undefined) used[0].shape = error === null ? shape : undefined;
      const fault = error === null ? undefined : { error, at: current };
      done({ results, fault, ms: performance.now() - startedAt });
    },
    submit(connection) {
      startedAt = performance.now();
      const known = preparedOf(connection);
      const sender = connection as unknown as Sender;
      sender.stream.cork();
      try {
        const own = use(sender, known, { name, text });
        const first = before && use(sender, known, before);
        used = first === undefined ? [own] : [own, first];
        ({ shape } = own);
        current -= sendDiscard(sender, known);
        if (first !== undefined) {
          parse(sender, first);
          sender.bind({ statement: first.name, values: [] });
          sender.execute({ portal: "" });
        }
        parse(sender, own);
        for (const one of values) {
          sender.bind({ statement: name, values: one });
          if (isDescribed && shape === undefined) sender.describe({ type: "P", name: "" });
          sender.execute({ portal: "" });
        }
        sender.sync();
      } finally {
        sender.stream.uncork();
      }
    },
    handleRowDescription({ fields }) {
      shape = new Result("object", types) as unknown as Shape;
      shape.addFields(fields);
    },
    handleDataRow(message) {
      // The caller is pg's parser, which an exception would leave in the middle of a message.
      try {
        results[current]?.push(readRow(message, shape));
      } catch (error) {
        unreadable = error as Error;
      }
    },
    handleCommandComplete() {
      current += 1;
    },
    handleReadyForQuery: () => query.callback(unreadable),
    handleError: (error) => query.callback(error),
  };
  return query;
}

/**
 * Returns whether a connection is of no more use after an error. A pool of pg drops a connection
 * after any error, and with it the statements that others have prepared. With the pool's rule, each
 * refused write of a user took 27 ms instead of 2.
 */
export function isLost(error: unknown): boolean {
  return !(error instanceof DatabaseError) || endsConnection.test(error.code ?? "");
}

/**
 * Codes of errors that end a connection, such as one whose transaction took too long. A server that
 * allows only reads (25006) is no longer the primary.
 */
const endsConnection = /^(?:57P|25P|08|25006)/;

/**
 * Returns whether a prepared statement no longer fits its table. A column has changed its type
 * since ("cached plan must not change result type").
 */
export function isStalePlan(error: unknown): boolean {
  return (error as { readonly code?: unknown }).code === "0A000";
}
