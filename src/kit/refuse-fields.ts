import { shortened, unknownField } from "./did-you-mean.ts";
import { validationError, type FieldErrors } from "./errors.ts";

/**
 * Refuses a body with a field that its endpoint does not know.
 *
 * @throws AppError `validation.failed`.
 */
export function refuseFields(body: Readonly<Record<string, unknown>>, known: readonly string[]): void {
  const unknown = Object.keys(body).filter((name) => !known.includes(name));
  if (unknown.length === 0) return;
  const faults = unknown.slice(0, mostNamed).map((name) => [shortened(name), [unknownField(name, known)]]);
  throw validationError(Object.fromEntries(faults) as FieldErrors);
}

/** Limit of the unknown fields that an answer lists, so that it stays short enough to be useful. */
const mostNamed = 20;
