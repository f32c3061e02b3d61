/**
 * Patterns whose proof takes the checker a quarter of a second of CPU or more, 100 s in all. With
 * the same version, pattern, flags and no limit of time, its verdict is always the same. So these
 * are proven once: `SVC_TEST_PROVE=1 npx mocha test/patterns.test.ts` proves them again. A pattern
 * that is new or changed is always proven.
 */
export const proven: ReadonlySet<string> = new Set([
  "/^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/",
  "/^\\s*(?:INSERT|UPDATE|DELETE)\\b/i",
  "/^-?infinity$|^\\d{4}-\\d\\d-\\d\\d [\\d:.]+(?:\\+00)? BC$/",
  '/^([^:\\s"\\\\]{1,200}):(read|write)$/',
  "/^(\\/(?!\\.{1,2}(\\/|$))[\\w.~-]+)+\\/?$/",
  "/^(\\d{1,9})_[A-Za-z0-9_-]{1,100}\\.sql$/",
  '/^CREATE SEQUENCE ("[^"\\n]+"\\.)?([^"\\n]+?);?$/gm',
  "/\"[^\"]*\"|\\bE'(?:[^'\\\\]|\\\\.|'')*'|'(?:[^']|'')*'|[^]/g",
  '/^"[^"]+" (?:IN \\(|<@ ARRAY\\[)/',
  '/^ADD CONSTRAINT "[^"]+" PRIMARY KEY \\((.+)\\)$/',
  "/^You are about to alter the column `([^`]+)` on the `([^`]+)` table,.* will be cast from /s",
  "/^The `([^`]+)` column on the `([^`]+)` table would be dropped and recreated/s",
  "/^Changed the type of `([^`]+)` on the `([^`]+)` table/s",
  "/^Made the column `([^`]+)` on table `([^`]+)` required/s",
  '/^CREATE TABLE (?:"(?:[^"]|"")*"\\.?)+/',
  "/^([a-z][a-z0-9+.-]{0,30}):\\/\\/[^\\s/?#\\\\]/i",
  "/^[\\p{L}\\p{N}](?:[\\p{L}\\p{M}\\p{N}-]{0,61}[\\p{L}\\p{M}\\p{N}])?$/u",
  "/^\\d{4}-\\d\\d-\\d\\d(T\\d\\d:\\d\\d(:\\d\\d(\\.\\d+)?)?(Z|[+-]\\d\\d:\\d\\d))?$/",
  "/^[!-~]{1,255}$/",
  "/^(?:host|connection|keep-alive|transfer-encoding|te|trailer|upgrade|expect|http2-settings|content-.*|proxy-.*)$/",
  "/^(?:user-agent|traceparent|tracestate|x-service-.*|webhook-.*)$/",
  "/^([^\\n:]{1,400}):(\\d{1,7}):(\\d{1,7}): (.*)$/s",
  "/^svc_[0-9A-Za-z]{40,200}$/",
  '/^,"timestamp":"[^"]*","previous":/',
  "/^[A-Za-z0-9._-]{1,128}$/",
  "/^invalid input (?:syntax|value) for (?:type|enum) ([^:]+)/",
  "/'[^']*'|::[a-z ]+/g",
  "/^-?\\d{1,400}(?:\\.\\d{1,400})?$/",
  "/^(?:(?:\\w+\\.)?gen_random_uuid|(?:\\w+\\.)?uuid_generate_v4)\\(\\)$/",
  "/_SERVICE_(HOST|PORT)(_|$)|_PORT_\\d+_(TCP|UDP)(_|$)/",
  "/^(?<year>\\d{4})-(?<month>\\d{1,2})-(?<day>\\d{1,2})(?:(?:T|\\s+)(?<hour>\\d{1,2}):(?<minute>\\d{2})(?::(?<second>\\d{2})(?:[.,](?<fraction>\\d{1,9}))?)?\\s?(?<zone>Z|UTC|GMT|[+-]\\d{2}(?::?\\d{2})?)?)?$/i",
  "/^(?<year>\\d{4})\\/(?<month>\\d{1,2})\\/(?<day>\\d{1,2})(?:(?:T|\\s+)(?<hour>\\d{1,2}):(?<minute>\\d{2})(?::(?<second>\\d{2})(?:[.,](?<fraction>\\d{1,9}))?)?\\s?(?<zone>Z|UTC|GMT|[+-]\\d{2}(?::?\\d{2})?)?)?$/i",
  "/^(?:(?:sun|mon|tue|wed|thu|fri|sat)[a-z]{0,6},?\\s+)?(?<day>\\d{1,2})\\s(?<name>[a-z]{3,9})\\s(?<year>\\d{4})(?:(?:T|\\s+)(?<hour>\\d{1,2}):(?<minute>\\d{2})(?::(?<second>\\d{2})(?:[.,](?<fraction>\\d{1,9}))?)?\\s?(?<zone>Z|UTC|GMT|[+-]\\d{2}(?::?\\d{2})?)?)?$/i",
  "/message size \\d+ is larger than configured max size (\\d+)/",
  '/^(?:CREATE UNIQUE INDEX|ADD CONSTRAINT "[^"]+" PRIMARY KEY) .*\\(([^()]+)\\)$/s',
  '/^ADD CONSTRAINT "[^"]+" FOREIGN KEY \\("([^"]+)"\\) REFERENCES ((?:"[^"]+"\\.)?"[^"]+")\\("([^"]+)"\\)/',
  "/^Made the column `[^`]+` on table `[^`]+` required, but there are \\d+ existing NULL/",
  "/svc_[0-9A-Za-z]{40}[0-9A-Za-z]*/g",
  "/^(?:metadata|metadata-flavor|x-aws-ec2-metadata-.*)$/",
  "/^You are about to drop the column `([^`]+)` on the `([^`]+)` table, which still contains/",
  "/^(?:forwarded|via|x-forwarded-.*|x-real-ip)$/",
  '/^RENAME CONSTRAINT "(.+?)"/',
  "/^The `[^`]+` column on the `[^`]+` table would be dropped and recreated/",
]);

/** The version of recheck that has found them safe. */
export const provenBy = "4.5.0";
