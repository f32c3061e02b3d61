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
  readonly waiting: Item[];
  credit: number;
}

/** What a holder may have taken, by cost, before the next one has its turn. */
const quantum = 20;

/**
 * Creates a queue by deficit round robin (Shreedhar and Varghese, 1995). In each turn, a holder
 * gets the same credit. Its next item is taken when it has the credit for it. A holder alone has it
 * all.
 *
 * @param costOf `isFirst`: no other item of the holder is taken with it so far.
 */
export function createFairQueue<Item>(
  costOf: (item: Item, given: { readonly holder: string; readonly isFirst: boolean }) => number,
): FairQueue<Item> {
  /** In the order of their turns. */
  const lines = new Map<string, Line<Item>>();
  let size = 0;
  return {
    get size() {
      return size;
    },
    add(holder, item) {
      const line = lines.get(holder);
      if (line === undefined) lines.set(holder, { waiting: [item], credit: quantum });
      else line.waiting.push(item);
      size += 1;
    },
    take(most) {
      const taken: Item[] = [];
      const holders = new Set<string>();
      let spent = 0;
      while (taken.length < most.items) {
        const [next] = lines;
        if (next === undefined) break;
        const [holder, line] = next;
        const [item] = line.waiting as [Item];
        const cost = costOf(item, { holder, isFirst: !holders.has(holder) });
        // Not only in its turn: a batch that is full does not wait for one that has no credit.
        if (taken.length > 0 && spent + cost > most.cost) break;
        if (cost > line.credit) {
          line.credit += quantum;
          lines.delete(holder);
          lines.set(holder, line);
          continue;
        }
        line.credit -= cost;
        line.waiting.shift();
        if (line.waiting.length === 0) lines.delete(holder);
        taken.push(item);
        holders.add(holder);
        spent += cost;
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
