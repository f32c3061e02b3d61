import type { Taken } from "./store.ts";
import type { TakenRow } from "./store-texts.ts";

/** Returns what a statement has taken, from its rows. */
export function takenIn(rows: readonly TakenRow[]): Taken {
  const taken = rows.filter(({ flightId }) => flightId !== null);
  const deliveries = taken.map((row) => {
    const {
      flightId: _,
      removed: __,
      url,
      encryptedSecret,
      encryptedPrevious,
      encryptedHeaders,
      rateLimit,
      isActive,
      userId,
      name,
      email,
      isAdmin,
      ...delivery
    } = row;
    const user = { id: userId, name, email, isAdmin };
    const signing = { encryptedSecret, encryptedPrevious, encryptedHeaders };
    return {
      ...delivery,
      subscription: url === null ? null : { url, signing, rateLimit, isActive, user },
    };
  });
  return { flightId: taken[0]?.flightId ?? undefined, deliveries, removed: rows[0]?.removed ?? 0 };
}
