import type { Sql } from "../db/sql.ts";
import { presentDelivery } from "../deliveries/delivery-json.ts";
import type { DeliveryHistory } from "../deliveries/history.ts";
import { webhookIdFault } from "../deliveries/list-filter.ts";
import { cursorEnvelope, type CursorEnvelope } from "../http/page.ts";
import { formatDateTime } from "../kit/date-time.ts";
import { cursorBinding, cursorPage, cursorsAround, openPosition } from "../querying/cursor-page.ts";
import type { Cursors } from "../querying/cursor.ts";
import { fixedShape } from "../querying/fixed-shape.ts";
import type { ListParameters } from "../querying/list-parameters.ts";
import { cursorPagingOf } from "./cursor-paging.ts";

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
    cursors,
    userId,
    url,
  }: {
    readonly sql: Sql;
    readonly history: Pick<DeliveryHistory, "read">;
    readonly cursors: Cursors;
    readonly userId: number;
    readonly url: URL;
  },
): Promise<CursorEnvelope<unknown>> {
  const { cursor, perPage } = cursorPagingOf(parameters);
  const binding = cursorBinding("dead-letters", userId, parameters);
  const position = openPosition(cursors, cursor, binding);
  const isBackwards = position?.isBackwards === true;
  const webhookId = parameters.given.get("webhook_id");
  const from = position === undefined ? undefined : BigInt(position.values[0] ?? "0");
  const { rows } = await history.read({
    filter: {
      statuses: ["failed"],
      subscriptionId: webhookId === undefined ? undefined : Number(webhookId),
      ...(from !== undefined && (isBackwards ? { fromId: String(from + 1n) } : { toId: String(from - 1n) })),
    },
    order: isBackwards ? "asc" : "desc",
    skip: 0,
    take: perPage + 1,
  });
  const page = cursorPage(rows, { position, take: perPage, valuesOf: ({ id }) => [id] });
  const ids = page.rows.map(({ id }) => id);
  const confirmed = await sql<{ id: string; at: Date | null }>(confirmedText, [ids]);
  const times = new Map(confirmed.map(({ id, at }) => [id, at]));
  const data = page.rows.map((row) => ({
    ...presentDelivery(row),
    user_id: row.userId,
    dead_lettered_at: formatDateTime(times.get(row.id) ?? null),
  }));
  return cursorEnvelope({ data, ...cursorsAround(page, cursors, binding), perPage, url });
}
