import type { BatchOperation } from "./batch-body.ts";
import { AppError, type ErrorCode, type FieldErrors } from "../kit/errors.ts";

/** Part of an operation that a fault concerns, where it is not the data. */
const partOf: Readonly<Partial<Record<ErrorCode, string>>> = {
  "record.not_found": "id",
  "record.forbidden": "id",
  "record.referenced": "id",
  "record.changed": "if_match",
};

/**
 * Returns the error of an operation, with its errors by their place in the batch. A 5xx stays as it
 * is.
 */
export function faultOfOperation(
  { method }: Pick<BatchOperation, "method">,
  index: number,
  thrown: unknown,
): unknown {
  if (!(thrown instanceof AppError) || thrown.status >= 500) return thrown;
  const { code, message, cause, headers } = thrown;
  return new AppError(code, message, {
    errors: errorsOf(`operations.${index}`, method, thrown),
    cause,
    headers,
  });
}

function errorsOf(
  place: string,
  method: BatchOperation["method"],
  { code, message, errors = {} }: AppError,
): FieldErrors {
  const fields = Object.entries(errors);
  const part = method === "create" ? "data" : (partOf[code] ?? (method === "update" ? "data" : "id"));
  if (fields.length === 0) return { [`${place}.${part}`]: [message] };
  return Object.fromEntries(fields.map(([name, messages]) => [`${place}.data.${name}`, messages]));
}
