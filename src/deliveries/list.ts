import { envelope, type CursorEnvelope, type Envelope } from "../http/page.ts";
import type { Caller } from "../kit/caller.ts";
import { answerByCursor, cursorPage } from "../querying/cursor-page.ts";
import type { Cursors } from "../querying/cursor.ts";
import type { ListParameters } from "../querying/list-parameters.ts";
import { createProjection } from "../querying/projection.ts";
import { presentDelivery } from "./delivery-json.ts";
import type { DeliveryFilter, DeliveryOrder } from "./history-texts.ts";
import type { DeliveryRow } from "./delivery-row.ts";
import type { DeliveryHistory, DeliveryPage } from "./history.ts";
import { deliveryFilter, deliveryShape } from "./list-filter.ts";

interface DeliveryListOptions {
  readonly history: Pick<DeliveryHistory, "list" | "read">;
  readonly caller: Pick<Caller, "id" | "isAdmin">;
  readonly cursors: Cursors;
  /** URL of the request, for the page links. */
  readonly url: URL;
}

/** Reads the page of a request. A total above 10,000 is an estimate. */
export async function readDeliveryList(
  parameters: ListParameters,
  options: DeliveryListOptions,
): Promise<Envelope<unknown> | CursorEnvelope<unknown>> {
  const filter = deliveryFilter(parameters, options.caller);
  const order: DeliveryOrder = parameters.sort?.[0]?.direction ?? "desc";
  const { paging } = parameters;
  return paging.kind === "page"
    ? readNumbered(parameters, paging, { ...options, filter, order })
    : readByCursor(parameters, { ...options, filter, order });
}

interface Reading extends DeliveryListOptions {
  readonly filter: DeliveryFilter | undefined;
  readonly order: DeliveryOrder;
}

async function readNumbered(
  parameters: ListParameters,
  { page, perPage, skip }: Extract<ListParameters["paging"], { kind: "page" }>,
  { history, filter, order, url }: Reading,
): Promise<Envelope<unknown>> {
  const count = parameters.count === "none" ? "none" : "estimated";
  const { records, ...counted } =
    filter === undefined
      ? { records: [], total: count === "none" ? undefined : 0 }
      : await history.list({ filter, order, skip, take: perPage, count });
  return envelope({ data: records.map(presenter(parameters)), ...counted, page, perPage, url });
}

function readByCursor(
  parameters: ListParameters,
  { history, caller, cursors, filter, order, url }: Reading,
): Promise<CursorEnvelope<unknown>> {
  const request = { list: "webhook-deliveries", userId: caller.id, parameters, cursors, url };
  return answerByCursor(request, async (position, take) => {
    const isBackwards = position?.isBackwards === true;
    const readOrder = (order === "asc") === isBackwards ? "desc" : "asc";
    const part = filter && beyond(filter, position?.values[0], readOrder);
    const read: DeliveryPage =
      part === undefined
        ? { rows: [] }
        : await history.read({ filter: part, order: readOrder, skip: 0, take: take + 1 });
    const page = cursorPage(read.rows, { position, take, valuesOf: ({ id }) => [id] });
    const rows = page.rows.map(presenter(parameters));
    if (read.lookedTo === undefined || read.rows.length > take) return { ...page, rows };
    // A bounded search that ended before the page was full continues after the last delivery that
    // it read.
    const beyondLook = { values: [read.lookedTo], isInclusive: false, isBackwards };
    return { ...page, rows, [isBackwards ? "previous" : "next"]: beyondLook };
  });
}

/** Restricts a filter to the deliveries beyond an id, in the order of a read. */
export function beyond(
  filter: DeliveryFilter,
  id: string | null | undefined,
  order: DeliveryOrder,
): DeliveryFilter {
  if (id === undefined || id === null) return filter;
  return order === "asc"
    ? { ...filter, fromId: String(BigInt(id) + 1n) }
    : { ...filter, toId: String(BigInt(id) - 1n) };
}

function presenter({ fields }: ListParameters): (row: DeliveryRow) => unknown {
  if (fields === undefined) return presentDelivery;
  const project = createProjection(fields, deliveryShape.places);
  return (row) => project(presentDelivery(row));
}
