import { setBounded } from "../kit/bounded-map.ts";

/**
 * Remembers for each user the number of records of a resource that fit into one answer. It does so
 * only where the requested number did not fit.
 */
export interface PageSizes {
  /** Returns the number of records to read first; undefined for the requested number. */
  likely(userId: number): number | undefined;
  note(userId: number, list: { readonly asked: number; readonly size: number }): void;
}

/** Limit of the remembered users of each resource. */
const maxUsers = 1000;
/** Number of lists before a longer one is tried, because cutting a list costs a connection. */
const restLists = 16;

/**
 * Creates the memory of one resource. It is by user, because users see different records. A list
 * that does not fit is read up to four times, and must not shorten another user's lists.
 */
export function createPageSizes(): PageSizes {
  const sizes = new Map<number, { readonly likely: number; readonly rest: number }>();
  return {
    likely: (userId) => sizes.get(userId)?.likely,
    note(userId, { asked, size }) {
      const known = sizes.get(userId);
      if (size === asked) {
        if (known !== undefined && known.likely <= asked) sizes.delete(userId);
        return;
      }
      const isShorter = known === undefined || size < known.likely;
      const next = isShorter
        ? { likely: size, rest: restLists }
        : known.rest > 0
          ? { ...known, rest: known.rest - 1 }
          : // The large records may be gone.
            { likely: Math.min(asked, Math.ceil(size * 1.25)), rest: 0 };
      setBounded(sizes, [userId, next], maxUsers);
    },
  };
}
