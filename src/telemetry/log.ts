import { createRequire } from "node:module";
import type pinoPretty from "pino-pretty";
import { pino, type DestinationStream, type Logger } from "pino";
import { loggedError } from "./logged-error.ts";

export type Log = Logger;

/** Never in a line, whoever puts it there: at its top, or one level down. */
const secretKeys = ["authorization", "body", "cookie", "headers", "password", "secret", "token", "url"];
const censor = "…";

/**
 * JSON lines on stdout; `svc-admin` logs to stderr, so that its own output stays clean.
 *
 * @param isPretty For a person at a terminal: text in colour instead.
 */
export function createLog({
  level,
  destination = 1,
  isPretty = false,
}: {
  readonly level: string;
  readonly destination?: 1 | 2;
  readonly isPretty?: boolean;
}): Log {
  // A `minLength` of 0 makes `flush` call back at once, before what was written is out.
  const isSync = destination === 2 || isPretty;
  const output = pino.destination({ dest: destination, sync: isSync, minLength: isSync ? 0 : 1 });
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: withoutNestedSecrets },
      serializers: { err: loggedError },
      // Nothing puts such things into a line. This is for the day that somebody does.
      redact: { paths: secretKeys, censor },
    },
    isPretty ? prettily(output) : output,
  );
}

/** One level down. Pino redacts there, too, but takes 10 µs a line for it, several times the line itself. */
function withoutNestedSecrets(line: Record<string, unknown>): Record<string, unknown> {
  let cleaned = line;
  for (const [key, value] of Object.entries(line)) {
    if (typeof value !== "object" || value === null || value instanceof Error) continue;
    const found = secretKeys.filter((secret) => secret in value);
    if (found.length === 0) continue;
    cleaned = { ...cleaned, [key]: { ...value, ...Object.fromEntries(found.map((one) => [one, censor])) } };
  }
  return cleaned;
}

/** Whether a person reads the log as it is written. A build and a container may have a terminal, too, but nobody at it. */
export function isForPeople(
  stream: { readonly isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): boolean {
  return stream.isTTY === true && !env["CI"] && env["NODE_ENV"] !== "production";
}

/** Loaded only here: nothing of it runs where machines read the log. */
function prettily(output: DestinationStream): DestinationStream {
  const { prettyFactory } = createRequire(import.meta.url)("pino-pretty") as typeof pinoPretty;
  const pretty = prettyFactory({
    colorize: true,
    ignore: "event",
    singleLine: true,
    translateTime: "SYS:HH:MM:ss.l",
  });
  return { write: (line) => output.write(pretty(line)) };
}

/** Most ids that a line lists. */
const longestList = 20;

/** What a line says of many ids: all of them, or the first ones when they are too many. */
export function idsForLog(ids: readonly string[]): readonly string[] {
  return ids.length <= longestList
    ? ids
    : [...ids.slice(0, longestList - 1), `and ${ids.length - longestList + 1} more`];
}
