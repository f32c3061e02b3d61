import { hostname } from "node:os";
import type { Actor } from "../kit/actor.ts";
import { actingCte, actorText } from "../db/audit.ts";
import { withMissingRight } from "../db/missing-right.ts";
import type { Sql } from "../db/sql.ts";
import { messageOf } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import { version } from "../kit/version.ts";
import { createPeriodicWorker, type Worker } from "../kit/worker.ts";
import { formatDateTime } from "../kit/date-time.ts";

export type ReloadOutcome =
  | { readonly kind: "applied"; readonly hash: string }
  /** The previous configuration, of this hash, stays in use. */
  | { readonly kind: "refused"; readonly hash: string; readonly faults: readonly string[] };

/** A process of the service in `svc.processes`. */
export interface ProcessRow {
  readonly id: string;
  readonly program: string;
  readonly host: string;
  readonly pid: number;
  /** Hash of the configuration in use. */
  readonly configuration: string;
  readonly reloadsAsked: number;
  readonly reloadsAnswered: number;
  /** Faults for which the last reload was refused; empty when it was not. */
  readonly reloadFaults: readonly string[];
}

/**
 * Registers the process in `svc.processes`, renews its `seen_at`, and answers the requests there.
 */
export interface Registration extends Worker {
  /** Records the outcome of a reload that a signal requested. */
  note(outcome: ReloadOutcome): Promise<void>;
  /** Deletes the row of the process. */
  remove(): Promise<void>;
}

/** Interval at which each process reads its row and the list of dispatchers. */
export const processPollMs = 2_000;
/** A process that was not seen for this long is dead, or has no database. */
const liveForSeconds = 15;
const writeEverySeconds = 5;
const mostListed = 100;

/**
 * SQL condition that a process is alive. A time in the future dates from before the database's
 * clock was set back. The process renews it soon.
 */
const isLive = `seen_at BETWEEN now() - interval '${liveForSeconds} seconds' AND now() + interval '${liveForSeconds} seconds'`;

const registerText = `
  INSERT INTO svc.processes (id, program, host, pid, configuration, reload_faults, version)
  VALUES ($1, $2, $3, $4, $5, $6, $7)
  ON CONFLICT (id) DO NOTHING`;

// A killed process leaves its row.
const forgetText = `DELETE FROM svc.processes WHERE seen_at < now() - interval '1 hour'`;

// One statement, which writes at most every third time. It reads the rows as they were before its
// own write.
const pollText = `
  WITH beat AS (
    UPDATE svc.processes SET seen_at = now()
    WHERE id = $1 AND (seen_at < now() - interval '${writeEverySeconds} seconds' OR seen_at > now() + interval '1 second')
  )
  SELECT reloads_asked AS asked, reloads_answered AS answered, ARRAY(
    SELECT id::text FROM svc.processes
    WHERE program <> 'api' AND ${isLive} ORDER BY id
  ) AS dispatchers
  FROM svc.processes WHERE id = $1`;

const noteText = `
  UPDATE svc.processes
  SET seen_at = now(), configuration = $2, reload_faults = $3, reloads_answered = greatest(reloads_answered, $4),
    loaded_at = CASE WHEN cardinality($3::text[]) = 0 THEN now() ELSE loaded_at END
  WHERE id = $1`;

const removeText = `DELETE FROM svc.processes WHERE id = $1`;

const columns = `id, program, host, pid, configuration, reloads_asked AS "reloadsAsked",
  reloads_answered AS "reloadsAnswered", reload_faults AS "reloadFaults"`;

// The statement also writes the audit trail, but only when there is a process.
const askText = `
  WITH ${actingCte("$1")}, asked AS (
    UPDATE svc.processes SET reloads_asked = reloads_asked + 1
    WHERE ${isLive}
    RETURNING ${columns}
  ), counted AS MATERIALIZED (
    SELECT count(*) AS processes FROM asked, acting HAVING count(*) > 0
  ), recorded AS MATERIALIZED (
    SELECT svc.record_audit('reload.requested', 'configuration', NULL, jsonb_build_object('processes', processes)) AS entry
    FROM counted
  )
  SELECT asked.* FROM asked, recorded WHERE entry IS NOT NULL`;

const findText = `SELECT ${columns} FROM svc.processes WHERE id = ANY($1::uuid[])`;

interface PollRow {
  readonly asked: number;
  readonly answered: number;
  readonly dispatchers: readonly string[];
}

/**
 * Creates the registration of this process. Costs one statement every 2 s; every third one writes
 * the row.
 *
 * @param id Id of this process.
 * @param reload Reloads the configuration; never rejects.
 * @param hash Returns the hash of the configuration in use.
 * @param onDispatchers Gets the ids of the live dispatchers from each poll. The id of this process
 *   is missing when its row was too old: the others took it for dead.
 * @param onRegistered Called once, with the first row, which contains no earlier requests.
 */
