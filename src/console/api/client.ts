import { currentToken, endSession, renewToken } from "../app/session.ts";
import { place } from "../app/place.ts";
import { ApiError, toApiError, tooSlow } from "./api-error.ts";
import { timeLimit } from "./time-limit.ts";

const tooSlowMessage = `No answer came within ${timeLimit / 1_000} seconds.`;

export interface RequestOptions {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Body, which is sent as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Whether the answer is an endless stream. Its reader has its own timeout. */
  readonly isEndless?: boolean;
  /** Token to use instead of the session's, to try it before it is accepted. */
  readonly token?: string;
}

/** An answer with its status and entity tag. */
export interface Answer<T> {
  readonly data: T;
  readonly etag: string | null;
  readonly status: number;
}

/**
 * Requests `path` below the API's prefix, and returns the JSON of the answer.
 *
 * @throws {ApiError} For every answer other than 2xx, and without an answer.
 */
export async function api<T>(path: string, options: RequestOptions = {}): Promise<T> {
  return (await apiAnswer<T>(path, options)).data;
}

/** Requests like `api`, and also returns the status and the entity tag. */
export async function apiAnswer<T>(path: string, options: RequestOptions = {}): Promise<Answer<T>> {
  const response = await apiResponse(path, options);
  const text = await response.text().catch(noAnswer);
  return {
    data: (text === "" ? undefined : parseJson(text)) as T,
    etag: response.headers.get("ETag"),
    status: response.status,
  };
}

/** Returns the raw response, for streams. A 401 ends the session, and the sign-in opens. */
export async function apiResponse(path: string, options: RequestOptions): Promise<Response> {
  const token = options.token ?? currentToken();
  if (token === null) throw new ApiError({ status: 401, message: "You are signed out." });
  const response = await send(path, options, token);
  if (response.ok) return response;
  const error = await toApiError(response);
  if (response.status !== 401 || options.token !== undefined) throw error;
  const renewed = await renewToken(token);
  if (renewed === null) {
    endSession(token, error.message);
    throw error;
  }
  const again = await send(path, options, renewed);
  if (again.ok) return again;
  const refusal = await toApiError(again);
  // For a disabled user, the renewed token is refused too.
  if (again.status === 401) endSession(renewed, refusal.message);
  throw refusal;
}

async function send(path: string, options: RequestOptions, token: string): Promise<Response> {
  try {
    return await fetch(place.apiPath + path, {
      method: options.method ?? "GET",
      cache: "no-store",
      credentials: "omit",
      headers: {
        Authorization: `Bearer ${token}`,
        ...(options.body === undefined ? {} : { "Content-Type": "application/json" }),
        ...options.headers,
      },
      ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
      signal: signalOf(options),
    });
  } catch (error) {
    return noAnswer(error);
  }
}

/**
 * Returns the abort signal of a request. Its time limit covers the head and the whole body of the
 * answer.
 */
function signalOf({ signal, isEndless = false }: RequestOptions): AbortSignal | null {
  if (isEndless) return signal ?? null;
  const limit = AbortSignal.timeout(timeLimit);
  return signal === undefined ? limit : AbortSignal.any([signal, limit]);
}

/** Throws the error for an answer that did not arrive, or only in part. */
function noAnswer(error: unknown): never {
  if (error instanceof DOMException && error.name === "AbortError") throw error;
  if (error instanceof DOMException && error.name === "TimeoutError")
    throw new ApiError({ status: 0, code: tooSlow, message: tooSlowMessage });
  throw new ApiError({ status: 0, message: "The service does not answer." });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new ApiError({ status: 0, message: "The answer is no JSON: something in between gave it." });
  }
}

/**
 * Creates a key for the header `Idempotency-Key`. `crypto.randomUUID` does not exist over plain
 * http.
 */
export function newIdempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
