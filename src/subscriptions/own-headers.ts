import { isObject } from "../kit/is-object.ts";
import type { OwnHeaders } from "./signing.ts";

/**
 * Headers of a request body, by name as written. `keep` stands for the stored value: a client that
 * sends back its last read must not overwrite a password with asterisks.
 */
export type GivenHeaders = ReadonlyMap<string, { readonly value: string } | "keep">;

/**
 * Text shown instead of every value. Even the length or the end would reveal too much of a short
 * value.
 */
export const maskedHeader = "****";

export const mostHeaders = 10;
const mostNameChars = 100;
const mostValueBytes = 1024;

/** A token of RFC 9110, 5.6.2. */
const nameForm = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/**
 * Visible ASCII with blanks inside only, because a blank at either end does not reach the receiver.
 */
const valueForm = /^[!-~](?:[ -~]*[!-~])?$/;

const isSet = "the service or the connection sets it";

/** Header names that a webhook must not set, with the reasons. */
const reserved: readonly (readonly [names: RegExp, reason: string])[] = [
  [
    /^(?:host|connection|keep-alive|transfer-encoding|te|trailer|upgrade|expect|http2-settings|content-.*|proxy-.*)$/,
    isSet,
  ],
  [/^(?:user-agent|traceparent|tracestate|x-service-.*|webhook-.*)$/, isSet],
  [/^(?:forwarded|via|x-forwarded-.*|x-real-ip)$/, "networks trust what it says of who sends"],
  [/^(?:metadata|metadata-flavor|x-aws-ec2-metadata-.*)$/, "it opens the metadata of a cloud"],
  // Frameworks take the method or the path from these headers. CGI programs take the proxy of their
  // own requests from them.
  [
    /^(?:proxy|x-original-url|x-rewrite-url|x-http-method|x-http-method-override|x-method-override)$/,
    "it would make another request of a delivery",
  ],
];

/**
 * Reads the field `headers` of a body; null for no headers.
 *
 * @param stored Names whose values can be kept.
 */
export function readHeaders(
  given: unknown,
  stored: readonly string[],
): { readonly headers: GivenHeaders } | { readonly errors: ReadonlyMap<string, string> } {
  if (given === null) return { headers: new Map() };
  if (!isObject(given))
    return { errors: new Map([["headers", "The headers field must be an object of names and values."]]) };
  // Not `Object.entries`, which takes 70 ms for the 80,000 names of a body.
  if (Object.keys(given).length > mostHeaders)
    return {
      errors: new Map([["headers", `The headers field must not have more than ${mostHeaders} items.`]]),
    };
  const headers = new Map<string, { readonly value: string } | "keep">();
  const errors = new Map<string, string>();
  const seen = new Set<string>();
  for (const [name, value] of Object.entries(given)) {
    const fault = nameFault(name, seen) ?? valueFault(name, value, stored);
    seen.add(name.toLowerCase());
    if (fault !== undefined) errors.set(`headers.${name.slice(0, mostNameChars)}`, fault);
    else if (value === maskedHeader) headers.set(storedName(name, stored) ?? name, "keep");
    else headers.set(name, { value: String(value) });
  }
  return errors.size > 0 ? { errors } : { headers };
}

function nameFault(name: string, seen: ReadonlySet<string>): string | undefined {
  if (name.length > mostNameChars)
    return `The name of a header must not have more than ${mostNameChars} characters.`;
  if (!nameForm.test(name)) return "The name of a header has letters, digits and -.";
  const lower = name.toLowerCase();
  if (seen.has(lower)) return `The header ${name} is there twice: names are the same in any case.`;
  // CGI, WSGI and PHP treat `_` and `-` alike: a receiver would mistake the user's value for the
  // service's.
  const spelled = lower.replaceAll("_", "-");
  const [, reason] = reserved.find(([names]) => names.test(spelled)) ?? [];
  return reason && `The header ${name} is reserved: ${reason}.`;
}

function valueFault(name: string, value: unknown, stored: readonly string[]): string | undefined {
  if (typeof value !== "string") return `The value of the header ${name} must be a string.`;
  if (value === maskedHeader)
    return storedName(name, stored) === undefined
      ? `The header ${name} has no stored value that ${maskedHeader} could stand for.`
      : undefined;
  if (value.length > mostValueBytes)
    return `The value of the header ${name} must not have more than ${mostValueBytes} characters.`;
  if (!valueForm.test(value))
    return `The value of the header ${name} must be visible ASCII, without blanks at its ends.`;
  return undefined;
}

function storedName(name: string, stored: readonly string[]): string | undefined {
  return stored.find((one) => one.toLowerCase() === name.toLowerCase());
}

/** Returns the headers to store, with the kept values taken from the stored ones. */
export function mergeHeaders(given: GivenHeaders, stored: OwnHeaders): OwnHeaders {
  return Object.fromEntries(
    [...given].flatMap(([name, one]): readonly [string, string][] => {
      const value = one === "keep" ? stored[name] : one.value;
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** Returns the headers as answers show them, with masked values. */
export function maskHeaders(names: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => [name, maskedHeader]));
}
