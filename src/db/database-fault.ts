import { DatabaseError } from "pg";
import { columnsOf } from "./fault-columns.ts";
import { resultTooLargeCode } from "./result-limit.ts";

/**
 * A fault of the database, as far as a caller can act on it. Fields are columns, under their names
 * in the table.
 */
export type DatabaseFault =
  /**
   * For an index on an expression, the field is its text (`lower(email)`). Empty when the server
   * named no columns.
   */
  | { readonly kind: "unique"; readonly fields: readonly string[] }
  /**
   * The missing reference (insert, update), or the key that others refer to (delete). `raised` is
   * the message when a trigger reported it by RAISE.
   */
  | { readonly kind: "foreign_key"; readonly field?: string; readonly raised?: string }
  | { readonly kind: "not_null"; readonly field?: string }
  | { readonly kind: "check"; readonly constraint?: string }
  /** An EXCLUDE constraint. Fields are as for `unique`, but an expression comes in parts. */
  | { readonly kind: "excluded"; readonly fields: readonly string[]; readonly constraint?: string }
  /** A trigger of the table refused the row by RAISE, with this message. */
  | { readonly kind: "raised"; readonly message: string }
  /** A row policy of the table forbids the row to the role of svc. */
  | { readonly kind: "forbidden" }
  /** The role of svc lacks a right on the table, or on a column of it. */
  | { readonly kind: "denied"; readonly message: string }
  /** A rule of the table turns the statement into one that gives no row back. */
  | { readonly kind: "rewritten" }
  /** The record to change or delete does not exist. */
  | { readonly kind: "not_found" }
  /**
   * A value is out of range, too long, of another type, or has a character that PostgreSQL cannot
   * store.
   */
  | { readonly kind: "bad_value" }
  /**
   * The database is unavailable, overloaded, too slow, or in conflict with another transaction. The
   * same statement may work later.
   */
  | { readonly kind: "unavailable" }
  /**
   * The result exceeded the limit of its connection, see `limitResults`. `rows` is the number of
   * rows received before that, if known.
   */
  | { readonly kind: "too_large"; readonly rows?: number | undefined }
  | { readonly kind: "other" };

/** Common parts of the errors of Prisma, its adapter and pg; every part may be missing. */
interface Thrown {
  /** Number of rows before a `ResultTooLargeError`. */
  readonly rows?: number;
  readonly name?: unknown;
  readonly code?: unknown;
  readonly message?: unknown;
  /** The place in PostgreSQL's source that reported it. */
  readonly routine?: unknown;
  readonly meta?: { readonly driverAdapterError?: { readonly cause?: Cause } };
  readonly cause?: Cause;
}

interface Cause {
  readonly originalCode?: string;
  readonly originalMessage?: string;
  readonly constraint?: { readonly fields?: readonly string[]; readonly index?: string };
}

/** Default code of RAISE EXCEPTION in PL/pgSQL. */
const raised = "P0001";

/** Prisma's own codes, for faults that did not come from the server with an SQLSTATE. */
const kindOfPrismaCode: Readonly<Record<string, "not_found" | "bad_value" | "unavailable">> = {
  P1001: "unavailable",
  P1002: "unavailable",
  P1008: "unavailable",
  P1011: "unavailable",
  P1017: "unavailable",
  P2001: "not_found",
  P2015: "not_found",
  P2018: "not_found",
  P2023: "bad_value",
  P2024: "unavailable",
  P2025: "not_found",
  P2028: "unavailable",
  P2033: "bad_value",
  P2034: "unavailable",
  P2037: "unavailable",
};

/** Plain errors of pg and pg-pool, which have no code. */
const lostConnection =
  /^(Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect|Cannot use a pool after calling end|Query read timeout)/;

const socketCodes = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ETIMEDOUT",
  "EPIPE",
  "ENOENT",
  "EHOSTUNREACH",
  "ENETUNREACH",
]);

/**
 * Matches values that never reached the server because Prisma could not read them. Prisma's other
 * validation errors are faults of the caller's code.
 */
const unreadableValue = /Invalid value for argument|Unable to fit|Could not convert|integer value/;

