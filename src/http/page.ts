import type { ParsedUrlQuery } from "node:querystring";
import { validationError } from "../kit/errors.ts";

/** Which part of a list is asked for. `page` and `skip` stay below 2^31, whatever is asked for. */
export interface Page {
  readonly page: number;
  readonly perPage: number;
  readonly skip: number;
}

/** Specification 2.4. */
export interface Envelope<T> {
  readonly data: readonly T[];
  readonly current_page: number;
  readonly last_page: number;
  readonly per_page: number;
  readonly total: number;
  readonly next_page_url: string | null;
  readonly prev_page_url: string | null;
}

/** Specification 8. */
const defaultPerPage = 15;
/** Bound of OFFSET in Prisma, a 32-bit integer; pages are counted no further either. */
const maxInteger = 2 ** 31 - 1;

/**
 * Reads `page` and `per_page`. What is below 1 or not an integer counts as the default (1 and 15), a larger
 * `per_page` as `maxPerPage`, a larger `page` as 2147483647.
 */
export function pageOf(query: ParsedUrlQuery, { maxPerPage }: { readonly maxPerPage: number }): Page {
  const perPage = Math.min(positiveInteger(lastOf(query["per_page"])) ?? defaultPerPage, maxPerPage);
  const page = Math.min(positiveInteger(lastOf(query["page"])) ?? 1, maxInteger);
  return { page, perPage, skip: Math.min((page - 1) * perPage, maxInteger) };
}

/**
 * A smaller page from the same record on, for records of which fewer than asked for fit into one answer: at most `most` of them, and so
 * many that whole pages of that size lie before it. It goes on without a gap at the next one of that size.
 */
export function smallerPage({ skip }: Page, most: number): Page {
  let perPage = most;
  while (skip % perPage !== 0) perPage -= 1;
  return { page: skip / perPage + 1, perPage, skip };
}

/** Characters of a search term: the database compares it with every place of every text that is searched. */
const longestSearch = 100;

/**
 * Reads `search`; undefined when there is none.
 *
 * @throws AppError `validation.failed` for a term of more than 100 characters.
 */
export function searchOf(query: ParsedUrlQuery): string | undefined {
  const search = lastOf(query["search"]);
  // By code points, of which a character outside the basic plane is one in two units.
  if (search !== undefined && Array.from(search.slice(0, 2 * longestSearch + 1)).length > longestSearch)
    throw validationError({
      search: [`The search field must not be greater than ${longestSearch} characters.`],
    });
  return search;
}

/** The value of a query parameter; of a repeated one the last, undefined when it is absent. */
export function lastOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.at(-1) : value;
}

function positiveInteger(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d+$/.test(text)) return undefined;
  const value = Number(text);
  return value >= 1 ? value : undefined;
}

/**
 * Wraps one page of a list.
 *
 * @param url Of this request, absolute; its other query parameters are kept in the links.
 */
export function envelope<T>({
  data,
  total,
  page,
  perPage,
  url,
}: {
  readonly data: readonly T[];
  readonly total: number;
  readonly page: number;
  readonly perPage: number;
  readonly url: URL;
}): Envelope<T> {
  const lastPage = Math.max(1, Math.ceil(total / perPage));
  const urlOf = (number: number): string => urlOfPage(url, number, perPage);
  return {
    data,
    current_page: page,
    last_page: lastPage,
    per_page: perPage,
    total,
    next_page_url: page < lastPage ? urlOf(page + 1) : null,
    // From a page past the end, back to the last one that holds something.
    prev_page_url: page > 1 ? urlOf(Math.min(page - 1, lastPage)) : null,
  };
}

/** The same as JSON, of records that are JSON already. */
export function envelopeText(
  records: readonly string[],
  page: Omit<Parameters<typeof envelope>[0], "data">,
): string {
  const { data: _none, ...rest } = envelope({ ...page, data: [] });
  return `{"data":[${records.join(",")}],${JSON.stringify(rest).slice(1)}`;
}

function urlOfPage(url: URL, page: number, perPage: number): string {
  const target = new URL(url);
  const asked = positiveInteger(target.searchParams.get("per_page") ?? undefined) ?? defaultPerPage;
  if (perPage < asked) target.searchParams.set("per_page", String(perPage));
  target.searchParams.set("page", String(page));
  return target.href;
}
