import { setTimeout as sleep } from "node:timers/promises";
import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import bodyParser from "koa-bodyparser";
import { AppError, messageOf, overloadedError, type ErrorCode } from "../kit/errors.ts";
import { getOrSet } from "../kit/group-by.ts";
import { isObject } from "../kit/is-object.ts";
import { runPart } from "../kit/parts.ts";
import { createTurns } from "../kit/turns.ts";
import { memoryPerBodyByte } from "../kit/memory-weights.ts";
import { createBodyWeight } from "./body-weight.ts";
import { checkSender } from "./sender.ts";
import type { ApiContext, Turn } from "./state.ts";

/** A JSON object with unchecked members. */
export type JsonObject = Record<string, unknown>;

/**
 * Bytes reserved beyond the known size, so that an ordinary body or its next chunk needs no second
 * reservation.
 */
const spareBytes = 256 * 1024;
/**
 * The same for small bodies: for each byte, and at least. With 256 KiB, four bodies of 100 bytes
 * exceeded what counts as little. A user with more of them got 503 beside large ones of others.
 */
const [spareOfByte, leastSpareBytes] = [64, 32 * 1024];

/** Bytes expected of a body of unknown length before its first chunk. */
const firstReservation = 16 * 1024;

/** Limits in bytes and time for reading the rest of a refused body. */
const drainLimit = { bytes: 16 * 1024 * 1024, ms: 2000 };

/**
 * Turns for reading refused bodies: four per user at a time. When the memory is full, hundreds are
 * refused at once. Reading them all would delay every other request.
 */
const drains = createTurns(4);

/** Bodies above this size are parsed and checked in separate turns of the event loop. */
const largeBytes = 64 * 1024;

/** Limit of the depth: enough for every real document, and safe for recursive code. */
const maxDepth = 64;

/**
 * Reads the request's JSON object. Routes call it after the cheaper checks, so that a refused
 * request costs no parsing. A missing body counts as `{}`.
 *
 * @throws AppError 401 when the sender's authentication does not hold any more.
 * @throws AppError `request.media_type` for anything but plain JSON, `request.too_large` over the
 *   limit; `request.malformed` for a body that is not JSON, not UTF-8, not an object, or deeper
 *   than 64 levels; `server.overloaded` when there is no memory for the body.
 */
export async function readJsonBody(ctx: ApiContext): Promise<JsonObject> {
  if (!hasBody(ctx)) return {};
  if (ctx.request.is("application/json") === false) {
    if (mayBeEmpty(ctx)) {
      const isNone = await ctx.state.turn.pause(() => isEmpty(ctx));
      await checkSender(ctx);
      if (isNone) return {};
    }
    throw new AppError("request.media_type", "The request body must be sent as application/json.");
  }
  // Compressed bodies are refused, because a few kilobytes of gzip hold a gigabyte of JSON.
  const encoding = ctx.get("Content-Encoding").toLowerCase();
  if (encoding !== "" && encoding !== "identity")
    throw new AppError("request.media_type", `The content encoding ${encoding} is not supported.`);

  const body = await ctx.state.turn.pause(() => read(ctx));
  // The check begins in a later turn, so that other work can run. `setImmediate` would continue in
  // this one.
  if (ctx.state.turn.readBytes > largeBytes) await sleep(0);
  // A body may take 30 s to arrive. Meanwhile a token may be revoked, or a user disabled.
  await checkSender(ctx);
  // The answers to earlier writes may leave no memory for the answer to this one.
  await ctx.state.memory.reserve(0);
  if (!isObject(body)) throw new AppError("request.malformed", "The request body must be a JSON object.");
  return body;
}

function hasBody(ctx: ApiContext): boolean {
  return (
    ctx.req.headers["transfer-encoding"] !== undefined || Number(ctx.req.headers["content-length"] ?? 0) > 0
  );
}

/**
 * Returns whether a body has no type and an unknown length. Some proxies add an empty body to a
 * request without one.
 */
