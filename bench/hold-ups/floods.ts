import { setTimeout as sleep } from "node:timers/promises";
import type { Manner } from "./receivers.ts";
import { type HoldUp, insertNotes, type NewNotes } from "./hold-up.ts";

const webhooks = 50;

interface Flood extends Pick<NewNotes, "count" | "text"> {
  readonly name: string;
  readonly everyMs: number;
  /** Manner of the receiver; default: fast. */
  readonly manner?: Manner;
}

/**
 * Makes changes of one user for as many webhooks as a user may have, more than the dispatcher can
 * handle.
 */
function createFlood({ name, everyMs, manner = "fast", ...notes }: Flood): HoldUp {
  return {
    name,
    async prepare(system) {
      const { ada, openReceiver, subscribe } = system;
      const receiver = await openReceiver(manner);
      for (let i = 0; i < webhooks; i++) await subscribe(ada, { port: receiver.port });
      return {
        async run(durationMs) {
          let count = 0;
          for (const endsAt = performance.now() + durationMs; performance.now() < endsAt;) {
            await insertNotes(system, { userId: ada.id, ...notes });
            count += notes.count;
            await sleep(everyMs);
          }
          return `${count} records, ${await receiver.count()} of ${webhooks * count} deliveries came`;
        },
      };
    },
  };
}

export const flood = createFlood({
  name: `flood: 1,000 records a second of a user with ${webhooks} webhooks`,
  everyMs: 100,
  count: 100,
});

export const stream = createFlood({
  name: `stream: 10 records of 1 MB a second of a user with ${webhooks} webhooks`,
  everyMs: 100,
  count: 1,
  text: "repeat(md5('x'), 31000)",
});

export const failing = createFlood({
  name: `failing: 200 records a second of a user with ${webhooks} webhooks that answer 500`,
  everyMs: 100,
  count: 20,
  manner: "failing",
});

export const batches: HoldUp = {
  name: `batches: of 1,000 creates each, one after the other, of a user with ${webhooks} webhooks`,
  async prepare({ ada, openReceiver, subscribe, ask }) {
    const receiver = await openReceiver("fast");
    for (let i = 0; i < webhooks; i++) await subscribe(ada, { port: receiver.port });
    const data = { text: "a change" };
    const operations = Array.from({ length: 1_000 }, () => ({ method: "create", data }));
    return {
      async run(durationMs) {
        let count = 0;
        for (const endsAt = performance.now() + durationMs; performance.now() < endsAt; count++)
          await ask(ada, "POST", "/resources/notes/batch", { operations });
        return `${count} batches, ${await receiver.count()} of ${webhooks * 1_000 * count} deliveries came`;
      },
    };
  },
};
