import ipaddr from "ipaddr.js";
import { isHost } from "../kit/host.ts";
import { parseUrl } from "../kit/parse-url.ts";

/** The reader of a setting, from YAML or from the text of an environment variable. */
export interface Kind<T> {
  /** Completes "expected ...". */
  readonly expected: string;
  /** Returns undefined when the value is not of this kind. */
  read(value: unknown): T | undefined;
  /** Returns the problem of a value, without the value; undefined when `expected` is enough. */
  readonly problemOf?: (value: unknown) => string | undefined;
  /** The kind of each item of a list. */
  readonly item?: Kind<unknown>;
}

/** A kind whose values have a unit, which ends the name of the property in `Config`. */
interface Measured<T, Unit extends string> extends Kind<T> {
  readonly unit: Unit;
}

/** Reads any text that is not blank. */
export function text(expected: string): Kind<string> {
  return {
    expected,
    read: (value) => (typeof value === "string" && value.trim() !== "" ? value : undefined),
  };
}

/** Reads the listen address of a server. An IPv6 address may be in brackets, as in URLs. */
export const listenHost: Kind<string> = {
  expected: "an address or a host name",
  read: (value) =>
    typeof value === "string" && value.trim() !== "" ? value.trim().replace(/^\[(.+)\]$/, "$1") : undefined,
};

const truths: ReadonlyMap<unknown, boolean> = new Map<unknown, boolean>([
  [true, true],
  ["true", true],
  [false, false],
  ["false", false],
]);

export const boolean: Kind<boolean> = { expected: "true or false", read: (value) => truths.get(value) };

export function oneOf(...words: readonly string[]): Kind<string> {
  return { expected: `one of ${words.join(", ")}`, read: (value) => words.find((word) => word === value) };
}

function numberOf(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  return typeof value === "string" && /^-?\d+(\.\d+)?$/.test(value.trim()) ? Number(value) : undefined;
}

function number(expected: string, isFine: (value: number) => boolean): Kind<number> {
  return {
    expected,
    read(value) {
      const given = numberOf(value);
      return given !== undefined && isFine(given) ? given : undefined;
    },
  };
}

/** Reads a whole number within the bounds. */
export function integer(least: number, most: number): Kind<number> {
  return number(
    `a whole number from ${least} to ${most}`,
    (value) => Number.isInteger(value) && value >= least && value <= most,
  );
}

export const share: Kind<number> = number("a number from 0 to 1", (value) => value >= 0 && value <= 1);

/** Reads seconds, and returns milliseconds. */
export function duration(least: number, most: number): Measured<number, "Ms"> {
  const seconds = number(`seconds, from ${least} to ${most}`, (value) => value >= least && value <= most);
  return {
    unit: "Ms",
    expected: seconds.expected,
    read(value) {
      const given = seconds.read(value);
      return given === undefined ? undefined : Math.round(given * 1000);
    },
  };
}

/** Reads a size such as `1mb`, and returns bytes. */
export function size(most: number): Measured<number, "Bytes"> {
  const units: Readonly<Record<string, number>> = { b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 };
  return {
    unit: "Bytes",
    expected: `a size such as 1mb, 512kb or 1048576, at least 1 byte and at most ${most / 1024 ** 3}gb`,
    read(value) {
      const [, amount, unit = "b"] = /^(\d+(?:\.\d+)?) ?(b|kb|mb|gb)?$/i.exec(String(value).trim()) ?? [];
      const bytes = Math.floor(Number(amount) * (units[unit.toLowerCase()] ?? NaN));
      return bytes >= 1 && bytes <= most ? bytes : undefined;
    },
  };
}

/** Reads a YAML list, or text with commas or line breaks. */
export function list<T>(item: Kind<T>, least: number): Kind<readonly T[]> {
  return {
    expected: `a list of ${least > 0 ? "at least one of " : ""}(${item.expected})`,
    item,
    read(value) {
      const given: readonly unknown[] | undefined =
        typeof value === "string"
          ? value.split(/[,\n]/).map((part) => part.trim())
          : Array.isArray(value)
            ? value
            : undefined;
      const read = given?.filter((part) => !isNothing(part)).map((part) => item.read(part));
      const items = read?.filter((part) => part !== undefined);
      return items !== undefined && items.length === read?.length && items.length >= least
        ? items
        : undefined;
    },
  };
}

