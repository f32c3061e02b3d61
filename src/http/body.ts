import { isUtf8 } from "node:buffer";
import bodyParser from "koa-bodyparser";
import { AppError, messageOf } from "../errors.ts";
import type { ApiContext } from "./state.ts";

export type JsonObject = Record<string, unknown>;

/** Deep enough for every real document, shallow enough for whatever recurses over it later. */
const maxDepth = 64;

/**
 * Reads the request's JSON object. Routes call it after the cheaper checks, so that nobody who is refused anyway makes
 * the service parse a body. No body counts as `{}`. `__proto__` keys are dropped.
 *
 * @throws AppError `request.media_type` for anything but plain JSON, `request.too_large` over the limit,
 *   `request.malformed` for what is not JSON, not UTF-8, not an object or nested deeper than 64 levels.
 */
export async function readJsonBody(ctx: ApiContext, limitBytes: number): Promise<JsonObject> {
  if (!hasBody(ctx)) return {};
  if (ctx.request.is("application/json") === false)
    throw new AppError("request.media_type", "The request body must be sent as application/json.");
  // Never inflated: a few kilobytes of gzip hold a gigabyte of JSON.
  const encoding = ctx.get("Content-Encoding").toLowerCase();
  if (encoding !== "" && encoding !== "identity")
    throw new AppError("request.media_type", `The content encoding ${encoding} is not supported.`);

  inviteBody(ctx, limitBytes);
  const body = await parse(ctx, limitBytes);
  if (ctx.request.rawBody === "") return {};
  if (typeof body !== "object" || body === null || Array.isArray(body))
    throw new AppError("request.malformed", "The request body must be a JSON object.");
  if (isDeeperThan(body, maxDepth))
    throw new AppError(
      "request.malformed",
      `The request body must not be nested deeper than ${maxDepth} levels.`,
    );
  return body as JsonObject;
}

function hasBody(ctx: ApiContext): boolean {
  return (
    ctx.req.headers["transfer-encoding"] !== undefined || Number(ctx.req.headers["content-length"] ?? 0) > 0
  );
}

/**
 * Asks for the body of a client that waits for it (`Expect: 100-continue`), unless it says that the body is too large. Node closes a
 * connection on which it was not asked for: it may come or not.
 */
function inviteBody({ req, res }: ApiContext, limitBytes: number): void {
  const isTooLarge = Number(req.headers["content-length"] ?? 0) > limitBytes;
  if (/100-continue/i.test(req.headers.expect ?? "") && !isTooLarge) res.writeContinue();
}

async function parse(ctx: ApiContext, limitBytes: number): Promise<unknown> {
  const chunks: Buffer[] = [];
  const keep = (chunk: Buffer): void => void chunks.push(chunk);
  // The parser decodes leniently; the bytes are looked at again only when its text holds the replacement character.
  ctx.req.on("data", keep);
  try {
    await createParser(limitBytes)(ctx, nothingNext);
  } finally {
    ctx.req.off("data", keep);
  }
  const text = ctx.request.rawBody;
  if (typeof text === "string" && text.includes("\uFFFD") && !isUtf8(Buffer.concat(chunks)))
    throw new AppError("request.malformed", "The request body must be encoded as UTF-8.");
  return ctx.request.body;
}

function createParser(limitBytes: number): ReturnType<typeof bodyParser> {
  const options = {
    enableTypes: ["json"],
    // The content type was checked by then.
    detectJSON: () => true,
    // The limit is a number of bytes, of which the parser's notation is a plain number.
    jsonLimit: String(limitBytes),
    strict: false,
    onProtoPoisoning: "remove",
    onerror(error: Error) {
      throw refusalOf(error, limitBytes);
    },
  };
  return bodyParser(options);
}

function refusalOf(error: unknown, limitBytes: number): AppError {
  const status = typeof error === "object" && error !== null && "status" in error ? error.status : undefined;
  if (status === 413)
    return new AppError(
      "request.too_large",
      `The request body must not be larger than ${limitBytes} bytes.`,
      {
        cause: error,
      },
    );
  const reason =
    error instanceof SyntaxError
      ? `The request body is not valid JSON: ${messageOf(error)}.`
      : "The request body could not be read.";
  return new AppError("request.malformed", reason, { cause: error });
}

async function nothingNext(): Promise<void> {}

function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  return Object.values(value).some((child) => isDeeperThan(child, levels - 1));
}
