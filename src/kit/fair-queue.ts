/** Items that wait, each of a holder. What one holder has waiting holds up no other. */
export interface FairQueue<Item> {
  readonly size: number;
  add(holder: string, item: Item): void;
  /** Takes the next items, which cost so much together at most. A single one may cost more. */
  take(most: { readonly items: number; readonly cost: number }): readonly Item[];
  /** Takes all. */
  empty(): readonly Item[];
}

interface Line<Item> {
  readonly holder: string;
  readonly waiting: Item[];
  /** What had been taken of each holder, by cost, when this one's next item is due. */
  dueAt: number;
}

/**
 * Creates a queue by start-time fair queueing (Goyal, Vin and Cheng, 1996). The next item is of the
 * holder of which least was taken, by cost, since it waits. A holder alone has it all.
 *
 * @param costOf `isFirst`: no other item of the holder is in the batch. Undefined: it is to wait
 *   for the next batch.
 */
export function createFairQueue<Item>(
  costOf: (item: Item, given: { readonly holder: string; readonly isFirst: boolean }) => number | undefined,
): FairQueue<Item> {
  const lines = new Map<string, Line<Item>>();
  let size = 0;
  let clock = 0;

  function nextOf(left: ReadonlySet<Line<Item>>): Line<Item> | undefined {
    let next: Line<Item> | undefined;
    for (const line of left) if (next === undefined || line.dueAt < next.dueAt) next = line;
    return next;
  }

  return {
    get size() {
      return size;
    },
    add(holder, item) {
      const line = lines.get(holder);
      if (line === undefined) lines.set(holder, { holder, waiting: [item], dueAt: clock });
      else line.waiting.push(item);
      size += 1;
    },
    take(most) {
      const taken: Item[] = [];
      const holders = new Set<string>();
      // Those whose next item fits.
      const left = new Set(lines.values());
      let spent = 0;
      while (taken.length < most.items) {
        const line = nextOf(left);
        if (line === undefined) break;
        const { holder, waiting } = line;
        const cost = costOf(waiting[0] as Item, { holder, isFirst: !holders.has(holder) });
        if (cost === undefined || (taken.length > 0 && spent + cost > most.cost)) {
          left.delete(line);
          continue;
        }
        taken.push(waiting.shift() as Item);
        holders.add(holder);
        spent += cost;
        clock = line.dueAt;
        line.dueAt += cost;
        if (waiting.length > 0) continue;
        left.delete(line);
        lines.delete(holder);
      }
      size -= taken.length;
      return taken;
    },
    empty() {
      const all = [...lines.values()].flatMap(({ waiting }) => waiting);
      lines.clear();
      size = 0;
      return all;
    },
  };
}