export function createRegistration({
  id,
  sql,
  log,
  program,
  hash,
  reload,
  onDispatchers = () => undefined,
  onRegistered = () => undefined,
  intervalMs = processPollMs,
}: {
  readonly id: string;
  readonly sql: Sql;
  readonly log: Log;
  readonly program: string;
  readonly hash: () => string;
  readonly reload: () => Promise<ReloadOutcome>;
  readonly onDispatchers?: (ids: readonly string[]) => void;
  readonly onRegistered?: () => void;
  readonly intervalMs?: number;
}): Registration {
  let lastFaults: readonly string[] = [];
  let isRegistered = false;
  /** Number of the last request that was started. */
  let taken = 0;

  async function register(): Promise<void> {
    await sql(registerText, [id, program, hostname(), process.pid, hash(), lastFaults, version]);
    if (!isRegistered) onRegistered();
    isRegistered = true;
    await sql(forgetText);
  }

  async function note(outcome: ReloadOutcome, answered: number): Promise<void> {
    lastFaults = storedFaults(outcome);
    await sql(noteText, [id, outcome.hash, lastFaults, answered]);
  }

  /** Reloads beside the poll: a process that applies a large change is still alive. */
  async function answer(asked: number): Promise<void> {
    const outcome = await reload();
    try {
      await note(outcome, asked);
    } catch (error) {
      // The next poll starts the request again. A second reload of the same files is harmless.
      taken = 0;
      log.warn({ reason: messageOf(error) }, "the outcome of a reload could not be recorded");
    }
  }

  async function poll(): Promise<void> {
    let row = await readOwn(sql, id);
    // The row was deleted as dead, or is not registered yet.
    if (row === undefined) {
      taken = 0;
      await register();
      row = await readOwn(sql, id);
    }
    if (row === undefined) return;
    onDispatchers(row.dispatchers);
    if (row.asked <= Math.max(row.answered, taken)) return;
    taken = row.asked;
    void answer(row.asked);
  }

  return {
    ...createPeriodicWorker({ name: "processes", intervalMs, turn: poll, onError: createPollReport(log) }),
    note: (outcome) => note(outcome, 0),
    async remove() {
      await sql(removeText, [id]);
    },
  };
}

/**
 * Returns a function that logs a failed poll. It only warns of a missing right, once. The parts
 * that need the database log its loss.
 */
function createPollReport(log: Log): (error: unknown) => void {
  let isWarned = false;
  return (error) => {
    const told = withMissingRight(error);
    const level = told !== error && !isWarned ? "warn" : "debug";
    isWarned ||= level === "warn";
    log[level]({ reason: messageOf(told) }, "the process could not renew its row in svc.processes");
  };
}

/** Replaces NUL, which a fault may quote: no text of PostgreSQL has it. */
function storedFaults(outcome: ReloadOutcome): readonly string[] {
  return outcome.kind === "refused" ? outcome.faults.map((fault) => fault.replaceAll("\0", "\uFFFD")) : [];
}

async function readOwn(sql: Sql, id: string): Promise<PollRow | undefined> {
  const [row] = await sql<PollRow>(pollText, [id]);
  return row;
}

const listText = `
  SELECT ${columns}, version, started_at AS "startedAt", seen_at AS "seenAt", loaded_at AS "loadedAt" FROM svc.processes
  WHERE ${isLive} ORDER BY program, host, pid LIMIT ${mostListed}`;

/** A live process as shown to admins. */
interface LiveProcess extends ProcessRow {
  /** Null for a version from before this column. */
  readonly version: string | null;
  readonly startedAt: Date;
  readonly seenAt: Date;
  readonly loadedAt: Date;
}

/** Returns the processes that were seen lately, at most 100. */
export async function listLiveProcesses(sql: Sql): Promise<readonly LiveProcess[]> {
  return sql<LiveProcess>(listText);
}

export function presentProcess(row: LiveProcess): Readonly<Record<string, unknown>> {
  return {
    id: row.id,
    program: row.program,
    host: row.host,
    pid: row.pid,
    version: row.version,
    configuration: row.configuration,
    loaded_at: formatDateTime(row.loadedAt),
    reload_faults: row.reloadFaults,
    started_at: formatDateTime(row.startedAt),
    seen_at: formatDateTime(row.seenAt),
  };
}

/** Asks every live process to reload, and returns them. */
export async function askForReload(sql: Sql, actor: Actor): Promise<readonly ProcessRow[]> {
  return sql<ProcessRow>(askText, [actorText(actor)]);
}

/** Returns the rows of the given processes, without those that have ended. */
export async function findProcesses(sql: Sql, ids: readonly string[]): Promise<readonly ProcessRow[]> {
  return sql<ProcessRow>(findText, [ids]);
}
