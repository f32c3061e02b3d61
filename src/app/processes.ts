import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { Actor } from "../kit/actor.ts";
import { actingCte, actorText } from "../db/audit.ts";
import type { Sql } from "../db/sql.ts";
import { messageOf } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import { pause, type Worker } from "../kit/worker.ts";

/** What became of a reload. */
export type ReloadOutcome =
  | { readonly kind: "applied"; readonly hash: string }
  /** The configuration before, of this hash, goes on. */
  | { readonly kind: "refused"; readonly hash: string; readonly faults: readonly string[] };

/** A process of the service as the database knows it. */
export interface ProcessRow {
  readonly id: string;
  readonly program: string;
  readonly host: string;
  readonly pid: number;
  /** Hash of the configuration at work. */
  readonly configuration: string;
  readonly reloadsAsked: number;
  readonly reloadsAnswered: number;
  /** Why the last reload was refused; empty when it was not. */
  readonly reloadFaults: readonly string[];
}

/** Enters the process in `svc.processes`, says that it lives, and does what is asked of it there. */
export interface Registration extends Worker {
  /** Writes down what a reload came to that the process was told to make in another way. */
  note(outcome: ReloadOutcome): Promise<void>;
  /** Takes the process off the list. */
  remove(): Promise<void>;
}

const pollMs = 2_000;
/** A process that has not been seen for this long is dead, or cut off from the database. */
const liveForSeconds = 15;
const writeEverySeconds = 5;

const registerText = `
  INSERT INTO svc.processes (id, program, host, pid, configuration, reload_faults) VALUES ($1, $2, $3, $4, $5, $6)
  ON CONFLICT (id) DO NOTHING`;

// What was killed leaves its row.
const forgetText = `DELETE FROM svc.processes WHERE seen_at < now() - interval '1 hour'`;

// One statement, which writes only every other time or less.
const pollText = `
  WITH beat AS (
    UPDATE svc.processes SET seen_at = now()
    WHERE id = $1 AND seen_at < now() - interval '${writeEverySeconds} seconds'
  )
  SELECT reloads_asked AS asked, reloads_answered AS answered FROM svc.processes WHERE id = $1`;

const noteText = `
  UPDATE svc.processes
  SET seen_at = now(), configuration = $2, reload_faults = $3, reloads_answered = greatest(reloads_answered, $4),
    loaded_at = CASE WHEN cardinality($3::text[]) = 0 THEN now() ELSE loaded_at END
  WHERE id = $1`;

const removeText = `DELETE FROM svc.processes WHERE id = $1`;

const columns = `id, program, host, pid, configuration, reloads_asked AS "reloadsAsked",
  reloads_answered AS "reloadsAnswered", reload_faults AS "reloadFaults"`;

// The audit trail gets its row in the same statement, and none when there is no process.
const askText = `
  WITH ${actingCte("$1")}, asked AS (
    UPDATE svc.processes SET reloads_asked = reloads_asked + 1
    WHERE seen_at > now() - interval '${liveForSeconds} seconds'
    RETURNING ${columns}
  ), counted AS MATERIALIZED (
    SELECT count(*) AS processes FROM asked, acting HAVING count(*) > 0
  ), recorded AS MATERIALIZED (
    SELECT svc.record_audit('reload.requested', 'configuration', NULL, jsonb_build_object('processes', processes)) AS entry
    FROM counted
  )
  SELECT asked.* FROM asked, recorded WHERE entry IS NOT NULL`;

const findText = `SELECT ${columns} FROM svc.processes WHERE id = ANY($1::uuid[])`;

/**
 * Makes the registration of this process. Costs one statement every 2 s; every third one writes the row.
 *
 * @param reload Reloads the configuration; never rejects.
 * @param hash Of the configuration at work.
 */
export function createRegistration({
  sql,
  log,
  program,
  hash,
  reload,
  intervalMs = pollMs,
}: {
  readonly sql: Sql;
  readonly log: Log;
  readonly program: string;
  readonly hash: () => string;
  readonly reload: () => Promise<ReloadOutcome>;
  readonly intervalMs?: number;
}): Registration {
  const id = randomUUID();
  let lastFaults: readonly string[] = [];
  /** The last request that was taken up. */
  let taken = 0;

  async function register(): Promise<void> {
    await sql(registerText, [id, program, hostname(), process.pid, hash(), lastFaults]);
    await sql(forgetText);
  }

  async function note(outcome: ReloadOutcome, answered: number): Promise<void> {
    lastFaults = outcome.kind === "refused" ? outcome.faults : [];
    await sql(noteText, [id, outcome.hash, lastFaults, answered]);
  }

  /** Not waited for by the poll: a process that makes a large change still lives. */
  async function answer(asked: number): Promise<void> {
    const outcome = await reload();
    try {
      await note(outcome, asked);
    } catch (error) {
      // Asked for again by the next poll: a second reload of the same files does no harm.
      taken = 0;
      log.warn({ reason: messageOf(error) }, "the outcome of a reload was not written down");
    }
  }

  async function poll(): Promise<void> {
    const [row] = await sql<{ asked: number; answered: number }>(pollText, [id]);
    // Forgotten, or not entered yet.
    if (row === undefined) {
      taken = 0;
      return register();
    }
    if (row.asked <= Math.max(row.answered, taken)) return;
    taken = row.asked;
    void answer(row.asked);
  }

  return {
    name: "processes",
    async run(signal) {
      while (!signal.aborted) {
        try {
          await poll();
        } catch (error) {
          // The parts that do the work say so too, and louder.
          log.debug({ reason: messageOf(error) }, "the process could not say that it lives");
        }
        await pause(intervalMs, signal);
      }
    },
    note: (outcome) => note(outcome, 0),
    async remove() {
      await sql(removeText, [id]);
    },
  };
}

/** Asks every live process to reload, and answers which those are. */
export async function askForReload(sql: Sql, actor: Actor): Promise<readonly ProcessRow[]> {
  return sql<ProcessRow & Record<string, unknown>>(askText, [actorText(actor)]);
}

/** The rows of these processes; none for those that have ended in the meantime. */
export async function findProcesses(sql: Sql, ids: readonly string[]): Promise<readonly ProcessRow[]> {
  return sql<ProcessRow & Record<string, unknown>>(findText, [ids]);
}
