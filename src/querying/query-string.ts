import { unescape } from "node:querystring";

/** A parameter as it was sent. */
export interface QueryParameter {
  /** Decoded; as it is where it cannot be. */
  readonly name: string;
  readonly value: string;
  /** Whether its percent-encoding is broken. */
  readonly isBroken: boolean;
}

/** No list has as many. */
export const mostParameters = 100;

/** Reads a query string as forms write it, `+` for a space, up to one beyond `mostParameters`. */
export function readQuery(query: string): readonly QueryParameter[] {
  const parts = query.split("&", 2 * mostParameters).filter((part) => part !== "");
  return parts.slice(0, mostParameters + 1).map(readParameter);
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
