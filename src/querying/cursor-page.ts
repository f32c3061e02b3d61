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

/** Returns the cursors of the pages around a page; a cursor is undefined without a page. */
export function cursorsAround(
  { next, previous }: Pick<CursorPage<unknown>, "next" | "previous">,
  cursors: Cursors,
  binding: string,
): { readonly next: string | undefined; readonly previous: string | undefined } {
  const seal = (one: Position | undefined): string | undefined => one && cursors.seal(one, binding);
  return { next: seal(next), previous: seal(previous) };
}
