import { setTimeout as sleep } from "node:timers/promises";
import { startPeer } from "../peer.ts";
import { arrivalsOf, type HoldUp, insertNotes, secondsOf } from "./hold-up.ts";
import type { VictimAnswer, VictimQuestion } from "./victim.ts";

const limitMs = 300_000;
/** Rows of an INSERT. */
const batch = 500;

export const slow: HoldUp = {
  name: "slow: a burst for a receiver that takes 1 s, which then is fast",
  async prepare(system, { burst }) {
    const receiver = await system.openReceiver("slow");
    await system.subscribe(system.ada, { port: receiver.port });
    return {
      async run(durationMs) {
        await insertNotes(system, { userId: system.ada.id, count: burst });
        await sleep(durationMs);
        const before = await receiver.count();
        await receiver.behave("fast");
        const seconds = await secondsOf(() => arrivalsOf([receiver], { count: burst, limitMs }));
        const rate = (((await receiver.count()) - before) / seconds).toFixed(0);
        return `${before} of ${burst} while slow, then ${rate} a second; through ${seconds.toFixed(0)} s after`;
      },
    };
  },
};

export const hanging: HoldUp = {
  name: "hanging: 48 webhooks of one user on four ports that hang",
  async prepare({ ada, sql, subscribe, openReceiver }) {
    const receivers = await Promise.all([1, 2, 3, 4].map(() => openReceiver("hanging")));
    for (let i = 0; i < 12; i++) for (const { port } of receivers) await subscribe(ada, { port });
    return {
      async run(durationMs) {
        let changes = 0;
        for (const endsAt = performance.now() + durationMs; performance.now() < endsAt; changes += 1) {
          await sql("INSERT INTO notes (text, user_id) VALUES ('a change', $1)", [ada.id]);
          await sleep(200);
        }
        const posts = await arrivalsOf(receivers, { count: 0, limitMs: 0 });
        return `${changes} changes, ${posts} POSTs that hang`;
      },
    };
  },
};

export const dump: HoldUp = {
  name: "dump: a transaction that stays open, as pg_dump's",
  async prepare(system, { dumped }) {
    const { ada, pool, openReceiver, subscribe } = system;
    const receiver = await openReceiver("fast");
    await subscribe(ada, { port: receiver.port });
    return {
      async run() {
        const client = await pool.connect();
        const rates: string[] = [];
        try {
          await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
          await client.query("SELECT count(*) FROM notes");
          const third = Math.round(dumped / 3 / batch) * batch;
          for (let made = 0; rates.length < 3;) {
            const seconds = await secondsOf(async () => {
              for (const end = third * (rates.length + 1); made < end; made += batch) {
                await insertNotes(system, { userId: ada.id, count: batch });
                // As many as the relay allows in flight.
                await arrivalsOf([receiver], { count: made - batch, limitMs });
              }
              await arrivalsOf([receiver], { count: made, limitMs });
            });
            rates.push((third / seconds).toFixed(0));
          }
        } finally {
          await client.query("ROLLBACK");
          client.release();
        }
        return `${dumped} changes; by thirds, ${rates.join(", ")} a second`;
      },
    };
  },
};

export const bulk: HoldUp = {
  name: "bulk: one UPDATE of many rows, to a fast receiver",
  async prepare(system, sizes) {
    const { ada, sql, subscribe, openReceiver, notesUrl, place } = system;
    const receiver = await openReceiver("fast");
    await subscribe(ada, { port: receiver.port, events: ["on_update"] });
    await sql("ALTER TABLE notes DISABLE TRIGGER USER");
    await insertNotes(system, { userId: ada.id, count: sizes.bulk });
    await sql("ALTER TABLE notes ENABLE TRIGGER USER");
    // The same user's later changes.
    const later = startPeer<VictimQuestion, VictimAnswer>("hold-ups/victim.ts");
    const { port } = await later.ask({ kind: "open" });
    await subscribe(ada, { port });
    return {
      async run() {
        const update = await secondsOf(() =>
          sql("UPDATE notes SET text = 'changed' WHERE user_id = $1", [ada.id]),
        );
        const job = {
          notesUrl,
          token: ada.token,
          userId: ada.id,
          databaseUrl: place.ownUrl,
          ratePerSecond: 5,
        };
        await later.ask({ kind: "begin", job });
        const seconds = await secondsOf(() => arrivalsOf([receiver], { count: sizes.bulk, limitMs }));
        const { phases, lost } = await later.ask({ kind: "end", limitMs: 60_000 });
        later.end();
        const { p50, p99 } = phases.before.latencyMs;
        const came = await receiver.count();
        return (
          `${came} of ${sizes.bulk} came ${seconds.toFixed(0)} s after an UPDATE of ${update.toFixed(0)} s; ` +
          `its user's own later changes: p50 ${p50.toFixed(0)}, p99 ${p99.toFixed(0)} ms, lost ${lost}`
        );
      },
    };
  },
};
