import { isIP, isIPv4, isIPv6 } from "node:net";
import { compilePattern } from "./patterns.ts";
import { onText, type Violation, type MakeCheck, type Subject } from "./check.ts";
import { isAscii, textOf } from "./values.ts";
import { parseUrl } from "../kit/parse-url.ts";

/**
 * Limit of the steps of all patterns for one body: the size of a pattern times the characters of
 * the text. At 150 ns a step at worst, they block the process for 50 ms. A pattern such as
 * `/^[A-Z]{2}\d{4}$/` can match 30,000 characters.
 */
const maxPatternSteps = 300_000;

/**
 * Schemes of URLs with a host, so that `javascript://` and `data:` are not links. `url:x,y` allows
 * other schemes.
 */
const urlSchemes: readonly string[] =
  "http https ftp ftps sftp ssh git svn ws wss mqtt mqtts amqp amqps redis rediss ldap ldaps smb nfs s3 irc ircs rtsp rtmp postgres postgresql mysql mongodb".split(
    " ",
  );

function isUrl(text: string, schemes: readonly string[]): boolean {
  if (text.length > 8192 || /[\s\p{Cc}]/u.test(text)) return false;
  const [, scheme = ""] = /^([a-z][a-z0-9+.-]{0,30}):\/\/[^\s/?#\\]/i.exec(text) ?? [];
  const allowed = schemes.length > 0 ? schemes : urlSchemes;
  if (!allowed.some((name) => name.toLowerCase() === scheme.toLowerCase())) return false;
  return (parseUrl(text)?.host ?? "") !== "";
}

const localAtom = /^[\p{L}\p{M}\p{N}!#$%&'*+/=?^_`{|}~-]+(?:\.[\p{L}\p{M}\p{N}!#$%&'*+/=?^_`{|}~-]+)*$/u;
const localQuoted = /^"(?:[^"\\\p{Cc}]|\\[^\p{Cc}])*"$/u;
const domainLabel = /^[\p{L}\p{N}](?:[\p{L}\p{M}\p{N}-]{0,61}[\p{L}\p{M}\p{N}])?$/u;

/**
 * Checks the lengths of RFC 5321 and the letters of RFC 6531. `strict` and `filter` require a
 * domain with a dot and no quotes; `filter` also requires ASCII.
 */
function isEmail(text: string, filters: readonly string[]): boolean {
  if (text.length > 254) return false;
  const at = text.lastIndexOf("@");
  const local = text.slice(0, at);
  const labels = text.slice(at + 1).split(".");
  if (at < 1 || local.length > 64) return false;
  if (!labels.every((label) => domainLabel.test(label))) return false;
  const isPlain = localAtom.test(local);
  if (filters.every((filter) => filter === "rfc")) return isPlain || localQuoted.test(local);
  return isPlain && labels.length > 1 && (!filters.includes("filter") || isAscii(text));
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f]{3}-([0-9a-f])[0-9a-f]{3}-[0-9a-f]{12}$/i;

/**
 * Checks a UUID of any version. A required version also requires the variant of RFC 9562, without
 * which the version digit has no meaning.
 */
function isUuid(text: string, [version]: readonly string[]): boolean {
  const [, digit, variant = ""] = uuidPattern.exec(text) ?? [];
  return digit !== undefined && (version === undefined || (digit === version && /[89ab]/i.test(variant)));
}

const macAddress =
  /^(?:[0-9a-f]{2}(?::[0-9a-f]{2}){5}|[0-9a-f]{2}(?:-[0-9a-f]{2}){5}|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2})$/i;

/**
 * Names that were found to be valid, in lower case; there are about 600. Node.js takes 100 µs to
 * find one, and took 5 s for a list of 10,000.
 */
const knownZones = new Set<string>();

/** Returns whether a text is a name of the IANA database. Offsets are not names. */
function isTimezone(text: string): boolean {
  if (text.length > 64 || !/^(?:UTC|[A-Z][A-Za-z_]+(?:\/[A-Za-z0-9_+-]+){1,2})$/.test(text)) return false;
  const name = text.toLowerCase();
  if (knownZones.has(name)) return true;
  try {
    void new Intl.DateTimeFormat("en", { timeZone: text });
  } catch {
    return false;
  }
  knownZones.add(name);
  return true;
}

const tooMuchText: Violation = {
  message: "The :attribute field cannot be checked: there is too much text for the patterns of the rules.",
};

/** Takes steps from the body's budget. Returns false when too few are left. */
function spend(subject: Subject, steps: number): boolean {
  const budget = subject.once("pattern steps", () => ({ left: maxPatternSteps }));
  if (steps > budget.left) return false;
  budget.left -= steps;
  return true;
}

/** Creates `regex` and `not_regex`. A text without enough steps left breaks both rules. */
function matching(wanted: boolean): MakeCheck {
  return ([source = ""]) => {
    const { size, matches } = compilePattern(source);
    return (subject) => {
      const { value } = subject;
      const text = typeof value === "boolean" ? undefined : textOf(value);
      if (text === undefined) return {};
      if (!spend(subject, size * text.length)) return tooMuchText;
      return matches(text) === wanted ? undefined : {};
    };
  };
}

/** The checks of rules on formats. */
export const formatChecks = {
  email: onText(isEmail),
  url: onText(isUrl),
  uuid: onText(isUuid),
  ulid: onText((text) => /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/i.test(text)),
  ip: onText((text) => isIP(text) !== 0),
  ipv4: onText((text) => isIPv4(text)),
  ipv6: onText((text) => isIPv6(text)),
  mac_address: onText((text) => macAddress.test(text)),
  hex_color: onText((text) => /^#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})$/i.test(text)),
  base64: onText((text) => Buffer.from(text, "base64").toString("base64") === text),
  timezone: onText(isTimezone),
  regex: matching(true),
  not_regex: matching(false),
} satisfies Record<string, MakeCheck>;
