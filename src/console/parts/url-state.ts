import { useLocation } from "wouter";
import { usePathname, useSearch } from "wouter/use-browser-location";

/** What stands behind the `?` of the page, and how to change it. */
export interface UrlState {
  readonly search: URLSearchParams;
  /** Sets parameters, null removes one. Another list begins at its first page. */
  readonly change: (changes: Readonly<Record<string, string | null>>, isPage?: boolean) => void;
  /** Replaces all parameters. */
  readonly replace: (search: URLSearchParams) => void;
}

/**
 * Holds the state of a list in the URL: a page can be linked, loaded again and come back to.
 * Its parameters have the names of the API.
 */
export function useUrlState(): UrlState {
  // Both raw: the router's own are decoded once, and decoded again they are another value.
  const text = useSearch();
  const path = `~${usePathname()}`;
  const [, navigate] = useLocation();
  const search = new URLSearchParams(text);
  const replace = (next: URLSearchParams): void => {
    const query = readable(next);
    navigate(query === "" ? path : `${path}?${query}`);
  };
  return {
    search,
    replace,
    change: (changes, isPage = false) => {
      // What is there now: a search that waits for a pause is behind what was chosen since.
      const next = new URLSearchParams(location.search);
      for (const [name, value] of Object.entries(changes))
        if (value === null) next.delete(name);
        else next.set(name, value);
      if (!isPage) next.delete("cursor");
      replace(next);
    },
  };
}

/** Writes parameters with their brackets, commas and colons as they are. */
function readable(search: URLSearchParams): string {
  return search
    .toString()
    .replaceAll("%5B", "[")
    .replaceAll("%5D", "]")
    .replaceAll("%2C", ",")
    .replaceAll("%3A", ":");
}
