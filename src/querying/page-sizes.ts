import { setBounded } from "../kit/bounded-map.ts";

/**
 * Remembers the number of records of a resource that fit into one answer. It does so only when the
 * requested number did not fit. Each user has a number for each part of the records that a list
 * shows.
 */
export interface PageSizes {
  /**
   * Returns the number of records to read first; undefined for the requested number.
   *
   * @param part Text that tells the shown part; by default, the records are whole.
   */
  likely(userId: number, part?: string): number | undefined;
  note(userId: number, list: { readonly asked: number; readonly size: number; readonly part?: string }): void;
}

const maxUsers = 1000;
const maxParts = 16;
/** Limit in characters. Longer parts that begin alike share a number. */
const longestPart = 200;
/** Number of lists before a longer one is tried, because cutting a list costs a connection. */
const restLists = 16;

/**
 * Creates the memory of one resource. It is by user, because users see different records. One
 * user's large records must not shorten another user's lists. A list that does not fit is read up
 * to four times.
 */
export function createPageSizes(): PageSizes {
  const users = new Map<number, Map<string, { readonly likely: number; readonly rest: number }>>();
  return {
    likely: (userId, part = "") => users.get(userId)?.get(part.slice(0, longestPart))?.likely,
    note(userId, { asked, size, part = "" }) {
      const sizes = users.get(userId) ?? new Map<string, never>();
      const key = part.slice(0, longestPart);
      const known = sizes.get(key);
      if (size === asked) {
        if (known !== undefined && known.likely <= asked) sizes.delete(key);
        return;
      }
      const isShorter = known === undefined || size < known.likely;
      const next = isShorter
        ? { likely: size, rest: restLists }
        : known.rest > 0
          ? { ...known, rest: known.rest - 1 }
          : // The large records may be gone.
            { likely: Math.min(asked, Math.ceil(size * 1.25)), rest: 0 };
      setBounded(sizes, [key, next], maxParts);
      setBounded(users, [userId, sizes], maxUsers);
    },
  };
}
