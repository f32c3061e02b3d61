import { hint } from "../kit/did-you-mean.ts";
import { parseUrl } from "../kit/parse-url.ts";
import type { Kind } from "./kinds.ts";

/** The SSL modes of libpq, and `no-verify` of pg, which encrypts and checks nothing. */
const sslModes = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full", "no-verify"];

/**
 * The TLS parameters that pg reads. It ignores others, so that `sslmod=verify-full` would encrypt
 * nothing.
 */
const sslParameters = ["ssl", "sslmode", "sslcert", "sslkey", "sslrootcert", "sslnegotiation"];

/**
 * Reads a URL with one of the protocols. A URL of a socket, with `?host=/folder`, may name no host
 * before the path, as in libpq and pg.
 */
export function serverUrl(...protocols: readonly string[]): Kind<string> {
  return {
    expected: `a URL that begins with ${protocols.map((protocol) => `${protocol}://`).join(" or ")} (special characters in a password are percent-encoded)`,
    read(value) {
      if (typeof value !== "string" || problemOf(value) !== undefined) return undefined;
      const isFine = protocols.some((protocol) => value.trim().startsWith(`${protocol}://`));
      return isFine && parsed(value) !== undefined ? value.trim() : undefined;
    },
    problemOf: (value) => (typeof value === "string" ? problemOf(value) : undefined),
  };
}

/**
 * Reads the URL of a PostgreSQL server. pg checks certificate and name of the server in all modes
 * between `allow` and `verify-full`. It warns of each but `verify-full`, so the URL gets
 * `verify-full` instead.
 */
export function databaseUrl(): Kind<string> {
  const { expected, ...kind } = serverUrl("postgresql", "postgres");
  return {
    expected,
    read(value) {
      const url = sslProblemOf(value) === undefined ? kind.read(value) : undefined;
      // With this parameter, pg gives the modes the meaning that they have in libpq.
      return url?.includes("uselibpqcompat=true") === true
        ? url
        : url?.replace(/([?&]sslmode=)(?:allow|prefer|require|verify-ca)(?=&|$)/, "$1verify-full");
    },
    problemOf: (value) => kind.problemOf?.(value) ?? sslProblemOf(value),
  };
}

function sslProblemOf(value: unknown): string | undefined {
  const parameters = typeof value === "string" ? parsed(value)?.searchParams : undefined;
  const names = [...(parameters?.keys() ?? [])];
  const unknown = names.find((name) => /^ssl/i.test(name) && !sslParameters.includes(name));
  if (unknown !== undefined) return `it has no parameter ${unknown}${hint(unknown, sslParameters)}`;
  const mode = parameters?.get("sslmode") ?? "disable";
  return sslModes.includes(mode) ? undefined : `its sslmode is none of ${sslModes.join(", ")}`;
}

function parsed(value: string): URL | undefined {
  const full = /[?&]host=/.test(value) ? value.replace("@/", "@localhost/") : value;
  return parseUrl(full.trim());
}

function problemOf(value: string): string | undefined {
  // Without this error, the text before the # would be taken for the host.
  if (value.includes("#")) return "a # in it is written as %23";
  const [start, authority = ""] = /^\s*\w+:\/\/([^/?]*)/.exec(value) ?? [""];
  if (authority.slice(authority.lastIndexOf("@") + 1).includes(","))
    return "it names several hosts, and one address has to lead to the server";
  const ending = value.charAt(start.length);
  const isCut = !authority.includes("@") && value.includes("@", start.length) && parsed(value) === undefined;
  return isCut ? `a ${ending} in a password is written as ${encodeURIComponent(ending)}` : undefined;
}
