import { quoteName, quoteTable, shortTable } from "../db/names.ts";
import type { TextSql } from "../db/text-sql.ts";
import type { Transaction } from "../db/transaction.ts";
import type { Definition, Definitions, Field, FieldType } from "../mapping/definition.ts";
import type { Caller } from "../kit/caller.ts";
import { codeOf } from "../kit/errors.ts";
import { conditionText, createParameters, type Parameters } from "../querying/condition-text.ts";
import { allOf, always, isAlways, type Condition } from "../querying/condition.ts";
import { conditionOf } from "../querying/prisma-where.ts";
import { scalarParameter } from "../querying/values.ts";
import { isAdminFor, type AccessConditions } from "./access.ts";
import type { ReadDate } from "../validation/date-checks.ts";
import { parseKey } from "./coerce.ts";
import { isoDateOf } from "./iso-dates.ts";
import { baseQueryOf } from "./query.ts";
import { faultOf } from "./refusals.ts";
import type { Lookup } from "../validation/validate.ts";

/**
 * Creates the look-up for the rules `unique` and `exists` of one resource, with the database's own
 * exact comparison. Uses plain SQL, because a target may be a table without a resource.
 *
 * @param own The resource of the rules. Its record that is being updated is ignored; records of
 *   other resources are not.
 * @param over SQL over the pool, or within a transaction. The transaction survives a value that its
 *   column cannot hold.
 */
export function createLookup({
  own,
  definitions,
  over,
  access,
}: Referring & {
  readonly own: Definition;
  readonly over: { readonly reads: TextSql } | { readonly within: Within };
}): (caller: Caller) => Lookup {
  const asker = "reads" in over ? createAsker(over.reads) : createGuardedAsker(over.within);

  /** Questions of the current turn of the event loop. One statement answers those of one body. */
  let waiting: Waiting[] = [];
  /** Questions that bodies share. */
  let shared = new Map<string, Promise<boolean>>();

  /**
   * Runs one statement at a time: otherwise 1,000 questions of a body would take every connection.
   */
  async function answer(): Promise<void> {
    const questions = waiting;
    waiting = [];
    shared = new Map();
    for (let start = 0; start < questions.length; start += maxQuestions)
      await answerTogether(asker, questions.slice(start, start + maxQuestions));
  }

  return (caller) => ({
    async exists({ target, column, value, except, isReference = false, readDate }) {
      const definition = findTarget(definitions, target);
      const field = definition?.fields.find(({ name }) => name === column);
      const text = textIn(field, value, readDate);
      if (text === undefined) return false;
      const left = definition?.name === own.name ? except : undefined;
      const condition =
        isReference && definition !== undefined
          ? referable(definition, { definitions, access }, caller)
          : always;
      if (condition === undefined)
        throw new Error(
          `No record of ${target} can be referenced: its baseQuery has a filter that only Prisma knows. Change the filter, or allow all references by access.reference: everyone`,
        );
      const isShared = isAlways(condition) && left === undefined;
      const id = JSON.stringify([target, column, text]);
      const known = isShared ? shared.get(id) : undefined;
      if (known !== undefined) return known;
      const answered = new Promise<boolean>((resolve, reject) => {
        if (waiting.length === 0) queueMicrotask(() => void answer());
        waiting.push({
          table: quoteTable(definition?.table ?? target),
          // Rules may name a field or, for a table without a resource, a column.
          column: quoteName(field?.column ?? column),
          text,
          condition,
          isSafe: definition?.isManaged === true && fits(field, text),
          other: left === undefined ? undefined : otherOf(own, left),
          resolve,
          reject,
        });
      });
      if (isShared) shared.set(id, answered);
      return answered;
    },
  });
}

/** Context of decisions on references. */
export interface Referring {
  readonly definitions: Definitions;
  readonly access: AccessConditions;
}

/**
 * Returns the condition of the records that may be referenced. With rules of access for the target,
 * they are all within its base query. Returns undefined for a base query with a part that only the
 * Prisma client supports. Without that part, a reference would reveal hidden records.
 */
export function referable(
  definition: Definition,
  { definitions, access }: Referring,
  caller: Caller,
): Condition | undefined {
  const { reference } = definition.access;
  if (reference.kind === "everyone" || isAdminFor(definition, caller)) return always;
  const scope = conditionOf(definition, definitions, baseQueryOf(definition).where);
  return scope && allOf([scope, access.of(definition, ["reference"], caller)]);
}

/**
 * Returns the definition of a target: a resource, or the table of one. Returns undefined for a
 * table without a resource.
 */
export function findTarget(definitions: Definitions, target: string): Definition | undefined {
  const known = definitions.get(target);
  if (known !== undefined) return known;
  const table = shortTable(target);
  // Uses the last of several, like a map.
  return [...definitions.values()].findLast((definition) => definition.table === table);
}

/**
 * Limit of the questions in a statement. Statements with more would seldom repeat, and are prepared
 * by their text.
 */
const maxQuestions = 20;

