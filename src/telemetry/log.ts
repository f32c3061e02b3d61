import { createRequire } from "node:module";
import type pinoPretty from "pino-pretty";
import { pino, type DestinationStream, type Logger } from "pino";
import { loggedError } from "./logged-error.ts";

/** Writes JSON lines; see `createLog`. */
export type Log = Logger;

/** Keys that the log hides, at the top of a line or one level down. */
const secretKeys = ["authorization", "body", "cookie", "headers", "password", "secret", "token", "url"];
const censor = "…";

/** Most bytes of lines that wait to be written. Further lines are dropped. */
const mostWaiting = 8_000_000;

/**
 * Creates a log of JSON lines on stdout. `svc-admin` logs to stderr, since its stdout is for the
 * answer.
 *
 * @param isPretty Writes coloured text for a person at a terminal.
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
  // With a `minLength` of 0, `flush` would call back at once, before the lines are written.
  const isSync = destination === 2 || isPretty;
  const minLength = isSync ? 0 : 1;
  const output = pino.destination({ dest: destination, sync: isSync, minLength, maxLength: mostWaiting });
  const log = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: withoutNestedSecrets },
      serializers: { err: (error: unknown) => loggedError(error) },
      // The keys are a second line of defence: no part of the service logs them.
      redact: { paths: secretKeys, censor },
    },
    isPretty ? prettily(output) : output,
  );
  // A full disk must not end the process. The next line writes the rest of the previous one first.
  output.on("error", () => undefined);
  let lines = 0;
  output.on("drop", () => (lines += 1));
  output.on("drain", () => {
    if (lines === 0) return;
    const lost = { event: "log.lost", lines };
    lines = 0;
    log.warn(lost, "lines of the log were lost, because no program read them, or the disk was full");
  });
  return log;
}

/**
 * Hides the keys one level down. Pino can do that too, but takes 10 µs a line, several times the
 * line itself.
 */
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

/**
 * Returns whether a person reads the log while it is written. A terminal in CI or in a container
 * has no reader.
 */
export function isForPeople(
  stream: { readonly isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): boolean {
  return stream.isTTY === true && !env["CI"] && env["NODE_ENV"] !== "production";
}

/**
 * Formats the lines for people. Loads pino-pretty only here, so that it does not run where machines
 * read the log.
 */
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

/** Limit of the ids in a line. */
const longestList = 20;

/** Returns the ids for a line: all of them, or the first ones and a count. */
export function idsForLog(ids: readonly string[]): readonly string[] {
  return ids.length <= longestList
    ? ids
    : [...ids.slice(0, longestList - 1), `and ${ids.length - longestList + 1} more`];
}
