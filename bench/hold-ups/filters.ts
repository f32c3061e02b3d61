import { setTimeout as sleep } from "node:timers/promises";
import { type HoldUp, insertNotes } from "./hold-up.ts";

const perSecond = 40;

/**
 * 50 webhooks with 50 filter texts each search 3 KB of each record 2,500 times: 8 million steps,
 * the most for one event.
 */
export const filters: HoldUp = {
  name: `filters: 50 webhooks with 50 texts each, on ${perSecond} records of 3 KB a second of their user`,
  async prepare(system) {
    const { ada, openReceiver, subscribe } = system;
    const receiver = await openReceiver("fast");
    for (let i = 0; i < 50; i++) {
      const filter = {
        or: Array.from({ length: 50 }, (_, part) => ({ text: { contains: `${i} ${part}` } })),
      };
      await subscribe(ada, { port: receiver.port, filter });
    }
    return {
      async run(durationMs) {
        let count = 0;
        for (const endsAt = performance.now() + durationMs; performance.now() < endsAt; count++) {
          await insertNotes(system, { userId: ada.id, count: 1, text: "repeat(md5('x') || ' ', 97)" });
          await sleep(1000 / perSecond);
        }
        return `${count} records, ${await receiver.count()} deliveries that no filter asked for`;
      },
    };
  },
};
