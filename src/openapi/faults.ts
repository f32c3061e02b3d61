import { errorStatus, type ErrorCode } from "../kit/errors.ts";
import { schemaNamed, type JsonSchema } from "./json-schema.ts";
import type { Operation } from "./operation.ts";

const ofEvery: readonly ErrorCode[] = [
  "request.malformed",
  "request.timeout",
  "request.target_too_long",
  "request.headers_too_large",
  "server.error",
  "server.unavailable",
  "server.overloaded",
];

/** Error codes of requests that need a token. */
const ofToken: readonly ErrorCode[] = [
  "token.missing",
  "token.invalid",
  "token.expired",
  "token.revoked",
  "user.disabled",
  "rate.exceeded",
];

/** Further error codes when the service accepts JWTs. */
const ofJwt: readonly ErrorCode[] = ["user.unknown", "user.email_taken", "issuer.unavailable"];

const ofBody: readonly ErrorCode[] = ["request.too_large", "request.media_type", "validation.failed"];

/** Error codes of requests with an Idempotency-Key. */
const ofKey: readonly ErrorCode[] = [
  "idempotency.in_progress",
  "idempotency.mismatch",
  "idempotency.exhausted",
  "record.too_large",
];

/** Methods of writes, which refuse conditions that do not hold. */
const conditional: ReadonlySet<Operation["method"]> = new Set(["put", "patch", "delete"]);

export function faultsOf(
  { method, scope, body, errors = [] }: Operation,
  { takesJwts, takesKey }: { readonly takesJwts: boolean; readonly takesKey: boolean },
): readonly ErrorCode[] {
  const ofScope: readonly ErrorCode[] = scope === "any" ? [] : ["token.scope"];
  const ofAdmin: readonly ErrorCode[] = scope === "admin" ? ["user.forbidden"] : [];
  // Every operation refuses parameters of lists that it does not take.
  const parameters: readonly ErrorCode[] = ["validation.failed"];
  const token = [...ofToken, ...(takesJwts ? ofJwt : []), ...ofScope, ...ofAdmin, ...parameters];
  const ofCondition: readonly ErrorCode[] = conditional.has(method) ? ["record.changed"] : [];
  const sent = [...(body === undefined ? [] : ofBody), ...(takesKey ? ofKey : []), ...ofCondition];
  return [...new Set([...ofEvery, ...(scope === "none" ? [] : token), ...sent, ...errors])];
}

const message: JsonSchema = { type: "string", description: "A sentence that says what was wrong." };

/** Schemas of the bodies of errors (docs/errors.md, "Errors"). */
export const faultSchemas: Readonly<Record<string, JsonSchema>> = {
  Fault: {
    type: "object",
    required: ["message", "code"],
    properties: {
      message,
      code: { type: "string", description: "Says what was wrong, for programs." },
      errors: {
        type: "object",
        description: "Messages by field, with dots for what is within it, or by parameter as it was written.",
        additionalProperties: { type: "array", items: { type: "string" } },
      },
    },
  },
  ServerFault: {
    type: "object",
    required: ["message"],
    properties: { message: { type: "string", const: "Server Error" } },
  },
};

const retried: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "rate.exceeded",
  "idempotency.in_progress",
  "server.overloaded",
  "issuer.unavailable",
]);

/**
 * Groups codes by status: each status of an operation has one response, with its name in the
 * components.
 */
export function faultResponses(
  codes: readonly ErrorCode[],
): readonly { readonly status: number; readonly name: string; readonly response: JsonSchema }[] {
  const statuses = [...new Set(codes.map((code) => errorStatus[code]))].toSorted((a, b) => a - b);
  return statuses.map((status) => {
    const here = codes.filter((code) => errorStatus[code] === status).toSorted();
    return { status, name: [status, ...here].join("-"), response: responseOf(status, here) };
  });
}

function responseOf(status: number, codes: readonly ErrorCode[]): JsonSchema {
  const names = ["X-Request-Id", ...(codes.some((code) => retried.has(code)) ? ["Retry-After"] : [])];
  const challenges = status === 401 || codes.includes("token.scope") ? ["WWW-Authenticate"] : [];
  const headers = [...names, ...challenges].map((name) => [name, headerOf(name, status)] as const);
  const schema =
    status >= 500
      ? schemaNamed("ServerFault")
      : { allOf: [schemaNamed("Fault"), { type: "object", properties: { code: { enum: codes } } }] };
  return {
    description: `${codes.join(", ")}.`,
    headers: Object.fromEntries(headers),
    content: { "application/json": { schema } },
  };
}

function headerOf(name: string, status: number): JsonSchema {
  // Among the 403 errors, only that of a token without the scope has this header.
  const isSometimes = name === "WWW-Authenticate" && status !== 401;
  const header = { $ref: `#/components/headers/${name}` };
  return isSometimes ? { description: "With token.scope.", schema: { type: "string" } } : header;
}
