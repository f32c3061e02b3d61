import { useLocation } from "wouter";
import { usePathname, useSearch } from "wouter/use-browser-location";

/** The query parameters of the page's URL, and functions that change them. */
interface UrlState {
  readonly search: URLSearchParams;
  /**
   * Sets parameters; null removes one. Unless only the page changes, the list begins at its first
   * page. Back undoes a whole text, not each pause in its typing.
   */
  readonly change: (changes: Readonly<Record<string, string | null>>, kind?: "page" | "typing") => void;
  /** Names of the parameters that narrow the list. */
  readonly filters: readonly string[];
  /** Removes parameters. */
  readonly clear: (names: readonly string[]) => void;
}

/** Parameters of a list that narrow nothing: its page, its order and its columns. */
const others: ReadonlySet<string> = new Set(["cursor", "per_page", "sort", "columns"]);

/**
 * Holds the state of a list in the URL, so that a page can be linked, reloaded and returned to. Its
 * parameters have the names of the API.
 */
export function useUrlState(): UrlState {
  // Uses the raw query and path. The router's own values are already decoded, and a second decoding
  // would change them.
  const text = useSearch();
  const path = `~${usePathname()}`;
  const [, navigate] = useLocation();
  const search = new URLSearchParams(text);
  const change: UrlState["change"] = (changes, kind) => {
    // Uses the current URL, because a delayed search would otherwise undo later choices.
    const next = new URLSearchParams(location.search);
    const replace = kind === "typing" && Object.keys(changes).some((name) => next.has(name));
    for (const [name, value] of Object.entries(changes))
      if (value === null) next.delete(name);
      else next.set(name, value);
    if (kind !== "page") next.delete("cursor");
    const query = readable(next);
    const to = query === "" ? path : `${path}?${query}`;
    const state = stateOf(history.state);
    // An emptied text would leave the same list twice.
    if (replace && to === state?.before) history.back();
    else navigate(to, { replace, state: replace ? state : { before: `${path}${location.search}` } });
  };
  return {
    search,
    change,
    filters: [...search.keys()].filter((name) => !others.has(name)),
    clear: (names) => change(Object.fromEntries(names.map((name) => [name, null]))),
  };
}

/** State of an entry of the history: the address of the list before it. */
interface EntryState {
  readonly before: string;
}

function stateOf(state: unknown): EntryState | null {
  return typeof state === "object" && state !== null && "before" in state ? (state as EntryState) : null;
}

/** Returns the query string with brackets, commas and colons unescaped. */
function readable(search: URLSearchParams): string {
  return search
    .toString()
    .replaceAll("%5B", "[")
    .replaceAll("%5D", "]")
    .replaceAll("%2C", ",")
    .replaceAll("%3A", ":");
}
