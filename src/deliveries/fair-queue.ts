/**
 * A queue of the items of several holders. The items of one holder do not delay those of another.
 */
export interface FairQueue<Item> {
  readonly size: number;
  sizeOf(holder: string): number;
  add(holder: string, item: Item): void;
  /** Takes the next items, within a number and a total cost. A single item may cost more. */
  take(most: { readonly items: number; readonly cost: number }): readonly Item[];
  /** Takes all items. */
  empty(): readonly Item[];
}

interface HolderLine<Item> {
  readonly holder: string;
  readonly waiting: Item[];
  /** Virtual start time of the next item: the cost after which it is due. */
  dueAt: number;
}

/**
 * Creates a queue by start-time fair queueing (Goyal, Vin and Cheng, 1996). The next item belongs
 * to the holder whose items have cost least since it began to wait. A holder that waits alone gets
 * every turn.
 *
 * @param costOf Returns the cost of an item; undefined when it must wait for the next batch.
 *   `isFirst` tells that the batch has no other item of the holder yet.
 * @param costInBatch Returns what an item counts in the total cost of its batch. Default: its cost.
 */
export function createFairQueue<Item>(
  costOf: (item: Item, given: { readonly holder: string; readonly isFirst: boolean }) => number | undefined,
  costInBatch: (item: Item, cost: number) => number = (_item, cost) => cost,
): FairQueue<Item> {
  const lines = new Map<string, HolderLine<Item>>();
  let size = 0;
  let clock = 0;

  function nextOf(left: ReadonlySet<HolderLine<Item>>): HolderLine<Item> | undefined {
    let next: HolderLine<Item> | undefined;
    for (const line of left) if (next === undefined || line.dueAt < next.dueAt) next = line;
    return next;
  }

  return {
    get size() {
      return size;
    },
    sizeOf: (holder) => lines.get(holder)?.waiting.length ?? 0,
    add(holder, item) {
      const line = lines.get(holder);
      if (line === undefined) lines.set(holder, { holder, waiting: [item], dueAt: clock });
      else line.waiting.push(item);
      size += 1;
    },
    take(most) {
      const taken: Item[] = [];
      const holders = new Set<string>();
      // Holders whose next item may still fit.
      const left = new Set(lines.values());
      let spent = 0;
      while (taken.length < most.items) {
        const line = nextOf(left);
        if (line === undefined) break;
        const { holder, waiting } = line;
        const item = waiting[0] as Item;
        const cost = costOf(item, { holder, isFirst: !holders.has(holder) });
        const more = cost === undefined ? Infinity : costInBatch(item, cost);
        if (cost === undefined || (taken.length > 0 && spent + more > most.cost)) {
          left.delete(line);
          continue;
        }
        taken.push(waiting.shift() as Item);
        holders.add(holder);
        spent += more;
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