interface Question {
  readonly table: string;
  readonly column: string;
  readonly text: string;
  readonly condition: Condition;
  /**
   * Whether the column certainly accepts the text, so that the statement cannot fail because of it.
   */
  readonly isSafe: boolean;
  /** The record to ignore. */
  readonly other: { readonly columns: readonly string[]; readonly values: readonly string[] } | undefined;
}

interface Waiting extends Question {
  readonly resolve: (exists: boolean) => void;
  readonly reject: (error: unknown) => void;
}

type Within = Pick<Transaction, "sql" | "text">;

type Asker = (questions: readonly Question[]) => Promise<readonly boolean[]>;

/**
 * Answers several questions with one statement.
 *
 * @param first Earlier error, when all questions were asked together.
 */
async function answerTogether(asker: Asker, questions: readonly Waiting[], first?: unknown): Promise<void> {
  try {
    const answers = await asker(questions);
    questions.forEach(({ resolve }, index) => resolve(answers[index] === true));
  } catch (error) {
    const { kind } = faultOf(error);
    for (const question of questions) {
      // The error belongs to one of the questions, which may be another user's.
      if (kind !== "unavailable" && questions.length > 1) await answerTogether(asker, [question], error);
      // The value is in no row: `abc` for an integer column, a NUL, or a number out of range.
      else if (kind === "bad_value") question.resolve(false);
      else question.reject(codeOf(error) === inFailedTransaction ? (first ?? error) : error);
    }
  }
}

const inFailedTransaction = "25P02";

function createAsker(reads: TextSql): Asker {
  return async (questions) => {
    const [row = []] = await reads(...questionText(questions));
    return row.map((text) => text === "t");
  };
}

/**
 * Creates an asker within a transaction, which a failed statement would end. A value that may not
 * fit its column is looked up behind a savepoint, which takes two more round trips. It runs one
 * statement at a time, since a rollback to the savepoint would undo the others.
 */
function createGuardedAsker({ sql, text }: Within): Asker {
  const ask = createAsker(text);
  let last: Promise<unknown> = Promise.resolve();
  return (questions) => {
    const asking = last.then(() =>
      questions.every(({ isSafe }) => isSafe) ? ask(questions) : behindSavepoint(sql, () => ask(questions)),
    );
    last = asking.catch(() => undefined);
    return asking;
  };
}

async function behindSavepoint<T>(sql: Within["sql"], act: () => Promise<T>): Promise<T> {
  await sql("SAVEPOINT lookup");
  try {
    const result = await act();
    await sql("RELEASE lookup");
    return result;
  } catch (error) {
    await sql("ROLLBACK TO lookup; RELEASE lookup");
    throw error;
  }
}

function questionText(questions: readonly Question[]): [string, Parameters["values"]] {
  const parameters = createParameters();
  const parts = questions.map(({ table, column, text, condition, other }, index) => {
    const where = [
      `t.${column} = ${parameters.add(text)}`,
      ...(other === undefined ? [] : [otherText(other, parameters)]),
      ...(isAlways(condition) ? [] : [`(${conditionText(condition, "t", parameters)})`]),
    ];
    return `EXISTS (SELECT 1 FROM ${table} AS t WHERE ${where.join(" AND ")}) AS a${index}`;
  });
  return [`SELECT ${parts.join(", ")}`, parameters.values];
}

/**
 * Returns the record to ignore.
 *
 * @param key Key of the record; a list of values for a key of several fields.
 */
function otherOf({ keys }: Definition, key: unknown): Question["other"] {
  return {
    columns: keys.map(({ column }) => `t.${quoteName(column)}`),
    values: [key].flat().map((value) => textOf(value) ?? ""),
  };
}

function otherText({ columns, values }: NonNullable<Question["other"]>, parameters: Parameters): string {
  const places = values.map((value) => parameters.add(value));
  return columns.length === 1
    ? `${columns.join("")} <> ${places.join("")}`
    : `(${columns.join(", ")}) <> (${places.join(", ")})`;
}

/** Returns whether a key of the field's type could have the value. */
function fits(field: Field | undefined, text: string): boolean {
  if (field === undefined || field.isList || field.native !== undefined) return false;
  return keyTypes.has(field.type) && parseKey(field, text) !== undefined;
}

const keyTypes: ReadonlySet<FieldType> = new Set(["Int", "BigInt", "String", "Uuid"]);

/** PostgreSQL reads the base64 of a body as other bytes, and `03.04.2026` as another day. */
function textIn(
  field: Field | undefined,
  value: unknown,
  readDate: ReadDate | undefined,
): string | undefined {
  if (field !== undefined && readDate !== undefined) return textOf(isoDateOf(field, value, readDate));
  if (field?.type !== "Bytes") return textOf(value);
  const bytes = scalarParameter("Bytes", value);
  return Buffer.isBuffer(bytes) ? `\\x${bytes.toString("hex")}` : undefined;
}

/**
 * Returns the text of a value, which the server reads as the column's own type. Returns undefined
 * for a value that no column holds.
 */
function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean")
    return String(value);
  return undefined;
}
