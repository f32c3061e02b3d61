import type { Sql } from "../db/sql.ts";
import { presentDelivery } from "../deliveries/delivery-json.ts";
import type { DeliveryHistory } from "../deliveries/history.ts";
import type { DeliveryFilter } from "../deliveries/history-texts.ts";
import { beyond } from "../deliveries/list.ts";
import { webhookIdFault } from "../deliveries/list-filter.ts";
import type { CursorEnvelope } from "../http/page.ts";
import { formatDateTime } from "../kit/date-time.ts";
import { answerByCursor, cursorPage } from "../querying/cursor-page.ts";
import type { Cursors } from "../querying/cursor.ts";
import { fixedShape } from "../querying/fixed-shape.ts";
import type { ListParameters } from "../querying/list-parameters.ts";

/** Parameters of the list of dead letters. */
export const deadLetterShape = fixedShape([], {
  hasGroups: false,
  counts: ["none"],
  own: { webhook_id: webhookIdFault },
});

const confirmedText = `SELECT id, dead_lettered_at AS at FROM svc.deliveries WHERE id = ANY($1::bigint[])`;

/**
 * Reads a page of deliveries without attempts left, the newest first. Each is a message on
 * `svc.dead` once the broker has confirmed it.
 */
export async function readDeadLetters(
  parameters: ListParameters,
  {
    sql,
    history,
    ...request
  }: {
    readonly sql: Sql;
    readonly history: Pick<DeliveryHistory, "read">;
    readonly cursors: Cursors;
    readonly userId: number;
    readonly url: URL;
  },
): Promise<CursorEnvelope<unknown>> {
  const webhookId = parameters.given.get("webhook_id");
  const filter: DeliveryFilter = {
    statuses: ["failed"],
    subscriptionId: webhookId === undefined ? undefined : Number(webhookId),
  };
  return answerByCursor({ list: "dead-letters", parameters, ...request }, async (position, take) => {
    const order = position?.isBackwards === true ? "asc" : "desc";
    const part = beyond(filter, position?.values[0], order);
    const { rows } = await history.read({ filter: part, order, skip: 0, take: take + 1 });
    const page = cursorPage(rows, { position, take, valuesOf: ({ id }) => [id] });
    const ids = page.rows.map(({ id }) => id);
    const confirmed = await sql<{ id: string; at: Date | null }>(confirmedText, [ids]);
    const times = new Map(confirmed.map(({ id, at }) => [id, at]));
    const data = page.rows.map((row) => ({
      ...presentDelivery(row),
      user_id: row.userId,
      dead_lettered_at: formatDateTime(times.get(row.id) ?? null),
    }));
    return { ...page, rows: data };
  });
}
