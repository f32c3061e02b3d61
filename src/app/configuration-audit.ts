import type { Actor } from "../kit/actor.ts";
import { fingerprint, reloadableSettings, type CheckedConfiguration } from "./configuration.ts";
import { handOverIn } from "../db/audit.ts";
import type { Database } from "../db/client.ts";
import { createTransact, type Sql } from "../db/sql.ts";

/**
 * Advisory lock that each process takes while it records a configuration. The number is arbitrary;
 * no other lock uses it.
 */
const lockKey = 7_382_914_406;

/**
 * Fingerprints of the parts of a configuration, to compare it with the next one. Contains no
 * secrets, which a reload cannot change.
 */
export interface Parts {
  readonly resources: Readonly<Record<string, string>>;
  /** Fingerprint of each setting, by its key in the file. */
  readonly settings: Readonly<Record<string, string>>;
}

/** Names of the resources and settings that differ, sorted. */
export interface Difference {
  readonly resources: {
    readonly added: readonly string[];
    readonly removed: readonly string[];
    readonly changed: readonly string[];
  };
  /** Names only: the unit of a value may differ from the file's. */
  readonly settings: readonly string[];
}

/** Returns fingerprints of everything that a reload can change. */
export function partsOf({
  config,
  definitions,
}: Pick<CheckedConfiguration, "config" | "definitions">): Parts {
  const settings = Object.entries(reloadableSettings(config)).flatMap(([group, values]) =>
    // Names in a configuration end with the unit.
    Object.entries(values).map(([name, value]) => [
      `${group}.${name.replace(/(Ms|Bytes)$/, "")}`,
      fingerprint(value ?? null),
    ]),
  );
  const resources = [...definitions].map(([name, definition]) => [name, fingerprint(definition)]);
  return { resources: Object.fromEntries(resources), settings: Object.fromEntries(settings) };
}

/** Returns the differences. Everything is new after an empty configuration. */
export function differenceOf(before: Parts, after: Parts): Difference {
  const resources = differing(before.resources, after.resources);
  return {
    resources: {
      added: resources.filter((name) => before.resources[name] === undefined),
      removed: resources.filter((name) => after.resources[name] === undefined),
      changed: resources.filter(
        (name) => before.resources[name] !== undefined && after.resources[name] !== undefined,
      ),
    },
    // The first configuration has no changed settings.
    settings: Object.keys(before.settings).length === 0 ? [] : differing(before.settings, after.settings),
  };
}

function differing(before: Parts["resources"], after: Parts["resources"]): readonly string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].filter((name) => before[name] !== after[name]).toSorted();
}

const nothing: Parts = { resources: {}, settings: {} };

interface Recorded {
  readonly action: string;
  readonly hash: string;
  readonly parts: Parts | null;
  readonly faults: string | null;
}

/**
 * Records a configuration before it is used, unless the last record is of the same one. Processes
 * of a service on the same files therefore leave one row together.
 */
export async function recordConfiguration({
  database,
  checked,
  action,
  actor,
}: {
  readonly database: Pick<Database, "pool">;
  readonly checked: CheckedConfiguration;
  readonly action: "configuration.loaded" | "configuration.reloaded";
  readonly actor: Actor;
}): Promise<void> {
  const { hash } = checked;
  const parts = partsOf(checked);
  await recordUnlessKnown({
    database,
    actor,
    action,
    entryAfter(rows) {
      const last = rows.find((row) => row.action !== "configuration.refused");
      if (last?.hash === hash) return undefined;
      return {
        hash,
        details: { before: last?.hash ?? null, ...differenceOf(last?.parts ?? nothing, parts) },
        hidden: { parts },
      };
    },
  });
}

/**
 * Records a refused reload, unless the last row is a refusal for the same faults. Records only the
 * number of faults: the log has them.
 */
export async function recordRefusal({
  database,
  hash,
  faults,
  actor,
}: {
  readonly database: Pick<Database, "pool">;
  /** Hash of the configuration that stays in use. */
  readonly hash: string;
  readonly faults: readonly string[];
  readonly actor: Actor;
}): Promise<void> {
  const seen = fingerprint(faults);
  await recordUnlessKnown({
    database,
    actor,
    action: "configuration.refused",
    entryAfter([last]) {
      if (last?.action === "configuration.refused" && last.hash === hash && last.faults === seen)
        return undefined;
      return { hash, details: { faults: faults.length }, hidden: { faults: seen } };
    },
  });
}

interface Entry {
  readonly hash: string;
  readonly details: Readonly<Record<string, unknown>>;
  /** Details for later comparisons, which `svc-admin audit list` leaves out. */
  readonly hidden: Readonly<Record<string, unknown>>;
}

const lastText = `
  SELECT action, subject_id AS hash, details -> 'hidden' -> 'parts' AS parts, details -> 'hidden' ->> 'faults' AS faults
  FROM svc.audit
  WHERE id IN (
    (SELECT id FROM svc.audit WHERE action = 'configuration.refused' ORDER BY id DESC LIMIT 1),
    (SELECT id FROM svc.audit WHERE action IN ('configuration.loaded', 'configuration.reloaded') ORDER BY id DESC LIMIT 1))
  ORDER BY id DESC`;

/**
 * Records an entry, unless `entryAfter` returns undefined.
 *
 * @param entryAfter Gets the last configuration in use and the last refusal, the newer one first.
 */
async function recordUnlessKnown({
  database,
  action,
  actor,
  entryAfter,
}: {
  readonly database: Pick<Database, "pool">;
  readonly action: string;
  readonly actor: Actor;
  readonly entryAfter: (rows: readonly Recorded[]) => Entry | undefined;
}): Promise<void> {
  await createTransact(database.pool)(async (sql: Sql) => {
    // Serialises the processes, so that each sees the record of the previous one.
    await sql("SELECT pg_advisory_xact_lock($1::bigint)", [lockKey]);
    const entry = entryAfter(await sql<Recorded>(lastText));
    if (entry === undefined) return;
    const details = JSON.stringify({ ...entry.details, hidden: entry.hidden });
    await handOverIn(sql, actor);
    await sql("SELECT svc.record_audit($1, 'configuration', $2, $3::jsonb)", [action, entry.hash, details]);
  });
}
