import { shortened, unknownField } from "./did-you-mean.ts";
import { validationError, type FieldErrors } from "./errors.ts";

type Body = Readonly<Record<string, unknown>>;

/**
 * Refuses a body with faults, or with a field that its endpoint does not know. Names all at once.
 *
 * @param faults Faults of known fields, which come first.
 * @throws AppError `validation.failed`.
 */
export function refuseFields(body: Body, known: readonly string[], faults: FieldErrors = {}): void {
  const all = { ...faults, ...unknownFields(body, known) };
  if (Object.keys(all).length > 0) throw validationError(all);
}

/**
 * Returns the errors of the fields that an endpoint does not know.
 *
 * @param others Fields that it accepts, and does not suggest.
 */
export function unknownFields(
  body: Body,
  known: readonly string[],
  others: readonly string[] = [],
): FieldErrors {
  const unknown = Object.keys(body).filter((name) => !known.includes(name) && !others.includes(name));
  return Object.fromEntries(
    unknown.slice(0, mostNamed).map((name) => [shortened(name), [unknownField(name, known)]]),
  );
}

/** Limit of the unknown fields that an answer lists, so that it stays short enough to be useful. */
const mostNamed = 20;
