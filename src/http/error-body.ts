import { Stream } from "node:stream";
import { AppError, type ErrorCode, type FieldErrors } from "../kit/errors.ts";
import { LargeAnswer, sendLarge } from "./large-answer.ts";
import type { ApiContext, ApiMiddleware } from "./state.ts";

interface ErrorBody {
  readonly message: string;
  /** Code of the error; missing for a 5xx. */
  readonly code?: ErrorCode;
  readonly errors?: FieldErrors;
}

/**
 * Returns the error body for the client: for a 5xx only `Server Error` (docs/errors.md, "Errors").
 */
export function errorBodyOf({ status, message, code, errors }: AppError): ErrorBody {
  if (status >= 500) return { message: "Server Error" };
  return { message, code, ...(errors === undefined ? {} : { errors }) };
}

/**
 * Turns answers into JSON text, and errors into error answers. No other code does either.
 *
 * @param isUnavailable Distinguishes an unreachable database or broker (503) from a fault of the
 *   service (500).
 */
export function createErrorRenderer(isUnavailable: (error: unknown) => boolean): ApiMiddleware {
  return async (ctx, next) => {
    try {
      await next();
      serialise(ctx);
    } catch (thrown: unknown) {
      const error = appErrorOf(thrown, isUnavailable);
      // An overload is not logged, because many lines without a cause would add to it.
      if (error.status >= 500 && error.code !== "server.overloaded")
        ctx.state.log().error({ err: error.cause ?? error }, "request failed");
      ctx.state.errorCode = error.code;
      ctx.status = error.status;
      // The tag belongs to the answer that the error replaces.
      ctx.remove("ETag");
      ctx.set(error.headers);
      ctx.body = errorBodyOf(error);
      serialise(ctx);
    }
  };
}

/**
 * Writes the body as JSON. Koa does not, so that an unserialisable value is an error like any
 * other.
 */
function serialise(ctx: ApiContext): void {
  const { body } = ctx;
  if (body instanceof LargeAnswer) {
    account(ctx, { size: body.bytes, memory: body.bytes });
    sendLarge(ctx, body);
    return;
  }
  const isText = typeof body === "string";
  if (!isText && (typeof body !== "object" || body === null)) return;
  if (Buffer.isBuffer(body) || body instanceof Stream) return;
  const text = isText ? body : JSON.stringify(body);
  if (!isText) ctx.type = "json";
  // As text, the answer to a slow reader would be held three times: with its head, and as bytes.
  ctx.body = text.length > longestText ? Buffer.from(text) : text;
  account(ctx, { size: text.length, memory: memoryOfAnswer(text) });
}

/**
 * Limit in characters above which an answer becomes bytes at once. Shorter answers are sent faster
 * as text.
 */
const longestText = 16 * 1024;

/**
 * Bytes of memory for each byte of an answer in preparation: its parts, the whole, and its bytes.
 */
export const memoryPerAnsweredByte = 3;

/** Returns the bytes of memory that an answer takes until the client has received it. */
export function memoryOfAnswer(text: string): number {
  const bytes = Buffer.byteLength(text);
  return text.length > longestText ? bytes : bytes * memoryPerAnsweredByte;
}

/**
 * Sets the reservation to the answer, because the request now holds nothing else. A read is refused
 * when there is no memory for its answer. A write is not, because it may be committed. A refused
 * request keeps the reservation of its body, if it has one.
 */
function account(
  { state, method }: ApiContext,
  { size, memory: bytes }: { readonly size: number; readonly memory: number },
): void {
  const { memory, turn, errorCode } = state as Partial<typeof state>;
  if (turn !== undefined) turn.madeBytes += size;
  if (errorCode !== undefined) return;
  if (method === "GET" || method === "HEAD") memory?.settle(bytes);
  else memory?.hold(bytes);
}

function appErrorOf(thrown: unknown, isUnavailable: (error: unknown) => boolean): AppError {
  if (thrown instanceof AppError) return thrown;
  if (isUnavailable(thrown)) return new AppError("server.unavailable", "Server Error", { cause: thrown });
  return new AppError("server.error", "Server Error", { cause: thrown });
}

/** Returns the 404 error of a path without a route. */
export function unknownRoute(path: string): AppError {
  return new AppError("route.not_found", `The route ${routeName(path)} could not be found.`);
}

/** Order of the methods in messages, which is that of the specification. */
const methodOrder = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/**
 * Answers a method that a known path does not offer: `OPTIONS` with the offered methods, others
 * with 405.
 *
 * @param allowed Methods of the path, `HEAD` included, in any order.
 * @throws AppError `operation.unsupported`, with `Allow` (RFC 9110, 15.5.6).
 */
export function answerUnsupported(ctx: ApiContext, allowed: readonly string[]): void {
  const allow = methodOrder.filter((method) => allowed.includes(method)).join(", ");
  if (ctx.method !== "OPTIONS")
    throw new AppError(
      "operation.unsupported",
      `The ${ctx.method} method is not supported for route ${routeName(ctx.path)}. Supported methods: ${allow}.`,
      { headers: { Allow: allow } },
    );
  ctx.set("Allow", allow);
  ctx.status = 204;
}

function routeName(path: string): string {
  return path.replace(/^\/+/, "") || "/";
}
