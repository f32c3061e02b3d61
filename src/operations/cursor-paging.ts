import { validationError } from "../kit/errors.ts";
import type { ListParameters } from "../querying/list-parameters.ts";

/**
 * Returns the requested cursor and page size of a list without numbered pages. An empty cursor
 * means the first page.
 *
 * @throws AppError `validation.failed` for a page number.
 */
export function cursorPagingOf({ paging, given }: Pick<ListParameters, "paging" | "given">): {
  readonly cursor: string;
  readonly perPage: number;
} {
  if (given.has("page")) throw validationError({ page: ["This list has no page; it is read by cursor."] });
  return { cursor: paging.kind === "cursor" ? paging.cursor : "", perPage: paging.perPage };
}
