import { databaseFaultOf, type DatabaseFault } from "../db/database-fault.ts";
import type { InTransaction } from "../db/transaction.ts";
import { AppError, codeOf, messageOf, validationError, unauthorizedError } from "../kit/errors.ts";
import type { Definition, Row } from "../mapping/definition.ts";
import { isUnsupported } from "../mapping/models.ts";
import { displayName } from "../validation/values.ts";
import { reachedFields } from "./unreachable.ts";

/** Returns the 403 of a record that the caller may not use. */
export function forbidden(): AppError {
  return unauthorizedError("record.forbidden");
}

/**
 * Throws for a resource with a field that the Prisma client does not know, when that client has to
 * answer.
 */
export function refuseUnsupportedFields({ name, fields }: Definition): void {
  const field = fields.find(isUnsupported);
  if (field !== undefined)
    throw new Error(
      `The code module of ${name} gives arguments that only Prisma knows, and Prisma does not know the field ${field.name} (${field.native ?? field.type})`,
    );
}

/**
 * Faults that a reference causes for a delete. `SET NULL` and `SET DEFAULT` change the other
 * records, which may violate constraints of their table.
 */
const referring: readonly DatabaseFault["kind"][] = [
  "foreign_key",
  "not_null",
  "check",
  "unique",
  "excluded",
];

/**
 * Throws the error of a failed delete: a 409 where other records refer to the record. Returns false
 * for a key that no record can have.
 */
export function refuseDelete(error: unknown): false {
  const fault = databaseFaultOf(error);
  if (fault.kind === "not_found" || fault.kind === "bad_value") return false;
  if (fault.kind === "raised")
    throw refused(`The database refused to delete the record: ${fault.message}`, error);
  if (fault.kind === "rewritten")
    throw refused("The rules of the table do not let this service delete the record.", error);
  if (fault.kind === "forbidden") throw forbidden();
  if (fault.kind === "denied") throw denied("delete the record", fault, error);
  if (!referring.includes(fault.kind)) throw error;
  throw new AppError("record.referenced", "The record cannot be deleted: other records refer to it.", {
    cause: error,
  });
}

/**
 * Throws the error of a failed list: a 422 when a filter has a value that its column cannot hold.
 * Such a column takes less than its field, as a `real` or an enum of PostgreSQL does. The server
 * does not name the column.
 *
 * @param asked Names of the request's parameters.
 */
export function refuseList(asked: readonly string[], error: unknown): never {
  const filters = asked.filter((name) => name.startsWith("filter["));
  if (filters.length === 0 || faultOf(error).kind !== "bad_value") throw error;
  const message =
    filters.length === 1
      ? "The column cannot hold this value."
      : "A column cannot hold its value: this one, or that of another filter.";
  throw validationError(Object.fromEntries(filters.map((name) => [name, [message]])), error);
}

/**
 * Codes of values that a type refuses in its own way. `tsvector` and `ltree` report a syntax error,
 * extensions an internal error. The syntax of the statements themselves is never wrong. Indexes and
 * triggers refuse values that are too large for them by a limit of the program.
 */
const refusedByType: readonly (string | undefined)[] = ["42601", "XX000", "54000"];

/**
 * Classifies an error of the database. The error of a value that a type refuses in its own way is a
 * bad value.
 */
export function faultOf(error: unknown): DatabaseFault {
  const fault = databaseFaultOf(error);
  return fault.kind === "other" && refusedByType.includes(codeOf(error)) ? { kind: "bad_value" } : fault;
}

/**
 * Throws the error of a failed write: a 422 when another value would succeed, else the error
 * itself.
 *
 * @param operation Whose rules may give a missing value.
 * @param data Values of the write, to find the one that the server refused.
 */
export function refuseWrite(
  definition: Definition,
  error: unknown,
  operation: "create" | "update" = "create",
  data: Row = {},
): never {
  const fault = faultOf(error);
  switch (fault.kind) {
    case "unique":
      throw refusedFields(definition, fault.fields, (name) => `The ${name} has already been taken.`, error);
    case "foreign_key":
      if (fault.field === undefined && fault.raised !== undefined) throw raised(fault.raised, error);
      throw refusedFields(definition, columnsIn(fault), (name) => `The selected ${name} is invalid.`, error);
    case "not_null":
      throw refusedFields(definition, columnsIn(fault), missingIn(definition, operation), error);
    case "excluded": {
      const { fields, constraint } = fault;
      const isMapped = fields.some((column) => fieldsOf(definition, column).length > 0);
      if (constraint === undefined || !isMapped) throw brokenConstraint(fault, error);
      const end = `conflicts with another record, by the constraint ${constraint} of the table.`;
      throw refusedFields(definition, fields, (name) => `The ${name} ${end}`, error);
    }
    // The server does not name the column.
    case "check":
      throw brokenConstraint(fault, error);
    case "bad_value":
      throw refusedValue(definition, error, data);
    case "raised":
      throw raised(fault.message, error);
    case "rewritten":
      throw refused("The rules of the table do not let this service write the record.", error);
    case "forbidden":
      throw forbidden();
    case "denied":
      throw denied("write the record", fault, error);
    case "not_found":
    case "unavailable":
    case "too_large":
    case "other":
      throw error;
  }
}

function raised(message: string, error: unknown): AppError {
  return refused(`The database refused the record: ${message}`, error);
}

