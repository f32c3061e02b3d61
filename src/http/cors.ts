import cors from "@koa/cors";
import type { ApiMiddleware } from "./state.ts";

/** Headers that a page may read from an answer. */
const exposedHeaders = [
  "Allow",
  "ETag",
  "Idempotent-Replayed",
  "Location",
  "RateLimit",
  "RateLimit-Limit",
  "RateLimit-Policy",
  "RateLimit-Remaining",
  "RateLimit-Reset",
  "Retry-After",
  "WWW-Authenticate",
  "X-Request-Id",
];

/**
 * Lets the pages of `origins` call the API, and answers their preflights, which carry no token.
 * Pages of other origins get no header, and their browsers refuse the answer. Never allows
 * credentials: the API knows tokens, not cookies.
 *
 * @param origins As browsers send them (`https://app.example.com`); `*` for every page.
 */
export function createCors(origins: readonly string[]): ApiMiddleware {
  const isForAll = origins.includes("*");
  const allowed = new Set(origins);
  return cors({
    // An empty origin gets no header.
    origin: isForAll ? "*" : (ctx) => (allowed.has(ctx.get("Origin")) ? ctx.get("Origin") : ""),
    allowMethods: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
    allowHeaders: [
      "Authorization",
      "Content-Type",
      "Idempotency-Key",
      "If-Match",
      "If-None-Match",
      "Last-Event-ID",
      "X-Request-Id",
      "traceparent",
      "tracestate",
    ],
    exposeHeaders: exposedHeaders,
    maxAge: 600,
    // Errors become answers in an outer middleware, which keeps the headers that are already set.
    keepHeadersOnError: false,
  });
}
