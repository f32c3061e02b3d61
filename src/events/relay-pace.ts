/** Says how long the relay gathers new events before it reads the outbox again. */
export interface RelayPace {
  /** Records a read that found this many new events. */
  note(events: number): void;
  /** In ms; 0 for at once. */
  waitMs(): number;
}

/**
 * A read costs some 0.5 ms of CPU here and in PostgreSQL, whether it finds one event or fifty. From
 * 200 events a second on, one read in 8 ms takes what has come. Below, each event is read at once.
 */
const gathering = { fromPerSecond: 200, everyMs: 8 };

/** Time over which the rate is measured. */
const measuredMs = 100;

/** @param now In ms, never going back. */
export function createRelayPace({ now }: { readonly now: () => number }): RelayPace {
  let readAt = now();
  /** Events of the last `measuredMs`; earlier ones count ever less. */
  let recent = 0;
  const recentAt = (at: number): number => recent * Math.exp((readAt - at) / measuredMs);
  return {
    note(events) {
      const at = now();
      recent = recentAt(at) + events;
      readAt = at;
    },
    waitMs() {
      const at = now();
      const isBusy = recentAt(at) >= (gathering.fromPerSecond * measuredMs) / 1_000;
      return isBusy ? Math.max(0, readAt + gathering.everyMs - at) : 0;
    },
  };
}
