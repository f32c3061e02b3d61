import { validationError } from "../kit/errors.ts";
import type { ListParameters } from "../querying/list-parameters.ts";

/**
 * Returns the page that is asked for of a list that has no numbered pages: the first one without a
 * cursor.
 *
 * @throws AppError `validation.failed` for a number.
 */
export function perPageOf({ paging, given }: Pick<ListParameters, "paging" | "given">): {
  readonly cursor: string;
  readonly perPage: number;
} {
  if (given.has("page")) throw validationError({ page: ["This list has no page; it is read by cursor."] });
  return { cursor: paging.kind === "cursor" ? paging.cursor : "", perPage: paging.perPage };
}
