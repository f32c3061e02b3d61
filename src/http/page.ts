import { setParameter } from "./url-of.ts";

/** The requested part of a list. `page` and `skip` stay below 2^31, for any request. */
export interface Page {
  readonly page: number;
  readonly perPage: number;
  readonly skip: number;
}

/**
 * The answer of a list (docs/api.md, "Lists"). Without a count, `last_page` and `total` are null.
 */
export interface Envelope<T> {
  readonly data: readonly T[];
  readonly current_page: number;
  readonly last_page: number | null;
  readonly per_page: number;
  readonly total: number | null;
  /** Present only when the total is an estimate. */
  readonly total_is_estimate?: true;
  readonly next_page_url: string | null;
  readonly prev_page_url: string | null;
}

/** A page of a list by cursor, without a number and a total. */
export interface CursorEnvelope<T> {
  readonly data: readonly T[];
  readonly per_page: number;
  readonly next_cursor: string | null;
  readonly prev_cursor: string | null;
  readonly next_page_url: string | null;
  readonly prev_page_url: string | null;
}

/** Page size of a request that gives none (docs/api.md, "Lists"). */
const defaultPerPage = 15;
/** Limit of OFFSET in Prisma, a 32-bit integer. Page numbers have the same limit. */
const maxInteger = 2 ** 31 - 1;

/**
 * Reads `page` and `per_page` (docs/api.md, "Lists"). A value below 1 or not an integer counts as
 * the default (1 and 15). A larger `per_page` counts as `maxPerPage`, a larger `page` as
 * 2147483647.
 */
export function pageOf(given: ReadonlyMap<string, string>, maxPerPage: number): Page {
  const perPage = Math.min(positiveInteger(given.get("per_page")) ?? defaultPerPage, maxPerPage);
  const page = Math.min(positiveInteger(given.get("page")) ?? 1, maxInteger);
  return { page, perPage, skip: Math.min((page - 1) * perPage, maxInteger) };
}

/**
 * Returns a smaller page from the same record on, for a page that does not fit into one answer. It
 * has at most `most` records, and a whole number of pages of its size lies before it. The next page
 * of that size continues without a gap.
 */
export function smallerPage({ skip }: Page, most: number): Page {
  let perPage = most;
  while (skip % perPage !== 0) perPage -= 1;
  return { page: skip / perPage + 1, perPage, skip };
}

/**
 * Limit in characters of a search term, because the database compares it with every place of every
 * searched text.
 */
const longestSearch = 100;

/** Returns the message for a search term that is too long; undefined for a valid one. */
export function searchFault(search: string): string | undefined {
  // Counts code points, since a character outside the basic plane has two units.
  const isLong = Array.from(search.slice(0, 2 * longestSearch + 1)).length > longestSearch;
  return isLong ? `The search field must not be greater than ${longestSearch} characters.` : undefined;
}

function positiveInteger(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d+$/.test(text)) return undefined;
  const value = Number(text);
  return value >= 1 ? value : undefined;
}

/**
 * Wraps one page of a list.
 *
 * @param total Undefined when the records were not counted.
 * @param isEstimate Whether the total is an estimate.
 * @param hasNext Whether a page follows; ignored where there is a total.
 * @param url Absolute URL of this request; the links keep its other query parameters.
 */
export function envelope<T>({
  data,
  total,
  isEstimate = false,
  hasNext = false,
  page,
  perPage,
  url,
}: {
  readonly data: readonly T[];
  readonly total: number | undefined;
  readonly isEstimate?: boolean;
  readonly hasNext?: boolean;
  readonly page: number;
  readonly perPage: number;
  readonly url: URL;
}): Envelope<T> {
  const lastPage = total === undefined ? undefined : Math.max(1, Math.ceil(total / perPage));
  const urlOf = (number: number): string => urlOfPage(url, perPage, ["page", String(number)]);
  const isFollowed = lastPage === undefined ? hasNext : page < lastPage;
  return {
    data,
    current_page: page,
    last_page: lastPage ?? null,
    per_page: perPage,
    total: total ?? null,
    ...(isEstimate && { total_is_estimate: true }),
    next_page_url: isFollowed ? urlOf(page + 1) : null,
    // From a page past the end, the link leads to the last page with records.
    prev_page_url: page > 1 ? urlOf(Math.min(page - 1, lastPage ?? page)) : null,
  };
}

/** Wraps one page of a list by cursor; `next` and `previous` are undefined without such a page. */
export function cursorEnvelope<T>({
  data,
  next,
  previous,
  perPage,
  url,
}: {
  readonly data: readonly T[];
  readonly next: string | undefined;
  readonly previous: string | undefined;
  readonly perPage: number;
  readonly url: URL;
}): CursorEnvelope<T> {
  const urlOf = (cursor: string | undefined): string | null =>
    cursor === undefined ? null : urlOfPage(url, perPage, ["cursor", cursor]);
  return {
    data,
    per_page: perPage,
    next_cursor: next ?? null,
    prev_cursor: previous ?? null,
    next_page_url: urlOf(next),
    prev_page_url: urlOf(previous),
  };
}

function urlOfPage(url: URL, perPage: number, [name, value]: readonly [string, string]): string {
  const target = new URL(url);
  const asked = positiveInteger(target.searchParams.getAll("per_page").at(-1)) ?? defaultPerPage;
  if (perPage < asked) setParameter(target, "per_page", String(perPage));
  setParameter(target, name, value);
  return target.href;
}
