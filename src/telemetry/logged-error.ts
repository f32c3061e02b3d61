import { messageOf } from "../kit/errors.ts";

/** The parts of an error that the log keeps. */
interface LoggedError {
  readonly type: string;
  readonly message: string;
  /** The frames only, since the head of a stack repeats the message. */
  readonly stack?: string;
  readonly cause?: LoggedError;
  readonly errors?: readonly LoggedError[];
  readonly [fact: string]: unknown;
}

/**
 * Names and codes that contain no user data. All other properties stay out. Errors of pg contain
 * the row (`detail`). Errors of its pool contain the client with its password, and errors of got
 * the request.
 */
const facts = ["code", "severity", "schema", "table", "column", "constraint", "routine", "syscall"];

/** Limit of nested causes, because an error may be its own cause. */
const deepest = 5;

/** Returns the loggable parts of a thrown value; for a value that is not an error, its text. */
export function loggedError(thrown: unknown, depth = 1): LoggedError {
  if (!(thrown instanceof Error)) return { type: typeof thrown, message: messageOf(thrown) };
  const { cause } = thrown;
  const errors: readonly unknown[] = thrown instanceof AggregateError ? thrown.errors : [];
  const isDeep = depth >= deepest;
  return {
    type: thrown.name,
    message: messageOf(thrown),
    ...factsOf(thrown),
    stack: framesOf(thrown),
    ...(cause === undefined || isDeep ? {} : { cause: loggedError(cause, depth + 1) }),
    ...(errors.length === 0 || isDeep
      ? {}
      : { errors: errors.slice(0, deepest).map((error) => loggedError(error, depth + 1)) }),
  };
}

function factsOf(error: Error): Readonly<Record<string, string>> {
  const known = error as Error & Readonly<Record<string, unknown>>;
  return Object.fromEntries(
    facts.flatMap((fact) => (typeof known[fact] === "string" ? [[fact, known[fact]]] : [])),
  );
}

function framesOf(error: Error): string {
  const lines = (error.stack ?? "").split("\n");
  return lines.filter((line) => /^\s+at /.test(line)).join("\n");
}

/** Formats the error that ends the process, for people. */
export function describeError(thrown: unknown): string {
  const { type, message, stack, cause } = loggedError(thrown);
  const because = cause === undefined ? "" : `\ncaused by ${cause.type}: ${cause.message}`;
  return `${type}: ${message}\n${stack ?? ""}${because}`;
}
