import { unescape } from "node:querystring";
import { validationError } from "../kit/errors.ts";

export interface QueryParameter {
  /** Decoded name; the raw text where it cannot be decoded. */
  readonly name: string;
  readonly value: string;
  readonly encoding: Encoding;
}

/** Result of decoding. `stray`: a `%` begins no byte. `no text`: the bytes are not UTF-8. */
type Encoding = "fine" | "stray" | "no text";

/** Limit of the parameters, above the number that any list accepts. */
export const mostParameters = 100;

/**
 * Parses a query string as forms write it, with `+` for a space.
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
 * Returns the fault of a known parameter; undefined without one.
 *
 * @param given Parameters before this one.
 */
export function readingFault(
  { name, encoding }: QueryParameter,
  given: ReadonlyMap<string, string>,
): string | undefined {
  // A value that is not a number counts as the default.
  if (name === "page" || name === "per_page") return undefined;
  // These parameters are older than the strict ones, and are read as before. The last value counts,
  // and a stray `%` means itself.
  const isLenient = lenient.includes(name);
  if (encoding === "no text" || (encoding === "stray" && !isLenient))
    return "The percent-encoding is broken.";
  if (isLenient) return undefined;
  return given.has(name) ? "The parameter was given twice." : undefined;
}

const lenient: readonly string[] = ["search", "webhook_id", "status", "event_id"];

function readParameter(text: string): QueryParameter {
  const end = text.indexOf("=");
  const name = decode(end === -1 ? text : text.slice(0, end));
  const value = decode(end === -1 ? "" : text.slice(end + 1));
  const encoding = name.encoding === "fine" ? value.encoding : name.encoding;
  return { name: name.text, value: value.text, encoding };
}

function decode(text: string): { readonly text: string; readonly encoding: Encoding } {
  const spaced = text.replaceAll("+", " ");
  const fine = percentDecoded(spaced);
  if (fine !== undefined) return { text: fine, encoding: "fine" };
  const stray = percentDecoded(spaced.replaceAll(/%(?![\da-f]{2})/gi, "%25"));
  return stray === undefined
    ? { text: unescape(spaced), encoding: "no text" }
    : { text: stray, encoding: "stray" };
}

/** Decodes a text; returns undefined for broken percent-encoding. */
export function percentDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
