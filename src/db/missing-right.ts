import { codeOf, messageOf, OperatorError } from "../kit/errors.ts";

const insufficientPrivilege = "42501";

/** Where the rights are listed, for messages about one that is missing. */
const where = '"Two roles" in docs/production.md has the rights';

/**
 * Returns the end of a message about a step that the role may not take; otherwise an empty text.
 */
export function ownerHint(error: unknown): string {
  return codeOf(error) === insufficientPrivilege
    ? `. Migrate as the role that owns the database and its tables, or give it the right: ${where}`
    : "";
}

/**
 * Throws the error of the settings of a connection. Gives the remedy for a role whose changes would
 * make no events and that may not change this setting. PostgreSQL's own message only names the
 * setting.
 */
export function refuseReplicaRole(error: unknown): never {
  if (codeOf(error) !== insufficientPrivilege || !messageOf(error).includes("session_replication_role"))
    throw error;
  throw new OperatorError(
    "The role of database.url (DATABASE_URL) has session_replication_role = replica, with which its changes make no events, and may not change it. As an administrator: ALTER ROLE <role> SET session_replication_role = origin",
    { cause: error },
  );
}

/** Returns an OperatorError for a right that the role lacks; any other error as it is. */
export function withMissingRight(error: unknown): unknown {
  if (codeOf(error) !== insufficientPrivilege) return error;
  return new OperatorError(
    `The role of database.url (DATABASE_URL) lacks a right: ${messageOf(error)}. Give it that right; ${where}.`,
    { cause: error },
  );
}
