import type { ParsedUrlQuery } from "node:querystring";

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
  return {
    data,
    current_page: page,
    last_page: lastPage,
    per_page: perPage,
    total,
    next_page_url: page < lastPage ? urlOfPage(url, page + 1) : null,
    // From a page past the end, back to the last one that holds something.
    prev_page_url: page > 1 ? urlOfPage(url, Math.min(page - 1, lastPage)) : null,
  };
}

function urlOfPage(url: URL, page: number): string {
  const target = new URL(url);
  target.searchParams.set("page", String(page));
  return target.href;
}