function mayBeEmpty({ req }: ApiContext): boolean {
  const { "content-type": type, "content-length": length, expect } = req.headers;
  return type === undefined && length === undefined && expect === undefined;
}

/** Returns whether a body is empty, as soon as its first part has arrived. */
async function isEmpty({ req, res }: ApiContext): Promise<boolean> {
  if (res.destroyed) return false;
  await new Promise<void>((resolve) => {
    const end = (): void => {
      req.off("readable", end).off("end", end);
      res.off("close", end);
      resolve();
    };
    // Without content, there is no `readable`.
    req.once("readable", end).once("end", end);
    res.once("close", end);
  });
  return req.read() === null && req.complete;
}

/** Reserves the memory, asks for the body and parses it. An empty one counts as `{}`. */
async function read(ctx: ApiContext): Promise<unknown> {
  const { req, res } = ctx;
  const { bodyLimitBytes: limitBytes } = ctx.state;
  const size = req.headers["content-length"];
  const expectedBytes = Math.min(size === undefined ? firstReservation : Number(size), limitBytes);
  // A client that sends `Expect: 100-continue` and a size above the limit is not asked for its
  // body. Node.js then closes the connection, because the body may still come.
  const waits = /100-continue/i.test(req.headers.expect ?? "");
  const isComing = !waits || Number(size ?? 0) <= limitBytes;
  try {
    const spare = Math.min(spareBytes, leastSpareBytes + expectedBytes * spareOfByte);
    const reserved = expectedBytes * memoryPerBodyByte + spare;
    await ctx.state.memory.reserve(reserved);
    if (waits && isComing) res.writeContinue();
    return await parse(ctx, reserved);
  } catch (error) {
    if (error instanceof AppError && leavesRest.has(error.code)) {
      // Unread bytes would precede the next request on the connection.
      res.setHeader("Connection", "close");
      // A client that has left sends no more data, and no end.
      if (isComing && !res.destroyed) await drainInTurn(ctx);
    }
    throw error;
  }
}

/** Errors that refuse a body before its end. */
const leavesRest: ReadonlySet<ErrorCode> = new Set(["request.too_large", "server.overloaded"]);

/** @param reservedBefore Bytes of memory that were reserved for the known size of the body. */
async function parse(ctx: ApiContext, reservedBefore: number): Promise<unknown> {
  const { req } = ctx;
  const { memory, turn, bodyLimitBytes: limitBytes } = ctx.state;
  const chunks: Buffer[] = [];
  const body = createBodyWeight();
  let received = 0;
  let reserved = reservedBefore;
  const failing = createFailing(ctx);
  /**
   * Collects a chunk. Pauses a body that weighs more than its reservation, until the reservation is
   * larger.
   */
  const keep = (chunk: Buffer): void => {
    chunks.push(chunk);
    received += chunk.length;
    turn.readBytes += chunk.length;
    if (received > limitBytes) return;
    const weight = body.add(chunk);
    if (weight <= reserved) return;
    if (weight > memory.mostBytes) {
      failing.fail(tooManyValues());
      return;
    }
    reserved = weight + spareBytes;
    req.pause();
    memory.reserve(reserved).then(
      () => req.resume(),
      (error: unknown) => failing.fail(error),
    );
  };
  const parser = getOrSet(parsers, limitBytes, () => createParser(limitBytes));
  const stopLending = memory.lend(() => failing.fail(overloadedError()));
  req.on("data", keep);
  try {
    await Promise.race([parser(ctx, nothingNext), failing.failed]);
  } finally {
    req.off("data", keep);
    stopLending();
    failing.end();
  }
  const { rawBody: text = "" } = ctx.request as { readonly rawBody?: string };
  if (text === "") return {};
  const parseText = (): unknown => valueOf(text, limitBytes);
  // Bodies that end at the same time are parsed in turn: each takes up to 40 ms.
  const isLarge = text.length > largeBytes;
  const value = isLarge ? await runPart(ctx.state.caller.id, parseText) : parseText();
  // The parser decodes leniently. The bytes are checked only when its text has the replacement
  // character.
  if (text.includes("\uFFFD") && !isUtf8(Buffer.concat(chunks)))
    throw new AppError("request.malformed", "The request body must be encoded as UTF-8.");
  if (body.depth() > maxDepth)
    throw new AppError(
      "request.malformed",
      `The request body must not be nested deeper than ${maxDepth} levels.`,
    );
  return value;
}

