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

/**
 * Creates the memory of one resource. By user, since each sees its own records: a list that does
 * not fit is read up to four times, and must not shorten another user's.
 */
export function createPageSizes(): PageSizes {
  const sizes = new Map<number, number>();
  return {
    likely: (userId) => sizes.get(userId),
    note(userId, { asked, size }) {
      // A little more the next time, since the large records may be gone.
      if (size < asked) setBounded(sizes, [userId, Math.ceil(size * 1.25)], maxUsers);
      else sizes.delete(userId);
    },
  };
}