function brokenConstraint({ constraint }: { readonly constraint?: string }, error: unknown): AppError {
  // The bounds of partitions have no name.
  const unnamed = messageOf(error).startsWith("no partition")
    ? "no partition of the table takes the record"
    : "the table takes no such record";
  const reason = constraint === undefined ? unnamed : `it breaks the constraint ${constraint} of the table`;
  return refused(`The given data was invalid: ${reason}.`, error);
}

/**
 * Returns the messages for missing values. Where no rule of the mapping file allows a value, the
 * message does not ask for one.
 */
function missingIn(
  definition: Definition,
  operation: "create" | "update",
): (attribute: string, name: string) => string {
  const reached = reachedFields(definition, [operation]);
  return (attribute, name) =>
    operation === "create" && reached?.has(name) === false
      ? `The ${attribute} field has no value: the table gives it none, and no rule of createRules lets a request set it.`
      : `The ${attribute} field is required.`;
}

/**
 * Returns the error of a bad value. Names the field when only one field has the type that could not
 * read its text. Otherwise, names it when only one has the text that the server quotes.
 */
function refusedValue({ fields }: Definition, error: unknown, data: Row): AppError {
  const isRefused = refusedTypeOf(messageOf(error));
  // `messageOf` leaves values out.
  const [, quoted] = /"([^"]+)"/.exec(error instanceof Error ? error.message : "") ?? [];
  const ofType = fields.filter(({ native }) => native !== undefined && isRefused(native));
  const quoting = fields.filter(({ name, native }) => {
    const text = String(data[name]);
    return quoted !== undefined && (native === undefined ? text === quoted : text.includes(quoted));
  });
  const [field] = [ofType, quoting].find((found) => found.length === 1) ?? [];
  if (field === undefined)
    return refused("The given data was invalid: a column cannot hold its value.", error);
  const end =
    field.native === undefined
      ? "has a value that its column cannot hold"
      : `must be a valid ${field.native}`;
  return validationError({ [field.name]: [`The ${displayName(field.name)} field ${end}.`] }, error);
}

/**
 * Returns a test for the type that refused a value. Ranges of all types share one message, which
 * does not name the type. A `bit varying` is `varbit` in the files of an import.
 */
function refusedTypeOf(message: string): (native: string) => boolean {
  const [, type] =
    /^invalid input (?:syntax|value) for (?:type|enum) ([^:]+)/.exec(message) ??
    /^bit string .* type (.+)/.exec(message) ??
    /^(ltree) syntax error/.exec(message) ??
    [];
  const [, kind] = /^malformed ((?:multi)?range) literal/.exec(message) ?? [];
  const isBound = message.startsWith("range lower bound");
  return (native) =>
    native === type ||
    (native === "varbit" && type?.startsWith("bit varying") === true) ||
    (isBound && native.endsWith("range")) ||
    (kind !== undefined && /(?:multi)?range$/.exec(native)?.[0] === kind);
}

/** Returns the error of a right that the role of svc lacks. The server names the table only. */
function denied(what: string, { message }: { readonly message: string }, cause: unknown): AppError {
  return refused(`The database does not let this service ${what}: ${message}.`, cause);
}

/** Returns a 422 that names no field. */
function refused(message: string, cause?: unknown): AppError {
  return new AppError("validation.failed", message, { errors: {}, cause });
}

/** Returns the error of a write that the database left out without an error. */
export function leftOut(table: string, done: "keep" | "change" | "delete" = "keep"): AppError {
  return refused(`The database did not ${done} the record: a trigger or a rule of ${table} left it out.`);
}

/**
 * Handles violations of deferred constraints, which only the commit reports.
 *
 * @param refuse Throws the error of a write; its return value is thrown unchanged.
 */
export function refusingAtCommit(
  inTransaction: InTransaction,
  refuse: (error: unknown) => unknown,
): InTransaction {
  return async (work) => {
    let isDone = false;
    try {
      return await inTransaction(async (transaction) => {
        const result = await work(transaction);
        isDone = true;
        return result;
      });
    } catch (error) {
      if (isDone) refuse(error);
      throw error;
    }
  };
}

function columnsIn({ field }: { readonly field?: string }): readonly string[] {
  return field === undefined ? [] : [field];
}

/** Returns a 422 that names the fields of the columns. */
function refusedFields(
  definition: Definition,
  columns: readonly string[],
  messageFor: (attribute: string, name: string) => string,
  cause: unknown,
): AppError {
  const fields = columns.flatMap((column) => fieldsOf(definition, column));
  // An index on an expression may name no field.
  const named =
    fields.length > 0
      ? fields.map((name) => [name, displayName(name)])
      : columns.map((column) => [column, column.replaceAll("_", " ")]);
  return validationError(
    Object.fromEntries(named.map(([name = "", shown = ""]) => [name, [messageFor(shown, name)]])),
    cause,
  );
}

/**
 * Returns the fields of a column, or of an indexed expression such as `lower(email::text)`. Leaves
 * out its constants and types.
 */
function fieldsOf({ fields }: Definition, text: string): readonly string[] {
  const own = fields.filter(({ column }) => column === text);
  const words = new Set(text.replaceAll(/'[^']*'|::[a-z ]+/g, " ").split(/[^\w$]+/));
  const found = own.length > 0 ? own : fields.filter(({ column }) => words.has(column));
  return found.map(({ name }) => name);
}