/** Returns whether an item of a list is empty, as when its variable is empty. */
export function isNothing(item: unknown): boolean {
  return item === "" || item === undefined;
}

/** Reads a list of durations. */
export function durations(least: number, most: number): Measured<readonly number[], "Ms"> {
  return { unit: "Ms", ...list(duration(least, most), 1) };
}

/** Reads a network in CIDR notation. */
export const network: Kind<string> = {
  expected: "a network such as 10.0.0.0/8 or fd00::/8",
  read: (value) => (typeof value === "string" && ipaddr.isValidCIDR(value.trim()) ? value.trim() : undefined),
};

/** Reads a key of 32 bytes in base64. */
export const key: Kind<Buffer> = {
  expected: "32 random bytes in base64, as `openssl rand -base64 32` gives them",
  read(value) {
    if (typeof value !== "string" || !/^[A-Za-z0-9+/]{43}=?$/.test(value.trim())) return undefined;
    return Buffer.from(value, "base64");
  },
};

/** Reads an origin, and returns it without a trailing slash. */
export const origin: Kind<string> = {
  expected: "an origin such as https://api.example.com, without a path",
  read(value) {
    const url = typeof value === "string" ? parseUrl(value) : undefined;
    const isWeb = url?.protocol === "https:" || url?.protocol === "http:";
    // Both are equal only without a user, path, query and fragment.
    return isWeb && url.href === `${url.origin}/` ? url.origin : undefined;
  },
};

/** Reads a host as in a `Host` header. Without a port it stands for every port. */
export const hostName: Kind<string> = {
  expected: "a host such as api.example.com or api.example.com:8443",
  read(value) {
    const isFine =
      typeof value === "string" && isHost(value.trim()) && parseUrl(`http://${value.trim()}`) !== undefined;
    return isFine ? value.trim().toLowerCase() : undefined;
  },
};

/** A limit of events per window. */
export interface Rate {
  readonly count: number;
  readonly windowMs: number;
}

const [counts, windows] = [integer(1, 1_000_000_000), integer(1, 24 * 3600)];

/** Reads a rate as events/seconds, such as `600/60`. */
export const rate: Kind<Rate> = {
  expected: "requests per seconds such as 600/60, at most a day",
  read(value) {
    const [, amount, window] = /^(\d+) ?\/ ?(\d+)$/.exec(String(value).trim()) ?? [];
    const [given, inSeconds] = [counts.read(amount), windows.read(window)];
    return given === undefined || inSeconds === undefined
      ? undefined
      : { count: given, windowMs: inSeconds * 1000 };
  },
};

/** Reads an origin, or `*` for all. */
export const corsOrigin: Kind<string> = {
  expected: "* or an origin such as https://app.example.com, without a path",
  read: (value) => (value === "*" ? value : origin.read(value)),
};

/** Reads a path of unreserved characters, because others have a meaning to the router. */
export const routePrefix: Kind<string> = {
  expected: "a path such as /svc-api, or / for none",
  read(value) {
    if (value === "" || value === "/") return "";
    const isPath = typeof value === "string" && /^(\/(?!\.{1,2}(\/|$))[\w.~-]+)+\/?$/.test(value);
    return isPath ? value.replace(/\/$/, "") : undefined;
  },
};

/** Reads a URL and keeps it as written, because an issuer is compared exactly. */
export const webUrl: Kind<string> = {
  expected: "a URL such as https://login.example.com/realms/shop, without user name and query",
  read(value) {
    const isUrl =
      typeof value === "string" && /^https?:\/\/[^\s?#@]+$/.test(value) && parseUrl(value) !== undefined;
    return isUrl ? value : undefined;
  },
};
