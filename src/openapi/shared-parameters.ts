import type { Parameter } from "./operation.ts";

const entityTag = '(W/)?"[!#-~]*"';

/** Headers of several operations, by their name in the components of the document. */
export const sharedHeaders = {
  IdempotencyKey: {
    name: "Idempotency-Key",
    in: "header",
    description:
      "Makes the request safe to send again: for 24 h, the same key with the same request gets the first answer again.",
    schema: { type: "string", pattern: "^[!-~]{1,255}$" },
  },
  IfMatch: {
    name: "If-Match",
    in: "header",
    description: "Entity tags, or *. 412 when the record has none of them.",
    schema: { type: "string", pattern: `^(\\*|${entityTag}(, ?${entityTag})*)$` },
  },
  IfNoneMatch: {
    name: "If-None-Match",
    in: "header",
    description: "Entity tags, or *. 304 for a read, 412 for a write, when the record has one of them.",
    schema: { type: "string" },
  },
} as const satisfies Readonly<Record<string, Parameter>>;

export const idempotencyKey: readonly Parameter[] = [sharedHeaders.IdempotencyKey];
export const readConditions: readonly Parameter[] = [sharedHeaders.IfNoneMatch];
export const writeConditions: readonly Parameter[] = [sharedHeaders.IfMatch, sharedHeaders.IfNoneMatch];

export const answerHeaders = {
  "X-Request-Id": {
    description: "Id of the request in the log: that of the request, or a new one.",
    required: true,
    schema: { type: "string" },
  },
  ETag: { description: "Entity tag of what the answer shows.", required: true, schema: { type: "string" } },
  Location: {
    description: "Absolute URL of what was made.",
    required: true,
    schema: { type: "string", format: "uri" },
  },
  "Idempotent-Replayed": {
    description: "On an answer that was kept for the Idempotency-Key.",
    schema: { type: "string", const: "true" },
  },
  "Retry-After": { description: "Seconds until the next try makes sense.", schema: { type: "string" } },
  "WWW-Authenticate": {
    description: "Why the token was refused (RFC 6750).",
    required: true,
    schema: { type: "string" },
  },
} as const;

/** Further headers of answers with `http.rateLimit`. */
export const rateLimitHeaders = {
  "RateLimit-Limit": { description: "Requests of the user in each window.", schema: { type: "string" } },
  "RateLimit-Remaining": {
    description: "Requests that are left in this window.",
    schema: { type: "string" },
  },
  "RateLimit-Reset": { description: "Seconds until the next window.", schema: { type: "string" } },
  RateLimit: { description: "What is left, as the IETF draft 10 has it.", schema: { type: "string" } },
  "RateLimit-Policy": { description: "The limit, as the IETF draft 10 has it.", schema: { type: "string" } },
} as const;
