import type { Sql } from "../db/sql.ts";
import { noClaims, type Caller } from "../kit/caller.ts";
import type { Eligibility } from "../subscriptions/eligibility.ts";
import type { SnapshotColumn } from "../subscriptions/snapshot-row-sql.ts";
import type { DeliveryRow } from "./delivery-row.ts";

interface Options {
  readonly sql: Sql;
  readonly eligibility: Pick<Eligibility, "judge">;
}

/** Decides who may read the record of a delivery, by the present rules. */
export interface ReadRight {
  /**
   * Returns whether the subscriber may read the record; undefined when this cannot be decided now,
   * because the attempt is judged again. Also undefined for a deleted user: the subscription is
   * gone too, and a retry reports that.
   *
   * @param which With `previous`, judges the old row of the update.
   */
  ofSubscriber(delivery: DeliveryRow, which?: SnapshotColumn): Promise<boolean | undefined>;
  /**
   * Returns whether the caller may read the record, and the old row when the delivery shows it.
   * False when this cannot be decided now.
   */
  of(caller: Caller, delivery: DeliveryRow): Promise<boolean>;
}

const userText = `SELECT id, name, email, is_admin AS "isAdmin" FROM svc.users WHERE id = $1`;

/** Creates a read right that judges by the same rules as the fan-out and each attempt. */
export function createReadRight({ sql, eligibility }: Options): ReadRight {
  async function verdictOf(
    user: Caller,
    { eventId: id, resource, ownerId: owner_id }: DeliveryRow,
    which: SnapshotColumn = "snapshot",
  ): Promise<boolean | undefined> {
    return (await eligibility.judge([{ event: { id, resource, owner_id }, user }], which))[0];
  }
  return {
    async ofSubscriber(delivery, which) {
      const [user] = await sql<Omit<Caller, "claims">>(userText, [delivery.userId]);
      return user && verdictOf({ ...user, claims: noClaims }, delivery, which);
    },
    async of(caller, delivery) {
      if ((await verdictOf(caller, delivery)) !== true) return false;
      return !delivery.hasPrevious || (await verdictOf(caller, delivery, "previous")) === true;
    },
  };
}
