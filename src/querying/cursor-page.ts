import { cursorEnvelope, type CursorEnvelope } from "../http/page.ts";
import { validationError } from "../kit/errors.ts";
import type { Cursors, Position } from "./cursor.ts";
import type { ListParameters } from "./list-parameters.ts";

/** Parameters that may change from one page to the next. */
const free = new Set(["cursor", "per_page", "fields", "include", "count"]);

/**
 * Returns the binding of a cursor: the list, the user, and the filters, search and order of the
 * list.
 */
export function cursorBinding(
  list: string,
  userId: number,
  { given }: Pick<ListParameters, "given">,
): string {
  const asked = [...given].filter(([name]) => !free.has(name)).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([list, userId, asked]);
}

/**
 * Decrypts the cursor of a request; returns undefined for the first page.
 *
 * @throws AppError `validation.failed` for a cursor of another list, filter, search, order or user.
 */
export function openPosition(cursors: Cursors, cursor: string, binding: string): Position | undefined {
  if (cursor === "") return undefined;
  const position = cursors.open(cursor, binding);
  if (position !== undefined) return position;
  throw validationError({
    cursor: [
      "The cursor is not one of this list with this filter, sort and search. Begin with an empty one.",
    ],
  });
}

/** A page with the positions of its neighbours; a position is undefined without a neighbour. */
export interface CursorPage<T> {
  readonly rows: readonly T[];
  readonly next: Position | undefined;
  readonly previous: Position | undefined;
}

/**
 * Returns a page of rows that were read from a position on, in its direction.
 *
 * @param read The rows. By default, one more than `take` tells that there are more.
 */
export function cursorPage<T>(
  read: readonly T[],
  {
    position,
    take,
    hasMore = read.length > take,
    valuesOf,
  }: {
    readonly position: Position | undefined;
    readonly take: number;
    readonly hasMore?: boolean;
    readonly valuesOf: (row: T) => Position["values"];
  },
): CursorPage<T> {
  const isBackwards = position?.isBackwards === true;
  const rows = isBackwards ? read.slice(0, take).toReversed() : read.slice(0, take);
  const [first] = rows;
  const last = rows.at(-1);
  const positionOf = (row: T | undefined, goesBack: boolean): Position | undefined =>
    row === undefined ? undefined : { values: valuesOf(row), isBackwards: goesBack, isInclusive: false };
  // The page from which this page was requested.
  const hasNext = isBackwards || hasMore;
  const hasPrevious = isBackwards ? hasMore : position !== undefined;
  return {
    rows,
    next: hasNext ? positionOf(last, false) : undefined,
    previous: hasPrevious ? positionOf(first, true) : undefined,
  };
}

/** A request for a page of a list by cursor. */
interface CursorRequest {
  /** Name of the list, to which its cursors are bound. */
  readonly list: string;
  readonly userId: number;
  readonly parameters: Pick<ListParameters, "given" | "paging">;
  readonly cursors: Cursors;
  /** URL of the request, for the page links. */
  readonly url: URL;
}

/**
 * Answers a page by cursor: the first one without a cursor.
 *
 * @param read Reads the page from a position on; undefined for the first page.
 * @throws AppError `validation.failed` for a page number, or for a cursor of another list.
 */
export async function answerByCursor<T>(
  { list, userId, parameters, cursors, url }: CursorRequest,
  read: (position: Position | undefined, perPage: number) => Promise<CursorPage<T>>,
): Promise<CursorEnvelope<T>> {
  const { paging, given } = parameters;
  if (given.has("page")) throw validationError({ page: ["This list has no page; it is read by cursor."] });
  const { perPage } = paging;
  const binding = cursorBinding(list, userId, parameters);
  const position = openPosition(cursors, paging.kind === "cursor" ? paging.cursor : "", binding);
  const { rows: data, next, previous } = await read(position, perPage);
  const seal = (one: Position | undefined): string | undefined => one && cursors.seal(one, binding);
  return cursorEnvelope({ data, next: seal(next), previous: seal(previous), perPage, url });
}
