import { pino, type Logger } from "pino";

export type Log = Logger;

/** JSON lines on stdout; `svc-admin` logs to stderr, so that its own output stays clean. */
export function createLog({
  level,
  destination = 1,
}: {
  readonly level: string;
  readonly destination?: 1 | 2;
}): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    // A `minLength` of 0 makes `flush` call back at once, before what was written is out.
    pino.destination({ dest: destination, sync: destination === 2, minLength: 1 }),
  );
}

/** Most ids that a line lists. */
const longestList = 20;

/** What a line says of many ids: all of them, or the first ones when they are too many. */
export function idsForLog(ids: readonly string[]): readonly string[] {
  return ids.length <= longestList
    ? ids
    : [...ids.slice(0, longestList - 1), `and ${ids.length - longestList + 1} more`];
}
