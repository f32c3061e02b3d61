/** Remembers for each user how many records of a resource fit into one answer, where fewer did than were asked for. */
export interface PageSizes {
  /** How many to read for at first; undefined for as many as are asked for. */
  likely(userId: number): number | undefined;
  note(userId: number, list: { readonly asked: number; readonly size: number }): void;
}

/** Users that are remembered, of each resource. */
const maxUsers = 1000;

/** By user, as each sees records of its own: a list that does not fit is read up to four times, and one user's must not shorten another's. */
export function createPageSizes(): PageSizes {
  const sizes = new Map<number, number>();
  return {
    likely: (userId) => sizes.get(userId),
    note(userId, { asked, size }) {
      sizes.delete(userId);
      if (size >= asked) return;
      // A little more the next time, since the large ones may be gone.
      sizes.set(userId, Math.ceil(size * 1.25));
      const [oldest] = sizes.keys();
      if (sizes.size > maxUsers && oldest !== undefined) sizes.delete(oldest);
    },
  };
}
