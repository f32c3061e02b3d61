import type { ErrorCode } from "../kit/errors.ts";
import type { JsonSchema } from "./json-schema.ts";

/** A parameter of an operation, as OpenAPI has it. */
export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
  readonly style?: "form" | "deepObject";
  readonly explode?: boolean;
  readonly allowEmptyValue?: boolean;
  readonly example?: unknown;
}

/** An answer without a fault. */
export interface OperationAnswer {
  readonly description: string;
  /** Undefined: no body. */
  readonly schema?: JsonSchema;
  /** Media type of the body; JSON by default. */
  readonly mediaType?: string;
  /** Names of `components.headers`. */
  readonly headers?: readonly string[];
}

/** A method of a path, before it is written as OpenAPI has it. */
export interface Operation {
  readonly method: "get" | "post" | "put" | "patch" | "delete";
  /** Below the prefix, with `{name}` for parameters. */
  readonly path: string;
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** What the token needs; "any" for every valid one, "none" for no token. */
  readonly scope: string;
  readonly parameters?: readonly Parameter[];
  readonly body?: { readonly schema: JsonSchema; readonly example?: unknown; readonly isOptional?: boolean };
  readonly answers: Readonly<Record<number, OperationAnswer>>;
  /** Codes in addition to those that every request may get. */
  readonly errors: readonly ErrorCode[];
}

/** The parameter `{name}` of a path. */
export function pathParameter(name: string, schema: JsonSchema, example: unknown): Parameter {
  return { name, in: "path", required: true, schema, example };
}

/** The parameter `{id}` of a path to a record of the service's own. */
export const idParameter: Parameter = pathParameter(
  "id",
  { type: "integer", minimum: 1, maximum: 2 ** 31 - 1 },
  1,
);
