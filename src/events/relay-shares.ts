import type { Sql } from "../db/sql.ts";
import type { Share } from "./outbox.ts";

/** Says that a relay is at work, and shares the outbox out among those that are. */
export interface RelayShares {
  /** Says so, and answers this relay's share as it is from now on. To be called at least once a second. */
  beat(): Promise<Share>;
  /** Leaves the share to the others at once. */
  leave(): Promise<void>;
}

/** A relay that has not said so for as long has died, stands still, or has no broker: the others publish its events too. */
const lifeSeconds = 4;

const beatText = `
  WITH beat AS (
    INSERT INTO svc.relays (name) VALUES ($1) ON CONFLICT (name) DO UPDATE SET seen_at = now()
  ), forgotten AS (
    DELETE FROM svc.relays WHERE seen_at < now() - interval '1 hour'
  )
  SELECT name FROM svc.relays WHERE name <> $1 AND seen_at > now() - interval '${lifeSeconds} seconds' ORDER BY name`;

const leaveText = `DELETE FROM svc.relays WHERE name = $1`;

/**
 * A lease in a table and no advisory lock: one that a stopped process (SIGSTOP) holds would hold up its events until it goes on, and a
 * session's lock does not work behind PgBouncer. Two relays that differ for a moment about who is at work publish an event twice
 * or late, which is harmless: the fan-out takes it once, and each looks at the whole outbox again when its share changes.
 *
 * @param name `application_name` of the connections through which this process writes records: that is how its events are known.
 */
export function createRelayShares({ sql, name }: { readonly sql: Sql; readonly name: string }): RelayShares {
  return {
    async beat() {
      const others = (await sql<{ name: string }>(beatText, [name])).map((row) => row.name);
      return { name, others, index: others.filter((other) => other < name).length };
    },
    async leave() {
      await sql(leaveText, [name]);
    },
  };
}

export function isSameShare(one: Share, other: Share): boolean {
  return one.index === other.index && one.others.join() === other.others.join();
}
