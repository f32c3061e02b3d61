import type { ErrorCode } from "../kit/errors.ts";
import type { JsonSchema } from "./json-schema.ts";

/** A parameter of an operation, in the form of OpenAPI. */
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

export interface OperationAnswer {
  readonly description: string;
  /** Undefined: no body. */
  readonly schema?: JsonSchema;
  /** Media type of the body; JSON by default. */
  readonly mediaType?: string;
  /** Names of `components.headers`. */
  readonly headers?: readonly string[];
}

/** An operation, before it is written in the form of OpenAPI. */
export interface Operation {
  readonly method: "get" | "post" | "put" | "patch" | "delete";
  /** Path below the prefix, with `{name}` for parameters. */
  readonly path: string;
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** Required scope of the token; "any" for every valid token, "none" for no token. */
  readonly scope: string;
  readonly parameters?: readonly Parameter[];
  readonly body?: { readonly schema: JsonSchema; readonly example?: unknown; readonly isOptional?: boolean };
  readonly answers: Readonly<Record<number, OperationAnswer>>;
  /**
   * Error codes beside those that follow from the method, the scope, the body and the
   * `Idempotency-Key`.
   */
  readonly errors?: readonly ErrorCode[];
}

/** The properties that the operations of a section share. */
type Shared = Pick<Operation, "tag" | "scope">;

/** An operation without the properties that its section shares. */
export type SectionOperation = Omit<Operation, keyof Shared> & Partial<Shared>;

/** Returns the operations of a section. An operation may have a scope of its own. */
export function sectionOf(shared: Shared, operations: readonly SectionOperation[]): readonly Operation[] {
  return operations.map((operation) => ({ ...shared, ...operation }));
}

export function pathParameter(name: string, schema: JsonSchema, example: unknown): Parameter {
  return { name, in: "path", required: true, schema, example };
}

/** The parameter `{id}` of a path to a record of the service's own. */
export const idParameter: Parameter = pathParameter(
  "id",
  { type: "integer", minimum: 1, maximum: 2 ** 31 - 1 },
  1,
);
