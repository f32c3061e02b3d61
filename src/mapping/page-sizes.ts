import { setBounded } from "../kit/bounded-map.ts";

/**
 * Remembers for each user how many records of a resource fit into one answer, where the asked
 * number did not.
 */
export interface PageSizes {
  /** Returns how many records to read first; undefined for as many as are asked for. */
  likely(userId: number): number | undefined;
  note(userId: number, list: { readonly asked: number; readonly size: number }): void;
}

/** Most users that are remembered for each resource. */
const maxUsers = 1000;
/** So many lists are read before a longer one is tried: to cut a list costs a connection. */
const restLists = 16;

/**
 * Creates the memory of one resource. By user, since each sees its own records: a list that does
 * not fit is read up to four times, and must not shorten another user's.
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
