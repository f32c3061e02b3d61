import { shortened, suggestionFor } from "../kit/did-you-mean.ts";

/**
 * Parameters of PostgREST, JSON:API, Directus, OData and others, with the parameter of this API
 * that does the same. Reduced to their letters, in lower case: `page[size]` is `pagesize`.
 */
const meanings: readonly (readonly [own: string, others: readonly string[]])[] = [
  ["per_page", ["limit", "size", "pagesize", "pagelimit", "top", "take", "first"]],
  ["page", ["offset", "skip", "start", "pagenumber", "pageoffset", "pageindex"]],
  ["cursor", ["after", "pageafter", "pagecursor", "startingafter"]],
  ["after", ["cursor", "since", "offset", "startingafter", "lasteventid"]],
  ["sort", ["order", "orderby", "ordering", "sortby"]],
  ["fields", ["select", "columns", "attributes"]],
  ["include", ["expand", "embed", "with", "populate"]],
  ["count", ["total", "withcount", "meta"]],
  ["search", ["q", "query"]],
  ["filter[path]", ["where"]],
  ["filter[or][0][path]", ["or"]],
];

const foreign = new Set(meanings.flatMap(([, others]) => others));
/** Longer names than this are not in the table. A request may have 1,800 of them. */
const longestForeign = 20;

/** Returns whether other APIs have a parameter of this name, which would change the answer. */
export function isForeign(name: string): boolean {
  return name.length <= longestForeign && foreign.has(lettersOf(name));
}

function lettersOf(name: string): string {
  return name.replaceAll(/[^a-z]/gi, "").toLowerCase();
}

/**
 * Returns the message about a parameter that a request does not have.
 *
 * @param known The parameters that it has.
 */
export function unknownParameter(name: string, known: readonly string[]): string {
  const [start = ""] = name.split("[", 1);
  const words = [lettersOf(name), lettersOf(start)];
  const [meant] =
    meanings.find(
      ([own, others]) =>
        known.includes(own.split("[", 1)[0] ?? "") && words.some((word) => others.includes(word)),
    ) ??
    // Such as `fields[orders]` of JSON:API, or `sort[]` of a form.
    known.filter((own) => own === start && own !== name);
  const end = meant === undefined ? suggestionFor(name, known) : `; use ${meant}.`;
  return `There is no parameter ${shortened(name)}${end}`;
}
