import { createParameters } from "../querying/condition-text.ts";
import {
  idsText,
  pageText,
  type DeliveryFilter,
  type DeliveryOrder,
  type ListPart,
  type ListStatement,
  type Narrowing,
} from "./history-texts.ts";

/** Returns the narrowing; undefined when it has no condition. */
export function narrowingOf(asked: Narrowing): Narrowing | undefined {
  return Object.values(asked).every((value) => value === undefined) ? undefined : asked;
}

/**
 * Selects the ids that match a filter, their number, and the id at which the search ended.
 *
 * @param most Most deliveries that the statement searches.
 */
export function narrowText(
  filter: DeliveryFilter,
  narrowing: Narrowing,
  order: DeliveryOrder,
  { most, ...part }: ListPart & { readonly most: number },
): ListStatement {
  const parameters = createParameters();
  const add = (value: string): string => parameters.add(value);
  const page = pageText(part, parameters);
  const looked = idsText(filter, order, { skip: "0", take: String(most) }, parameters);
  const { resource, event, recordId, url, createdAfter, createdBefore } = narrowing;
  const conditions = [
    // For a subscription that SQL gave to another user, as in `listText`.
    filter.userId === undefined ? [] : `delivery.user_id = ${parameters.add(filter.userId)}`,
    resource === undefined ? [] : `delivery.resource = ${add(resource)}`,
    url === undefined ? [] : `delivery.url = ${add(url)}`,
    createdAfter === undefined ? [] : `delivery.created_at > ${add(createdAfter.toISOString())}::timestamptz`,
    createdBefore === undefined
      ? []
      : `delivery.created_at < ${add(createdBefore.toISOString())}::timestamptz`,
    event === undefined ? [] : `event.trigger = ${add(event)}`,
    recordId === undefined ? [] : `event.record_id = ${add(recordId)}`,
  ].flat();
  // OFFSET 0 makes PostgreSQL look up each event by its key, whatever the planner expects of the
  // filters.
  const byEvent =
    event === undefined && recordId === undefined
      ? ""
      : `CROSS JOIN LATERAL (SELECT trigger, record_id FROM svc.events WHERE id = delivery.event_id OFFSET 0) AS event`;
  // In ORDER BY, a bare id would be the output column of SELECT: a text, where 9 sorts above 10.
  return {
    text: `WITH looked AS MATERIALIZED (${looked}), fitting AS MATERIALIZED (
        SELECT looked.id FROM looked
        CROSS JOIN LATERAL (
          SELECT event_id, user_id, resource, url, created_at FROM svc.deliveries WHERE id = looked.id OFFSET 0) AS delivery
        ${byEvent} WHERE ${["true", ...conditions].join(" AND ")}
      )
      SELECT ARRAY(SELECT id::text FROM fitting ORDER BY fitting.id ${order} OFFSET ${page.skip} LIMIT ${page.take}) AS ids,
        (SELECT count(*)::int FROM fitting) AS count,
        CASE WHEN (SELECT count(*) FROM looked) = ${most}
          THEN (SELECT ${order === "asc" ? "max" : "min"}(id)::text FROM looked) END AS "lookedTo"`,
    values: parameters.values,
  };
}
