import { safeMessage } from "./safe-message.ts";

/** Every error code that the service answers with, and the HTTP status of each. The README's error table is held to this one by a test. */
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
  "token.not_found": 404,
  "user.not_found": 404,
  "operation.unsupported": 405,
  "request.timeout": 408,
  "record.referenced": 409,
  "user.last_admin": 409,
  "request.too_large": 413,
  "record.too_large": 413,
  "request.target_too_long": 414,
  "request.media_type": 415,
  "validation.failed": 422,
  "webhook.refused": 422,
  "retry.refused": 422,
  "rate.exceeded": 429,
  "request.headers_too_large": 431,
  "server.error": 500,
  "server.unavailable": 503,
  "server.overloaded": 503,
  "issuer.unavailable": 503,
} as const;

export type ErrorCode = keyof typeof errorStatus;

/** Field name (dot keys for nested values) to its messages, in the order in which the rules failed. */
export type FieldErrors = Readonly<Record<string, readonly string[]>>;

export interface AppErrorOptions {
  /** For the log only; never shown. */
  readonly cause?: unknown;
  readonly errors?: FieldErrors;
  /** Extra response headers, for example `Allow`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A fault with a message that is fit to be shown to whoever made the request. */
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

/**
 * A 422 with the summary of all messages: the first one, then how many more there are
 * (`reference/validation.md`, "422 summary").
 */
export function validationError(errors: FieldErrors, cause?: unknown): AppError {
  const messages = Object.values(errors).flat();
  const more = messages.length - 1;
  const first = messages[0] ?? "The given data was invalid.";
  const summary = more > 0 ? `${first} (and ${more} more ${more === 1 ? "error" : "errors"})` : first;
  return new AppError("validation.failed", summary, { errors, cause });
}

/** A start-up or operator fault: one or more lines to show on stderr, without a stack. */
export class OperatorError extends Error {
  /** What is wrong, one by one, when it is more than one thing; else the message. */
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

/** The message of anything that was thrown, without what it may have caught of somebody's data (see `safeMessage`). */
export function messageOf(error: unknown): string {
  return error instanceof Error ? safeMessage(error) : String(error);
}
