import { unescape } from "node:querystring";
import { validationError } from "../kit/errors.ts";

/** A parameter as it was sent. */
export interface QueryParameter {
  /** Decoded; as it is where it cannot be. */
  readonly name: string;
  readonly value: string;
  /** Whether its percent-encoding is broken. */
  readonly isBroken: boolean;
}

/** More than any list takes. */
export const mostParameters = 100;

/**
 * Reads a query string as forms write it, `+` for a space.
 *
 * @throws AppError `validation.failed` for more than 100 parameters.
 */
export function readQuery(query: string): readonly QueryParameter[] {
  const parts = query.split("&").filter((part) => part !== "");
  if (parts.length > mostParameters)
    throw validationError({ query: [`A request may have at most ${mostParameters} parameters.`] });
  return parts.map(readParameter);
}

/**
 * Returns what is wrong with a parameter that has a place; undefined when nothing is.
 *
 * @param given Those before it.
 */
export function readingFault(
  { name, isBroken }: QueryParameter,
  given: ReadonlyMap<string, string>,
): string | undefined {
  // They came before the others, and are read as they always were: the last one counts.
  if (lenient.includes(name)) return undefined;
  if (isBroken) return "The percent-encoding is broken.";
  return given.has(name) ? "The parameter was given twice." : undefined;
}

const lenient: readonly string[] = ["page", "per_page", "search", "webhook_id", "status", "event_id"];

/** Returns a name from a request as a message may quote it. */
export function shortened(name: string): string {
  return name.length <= 100 ? name : `${name.slice(0, 100)}…`;
}

function readParameter(text: string): QueryParameter {
  const end = text.indexOf("=");
  const name = decode(end === -1 ? text : text.slice(0, end));
  const value = decode(end === -1 ? "" : text.slice(end + 1));
  return { name: name.text, value: value.text, isBroken: name.isBroken || value.isBroken };
}

function decode(text: string): { readonly text: string; readonly isBroken: boolean } {
  const spaced = text.replaceAll("+", " ");
  try {
    return { text: decodeURIComponent(spaced), isBroken: false };
  } catch {
    return { text: unescape(spaced), isBroken: true };
  }
}
