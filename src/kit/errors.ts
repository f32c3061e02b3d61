import { safeMessage } from "./safe-message.ts";

/**
 * Every error code of the service, with its HTTP status. A test compares the documented table with
 * this one.
 */
export const errorStatus = {
  "request.malformed": 400,
  "token.missing": 401,
  "token.invalid": 401,
  "token.expired": 401,
  "token.revoked": 401,
  "user.disabled": 401,
  "user.unknown": 401,
  "user.email_taken": 401,
  "token.scope": 403,
  "user.forbidden": 403,
  "record.forbidden": 403,
  "delivery.forbidden": 403,
  "route.not_found": 404,
  "resource.not_found": 404,
  "record.not_found": 404,
  "webhook.not_found": 404,
  "delivery.not_found": 404,
  "replay.not_found": 404,
  "event.not_found": 404,
  "token.not_found": 404,
  "user.not_found": 404,
  "operation.unsupported": 405,
  "request.timeout": 408,
  "record.referenced": 409,
  "replay.conflict": 409,
  "idempotency.in_progress": 409,
  "record.changed": 412,
  "user.last_admin": 409,
  "request.too_large": 413,
  "record.too_large": 413,
  "request.target_too_long": 414,
  "request.media_type": 415,
  "validation.failed": 422,
  "token.refused": 422,
  "webhook.refused": 422,
  "retry.refused": 422,
  "replay.refused": 422,
  "idempotency.mismatch": 422,
  "rate.exceeded": 429,
  "idempotency.exhausted": 429,
  "request.headers_too_large": 431,
  "server.error": 500,
  "server.unavailable": 503,
  "server.overloaded": 503,
  "issuer.unavailable": 503,
} as const;

/** A code by which clients distinguish errors. */
export type ErrorCode = keyof typeof errorStatus;

/** Messages by field name (dot keys for nested values), in the order in which the rules failed. */
export type FieldErrors = Readonly<Record<string, readonly string[]>>;

/** Options of an AppError in addition to its code and message. */
interface AppErrorOptions {
  /** Cause for the log only, never shown. */
  readonly cause?: unknown;
  readonly errors?: FieldErrors;
  /** Extra response headers, for example `Allow`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A fault of a request, with a message that the client may see. */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly errors: FieldErrors | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ErrorCode, message: string, options: AppErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "AppError";
    this.code = code;
    this.errors = options.errors;
    this.headers = options.headers ?? {};
  }

  get status(): number {
    return errorStatus[this.code];
  }
}

/** Limit of the fields that a 422 names. One body of 30 KB has 60,000 faulty ones. */
export const mostNamedFields = 1000;

/**
 * Returns a 422 whose summary is the first message and the number of the others, as in Laravel.
 * Names the first `mostNamedFields` fields only.
 */
export function validationError(given: FieldErrors, cause?: unknown): AppError {
  const errors = Object.fromEntries(Object.entries(given).slice(0, mostNamedFields));
  const messages = Object.values(errors).flat();
  const more = messages.length - 1;
  const first = messages[0] ?? "The given data was invalid.";
  const summary = more > 0 ? `${first} (and ${more} more ${more === 1 ? "error" : "errors"})` : first;
  return new AppError("validation.failed", summary, { errors, cause });
}

/** Returns the 403 of a request that its user may not make, with Laravel's message. */
export function unauthorizedError(
  code: "user.forbidden" | "record.forbidden" | "delivery.forbidden",
): AppError {
  return new AppError(code, "This action is unauthorized.");
}

/** Returns the 503 of a request for which there is no capacity now. */
export function overloadedError(retryAfterSeconds = 1): AppError {
  const headers = { "Retry-After": String(retryAfterSeconds) };
  return new AppError("server.overloaded", "Server Error", { headers });
}

/**
 * A fault of the start or of an operator's input. Its lines are shown on stderr, without a stack.
 */
export class OperatorError extends Error {
  /** The faults one by one; the message when there is only one fault. */
  readonly faults: readonly string[];

  constructor(
    message: string,
    { faults, ...options }: ErrorOptions & { readonly faults?: readonly string[] } = {},
  ) {
    super(message, options);
    this.name = "OperatorError";
    this.faults = faults ?? [message];
  }
}

/**
 * Returns the `code` of an error of Node, PostgreSQL or another library: `ENOENT`, `42P01`.
 * Undefined without one.
 */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/**
 * Returns the message of a thrown value, without data of users that it may quote (see
 * `safeMessage`).
 */
export function messageOf(error: unknown): string {
  // Node.js tries each address of a name, and joins their errors in one without a message.
  if (error instanceof AggregateError && error.message === "")
    return error.errors.map((one) => messageOf(one)).join("; ");
  return error instanceof Error ? safeMessage(error) : String(error);
}

/**
 * Returns the message with that of its cause, which is more specific for an error of a code module.
 */
export function messageWithCause(error: unknown): string {
  const { cause } = error instanceof Error ? error : {};
  return cause === undefined ? messageOf(error) : `${messageOf(error)}: ${messageOf(cause)}`;
}
