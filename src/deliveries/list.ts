import { cursorEnvelope, envelope, type CursorEnvelope, type Envelope } from "../http/page.ts";
import type { Caller } from "../kit/caller.ts";
import { cursorBinding, cursorPage, cursorsAround, openPosition } from "../querying/cursor-page.ts";
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
    : readByCursor(parameters, paging, { ...options, filter, order });
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

async function readByCursor(
  parameters: ListParameters,
  { cursor, perPage }: Extract<ListParameters["paging"], { kind: "cursor" }>,
  { history, caller, cursors, filter, order, url }: Reading,
): Promise<CursorEnvelope<unknown>> {
  const binding = cursorBinding("webhook-deliveries", caller.id, parameters);
  const position = openPosition(cursors, cursor, binding);
  const isAscending = (order === "asc") !== (position?.isBackwards === true);
  const part = filter && beyond(filter, position?.values[0], isAscending);
  const read: DeliveryPage =
    part === undefined
      ? { rows: [] }
      : await history.read({ filter: part, order: isAscending ? "asc" : "desc", skip: 0, take: perPage + 1 });
  const found = cursorPage(read.rows, { position, take: perPage, valuesOf: ({ id }) => [id] });
  const { rows } = found;
  // A bounded search that ended before the page was full continues after the last delivery that it
  // read.
  const hasMore = read.lookedTo !== undefined && read.rows.length <= perPage;
  const isBackwards = position?.isBackwards === true;
  const beyondLook = { values: [read.lookedTo ?? ""], isInclusive: false };
  const next = hasMore && !isBackwards ? { ...beyondLook, isBackwards } : found.next;
  const previous = hasMore && isBackwards ? { ...beyondLook, isBackwards } : found.previous;
  const data = rows.map(presenter(parameters));
  return cursorEnvelope({ data, ...cursorsAround({ next, previous }, cursors, binding), perPage, url });
}

/** Restricts a filter to the deliveries beyond an id, in the order of the list. */
function beyond(filter: DeliveryFilter, id: string | null | undefined, isAscending: boolean): DeliveryFilter {
  if (id === undefined || id === null) return filter;
  return isAscending
    ? { ...filter, fromId: String(BigInt(id) + 1n) }
    : { ...filter, toId: String(BigInt(id) - 1n) };
}

function presenter({ fields }: ListParameters): (row: DeliveryRow) => unknown {
  if (fields === undefined) return presentDelivery;
  const project = createProjection(fields, deliveryShape.places);
  return (row) => project(presentDelivery(row));
}
