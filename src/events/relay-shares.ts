import type { Sql } from "../db/sql.ts";

/** The events of the outbox that one relay publishes. */
export interface Share {
  /** `application_name` of the relay's process: it publishes the events that this process wrote. */
  readonly name: string;
  /**
   * The other running relays, by name. Each publishes the events of its own process for the
   * resources that it knows. Other events are divided among the relays by id.
   */
  readonly others: readonly OtherRelay[];
}

export interface OtherRelay {
  readonly name: string;
  /**
   * Resources of its mapping files, which may be older or newer. Undefined when the relay counts as
   * knowing all resources.
   */
  readonly resources: ReadonlySet<string> | undefined;
}

/** Announces a running relay, and divides the outbox among all running relays. */
export interface RelayShares {
  /**
   * Renews the announcement, and returns the relay's current share. Call it at least once a second.
   */
  beat(): Promise<Share>;
  /** Gives the share to the other relays at once. */
  leave(): Promise<void>;
}

/**
 * A relay that is silent for this long has died, is stopped, or has no broker: the others publish
 * its events too. The same holds for a relay last seen in the future, before the database's clock
 * was set back.
 */
const lifeSeconds = 4;

const beatText = `
  WITH beat AS (
    INSERT INTO svc.relays (name, resources) VALUES ($1, $2)
    ON CONFLICT (name) DO UPDATE SET seen_at = now(), resources = EXCLUDED.resources
  ), forgotten AS (
    DELETE FROM svc.relays WHERE seen_at < now() - interval '1 hour'
  )
  SELECT name, resources FROM svc.relays
  WHERE name <> $1 AND seen_at > now() - interval '${lifeSeconds} seconds' AND seen_at < now() + interval '${lifeSeconds} seconds'
  ORDER BY name`;

const leaveText = `DELETE FROM svc.relays WHERE name = $1`;

/**
 * Creates shares by a lease in a table instead of an advisory lock. A stopped process (SIGSTOP)
 * would hold such a lock until it continues, and session locks do not work behind PgBouncer.
 *
 * Two relays that disagree for a moment publish an event twice or late. Both are harmless: the
 * fan-out takes an event once, and a relay reads the whole outbox when its share changes.
 *
 * @param name `application_name` of the connections through which this process writes records; it
 *   marks their events.
 * @param resources Resources that this relay publishes. Events of other resources are left to
 *   relays that know them: a relay with older mapping files may run beside for long.
 */
export function createRelayShares({
  sql,
  name,
  resources,
}: {
  readonly sql: Sql;
  readonly name: string;
  readonly resources: readonly string[];
}): RelayShares {
  return {
    async beat() {
      const rows = await sql<{ name: string; resources: readonly string[] | null }>(beatText, [
        name,
        resources,
      ]);
      const others = rows.map((row) => ({
        name: row.name,
        resources: row.resources === null ? undefined : new Set(row.resources),
      }));
      return { name, others };
    },
    async leave() {
      await sql(leaveText, [name]);
    },
  };
}