/** Classifies an error of Prisma, its adapter or pg. Pure; never throws, whatever the value. */
export function databaseFaultOf(error: unknown): DatabaseFault {
  if (typeof error !== "object" || error === null) return { kind: "other" };
  const thrown = error as Thrown;
  const cause = thrown.meta?.driverAdapterError?.cause ?? thrown.cause;
  const code = typeof thrown.code === "string" ? thrown.code : undefined;
  if (code === resultTooLargeCode) return { kind: "too_large", rows: thrown.rows };
  // First, because EPIPE looks like an SQLSTATE.
  if (code !== undefined && socketCodes.has(code)) return { kind: "unavailable" };
  const isRaised = thrown.routine === "exec_stmt_raise";
  const sqlState = cause?.originalCode ?? (isRaised || isSqlState(code) ? code : undefined);
  if (sqlState !== undefined) {
    // The table of a prepared statement has changed, in a transaction. The statement is parsed
    // again next time. A rule without RETURNING has the same code.
    if (thrown.routine === "RevalidateCachedQuery") return { kind: "unavailable" };
    // The server is out of transaction ids, and writes nothing until a VACUUM (54000).
    if (String(thrown.routine).startsWith("GetNew")) return { kind: "unavailable" };
    const fault = faultOfSqlState(sqlState, cause ?? causeOf(error));
    const message = cause?.originalMessage ?? String(thrown.message);
    if (sqlState === raised || (isRaised && !saysMore(fault, sqlState))) return { kind: "raised", message };
    if (isRaised && fault.kind === "foreign_key") return { ...fault, raised: message };
    if (fault.kind !== "other") return fault;
    if (thrown.routine === "ExecWithCheckOptions") return { kind: "forbidden" };
    return thrown.routine === "aclcheck_error" ? { kind: "denied", message } : fault;
  }

  const text = typeof thrown.message === "string" ? thrown.message : "";
  const kind = code === undefined ? undefined : kindOfPrismaCode[code];
  if (kind !== undefined) return { kind };
  if (lostConnection.test(text)) return { kind: "unavailable" };
  if (thrown.name === "PrismaClientValidationError" && unreadableValue.test(text))
    return { kind: "bad_value" };
  return { kind: "other" };
}

/** Returns whether a statement of pg or Prisma failed because it reached its time limit. */
export function isTimeLimitOver(error: unknown): boolean {
  const { code, meta, cause } = (error ?? {}) as Thrown;
  return ((meta?.driverAdapterError?.cause ?? cause)?.originalCode ?? code) === "57014";
}

/** Returns whether a statement failed because it reached its time limit for a lock. */
export function isLockWaitOver(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === "55P03";
}

/**
 * Returns whether the SQLSTATE of a RAISE tells the caller more than its message: a field,
 * referring records, or that the same statement may work later.
 */
function saysMore(fault: DatabaseFault, sqlState: string): boolean {
  if (fault.kind === "unique") return fault.fields.length > 0;
  if (fault.kind === "not_null") return fault.field !== undefined;
  return fault.kind === "foreign_key" || sqlState.startsWith("40");
}

function faultOfSqlState(sqlState: string, { constraint }: Cause): DatabaseFault {
  const fields = constraint?.fields ?? [];
  const field = fields[0] === undefined ? {} : { field: fields[0] };
  const named = constraint?.index === undefined ? {} : { constraint: constraint.index };
  switch (sqlState) {
    case "23505":
      return { kind: "unique", fields };
    case "23503":
    // PostgreSQL 18 has a separate code for `ON DELETE RESTRICT`.
    case "23001":
      return { kind: "foreign_key", ...field };
    case "23502":
      return { kind: "not_null", ...field };
    case "23514":
      return { kind: "check", ...named };
    case "23P01":
      return { kind: "excluded", fields, ...named };
    case "0A000":
      return { kind: "rewritten" };
    // A materialized view before its first REFRESH.
    case "55000":
    // Statement timeout, lock timeout, idle or long transaction cut, serialization, deadlock.
    case "57014":
    case "55P03":
    case "25P03":
    case "25P04":
    case "40001":
    case "40P01":
    // The server allows only reads: a standby, or a former primary to which a connection was left
    // open.
    case "25006":
    // The server refuses a new connection: a password has changed, or the server is being set up or
    // restored.
    case "28000":
    case "28P01":
    case "3D000":
      return { kind: "unavailable" };
    default:
      return { kind: kindOfClass[sqlState.slice(0, 2)] ?? "other" };
  }
}

/**
 * Kinds by class of SQLSTATE: data exceptions; connection; foreign data; resources; operator
 * intervention.
 */
const kindOfClass: Readonly<Record<string, "bad_value" | "unavailable">> = {
  "22": "bad_value",
  "08": "unavailable",
  // The server behind a foreign table.
  HV: "unavailable",
  "53": "unavailable",
  "57": "unavailable",
};

/** Returns the same parts from an error of pg itself. */
function causeOf(error: object): Cause {
  const { column, detail, constraint } = error as Readonly<
    Record<"column" | "detail" | "constraint", string | undefined>
  >;
  const fields = columnsOf({ column, detail });
  // An EXCLUDE constraint has both.
  return { constraint: { fields, ...(constraint !== undefined && { index: constraint }) } };
}

/**
 * Returns whether a code is an SQLSTATE. Prisma's codes (`P2002`) have the same form. Of
 * PostgreSQL's classes, only `P0` begins with a P.
 */
function isSqlState(code: string | undefined): boolean {
  return code !== undefined && /^(?!P[1-9])[0-9A-Z]{5}$/.test(code);
}
