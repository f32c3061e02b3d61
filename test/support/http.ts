import { fullGrant, makeCaller } from "./callers.ts";
import { request as send, type IncomingHttpHeaders } from "node:http";
import { Writable } from "node:stream";
import { pino } from "pino";
import { readJsonBody } from "../../src/http/body.ts";
import type { ApiContext, ApiMiddleware } from "../../src/http/state.ts";
import type { Log } from "../../src/telemetry/log.ts";

/** An authentication that treats every request as Ada's. */
export const asAda: ApiMiddleware = (ctx, next) => {
  ctx.state.caller = makeCaller({ id: 7, name: "Ada", email: "ada@example.com", isAdmin: false });
  ctx.state.grant = fullGrant;
  return next();
};

/** Reads the body of a request within this limit of bytes. */
export function readWithin(ctx: ApiContext, limitBytes: number): ReturnType<typeof readJsonBody> {
  ctx.state.bodyLimitBytes = limitBytes;
  return readJsonBody(ctx);
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body as JSON; undefined when it is empty. */
  readonly json: unknown;
}

export interface Call {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/**
 * Makes one request over real HTTP. Unlike fetch, it sends the path and the headers exactly as
 * given.
 */
export function call(
  port: number,
  path: string,
  { method = "GET", headers = {}, body }: Call = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const length =
      body === undefined || "Transfer-Encoding" in headers
        ? {}
        : { "Content-Length": String(Buffer.byteLength(body)) };
    const request = send(
      { host: "127.0.0.1", port, path, method, headers: { ...length, ...headers }, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const text = Buffer.concat(chunks).toString();
          const isJson = response.headers["content-type"]?.includes("json") === true && text !== "";
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text,
            json: isJson ? JSON.parse(text) : undefined,
          });
        });
      },
    );
    request.on("error", reject);
    request.end(body);
  });
}

/** Returns a log, and the lines that it wrote. */
export function createMemoryLog(): { readonly log: Log; readonly lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = [];
  const log = pino(
    { level: "debug" },
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        lines.push(JSON.parse(chunk.toString()) as Record<string, unknown>);
        done();
      },
    }),
  );
  return { log, lines };
}
