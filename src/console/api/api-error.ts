/** Thrown for a failed request, with a message for people. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** Status of the answer; 0 when there was no answer. */
  readonly status: number = 0;
  /** The API's code, such as `record.changed`; "" without a code. */
  readonly code: string = "";
  /** Messages of a 422, by field. */
  readonly fields: Readonly<Record<string, readonly string[]>> = {};
  readonly requestId: string | null = null;
  readonly retryAfterSeconds: number | null = null;

  constructor({ message, ...parts }: Pick<ApiError, "message" | "status"> & Partial<ApiError>) {
    super(message);
    Object.assign(this, parts);
  }
}

/** Thrown when a file of the console could not be loaded. */
export class LoadError extends Error {
  constructor(cause: unknown) {
    const why = "The service does not answer, or has another version since the console was opened.";
    super(`${why} Load the page again.`, { cause });
  }
}

/** The console's own code for a request without an answer within the time limit. */
export const tooSlow = "console.too_slow";

/** Returns whether the request timed out. It is not retried, because a retry adds to the load. */
export function isTooSlow(error: unknown): boolean {
  return error instanceof ApiError && error.code === tooSlow;
}

/**
 * Returns whether the service did not answer, or answered that it is unavailable. A later try may
 * succeed.
 */
export function isAway(error: unknown): boolean {
  if (!(error instanceof ApiError) || isTooSlow(error)) return false;
  return error.status === 0 || error.status >= 502;
}

/** Statuses after which an earlier request with the same key may still be running or done. */
const undecided: ReadonlySet<number> = new Set([401, 408, 409, 429]);

/**
 * Returns whether a failed write may still have been done, or be running. A repeated request then
 * needs the same `Idempotency-Key`.
 */
export function mayBeDone(error: unknown): boolean {
  return isUnanswered(error) || (error instanceof ApiError && undecided.has(error.status));
}

/** Returns whether no answer shows the result of a request. */
export function isUnanswered(error: unknown): boolean {
  return !(error instanceof ApiError) || error.status < 400 || error.status >= 500;
}

export function isStatus(error: unknown, status: number): error is ApiError {
  return error instanceof ApiError && error.status === status;
}

/** Returns whether the record of the request no longer exists. */
export function isGone(error: unknown): boolean {
  return error instanceof ApiError && error.code === "record.not_found";
}

/**
 * Returns the messages of a 422 for a field and for the parts within it. Messages about parts get
 * their places, unless they already name them, as messages of rules do.
 */
export function faultsOf(error: unknown, name: string): readonly string[] {
  return fieldsOf(error)
    .filter(([path]) => isWithin(path, name))
    .flatMap(([path, messages]) =>
      messages.map((message) =>
        path === name || message.includes(path) ? message : `${path.slice(name.length + 1)}: ${message}`,
      ),
    );
}

/** Returns the messages of a 422 about none of the fields, with the names of their parts. */
export function otherFaultsOf(error: unknown, names: readonly string[]): readonly string[] {
  return fieldsOf(error)
    .filter(([path]) => !names.some((name) => isWithin(path, name)))
    .flatMap(([path, messages]) => messages.map((message) => `${path}: ${message}`));
}

function fieldsOf(error: unknown): readonly (readonly [path: string, messages: readonly string[]])[] {
  return error instanceof ApiError ? Object.entries(error.fields) : [];
}

function isWithin(path: string, name: string): boolean {
  return path === name || path.startsWith(`${name}.`);
}

/** Converts an answer other than 2xx to an error. */
export async function toApiError(response: Response): Promise<ApiError> {
  const body = await readFault(response);
  const retryAfter = Number(response.headers.get("Retry-After") ?? Number.NaN);
  return new ApiError({
    status: response.status,
    code: body.code ?? "",
    message: sentenceOf(response.status, body.code, body.message),
    fields: body.errors ?? {},
    requestId: response.headers.get("X-Request-Id"),
    retryAfterSeconds: Number.isFinite(retryAfter) ? retryAfter : null,
  });
}

interface FaultBody {
  readonly message?: string;
  readonly code?: string;
  readonly errors?: Readonly<Record<string, readonly string[]>>;
}

async function readFault(response: Response): Promise<FaultBody> {
  try {
    return (await response.json()) as FaultBody;
  } catch {
    // A proxy in between may answer in another format.
    return {};
  }
}

/** Sentences for codes whose message in the API is too short. */
const sentences: Readonly<Record<string, string>> = {
  "token.missing": "A token is needed.",
  "token.invalid": "The token is not valid here.",
  "token.expired": "The token has expired.",
  "token.revoked": "The token was revoked.",
  "user.disabled": "Your user is disabled. An admin can enable it.",
  "user.unknown": "The issuer knows you, and this service has no user for you. An admin creates one.",
  "user.email_taken": "Another user has your e-mail address. An admin sets your subject at that user.",
  "record.changed": "Somebody changed the record in the meantime. Nothing was written.",
};

/** Returns the API's own sentence, or a clearer one when that is too short. */
function sentenceOf(status: number, code: string | undefined, message: string | undefined): string {
  if (status >= 502) return "The service cannot answer at the moment.";
  if (status >= 500) return "The service had a fault. Its log says why, under the id of the request.";
  if (status === 413 && code === undefined) return "That is too large to be sent.";
  return sentences[code ?? ""] ?? message ?? `The service answered with the status ${status}.`;
}