function valueOf(text: string, limitBytes: number): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw refusalOf(error, limitBytes);
  }
}

/** The early end of the read of a body, before its parser ends. */
interface Failing {
  /**
   * Rejects after `fail`. Also rejects when the client has left. The parser does not report that
   * while the body is complete but not read yet.
   */
  readonly failed: Promise<never>;
  /** Also ends the parser, which would otherwise go on collecting. */
  fail(error: unknown): void;
  end(): void;
}

function createFailing({ req, res }: ApiContext): Failing {
  let reject: ((error: unknown) => void) | undefined;
  const failed = new Promise<never>((_, refuse) => (reject = refuse));
  const leave = (): void =>
    reject?.(new AppError("request.malformed", "The connection was closed before the request was read."));
  if (res.destroyed) leave();
  else res.once("close", leave);
  return {
    failed,
    fail(error) {
      reject?.(error);
      // Listens, because an error without a listener ends the process.
      req.on("error", () => undefined).emit("error", error);
    },
    end: () => void res.off("close", leave),
  };
}

async function drainInTurn({ req, res, state }: ApiContext): Promise<void> {
  const { id } = state.caller;
  if (!(await drains.takeWithin(id, drainLimit.ms))) return;
  try {
    if (!res.destroyed) await drain(req, state.turn);
  } finally {
    drains.leave(id);
  }
}

/**
 * Discards the rest of a body, within limits, so that its sender reads the answer and gets no
 * reset.
 */
function drain(req: IncomingMessage, turn: Turn): Promise<void> {
  return new Promise((resolve) => {
    let left = drainLimit.bytes;
    const end = (): void => {
      clearTimeout(timer);
      req.off("data", count).off("end", end).off("close", end);
      resolve();
    };
    const count = (chunk: Buffer): void => {
      left -= chunk.length;
      turn.readBytes += chunk.length;
      if (left < 0) end();
    };
    const timer = setTimeout(end, drainLimit.ms);
    req.on("data", count).once("end", end).once("close", end);
    req.resume();
  });
}

function tooManyValues(): AppError {
  return new AppError("request.too_large", "The request body holds too many values for http.memoryBudget.");
}

/** Cached readers of bodies, because creating one takes longer than reading a small body. */
const parsers = new Map<number, ReturnType<typeof bodyParser>>();

function createParser(limitBytes: number): ReturnType<typeof bodyParser> {
  const options = {
    enableTypes: ["text"],
    extendTypes: { text: ["application/json"] },
    // Passes the limit as a plain number, which the parser's notation takes as bytes.
    textLimit: String(limitBytes),
    onerror(error: Error) {
      throw refusalOf(error, limitBytes);
    },
  };
  return bodyParser(options);
}

function refusalOf(error: unknown, limitBytes: number): AppError {
  if (error instanceof AppError) return error;
  const status = typeof error === "object" && error !== null && "status" in error ? error.status : undefined;
  if (status === 413)
    return new AppError(
      "request.too_large",
      `The request body must not be larger than ${limitBytes} bytes.`,
      { cause: error },
    );
  const reason =
    error instanceof SyntaxError
      ? `The request body is not valid JSON: ${messageOf(error)}.`
      : "The request body could not be read.";
  return new AppError("request.malformed", reason, { cause: error });
}

async function nothingNext(): Promise<void> {}
