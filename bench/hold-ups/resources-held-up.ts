import { setTimeout as sleep } from "node:timers/promises";
import { arrivalsOf, type HoldUp } from "./hold-up.ts";

export const subscriptions: HoldUp = {
  name: "subscriptions: of other users, to the same resource",
  async prepare({ sql }, sizes) {
    await sql(`INSERT INTO svc.users (id, name, email)
      SELECT id, 'User', id || '@example.com' FROM generate_series(1001, 2000) AS id`);
    return {
      async run() {
        await sql(
          `INSERT INTO svc.subscriptions (user_id, url, resource, events, encrypted_secret, secret_hint)
          SELECT 1001 + id % 1000, 'http://127.0.0.1:9/' || id, 'notes', '{on_create}', '', 'hint'
          FROM generate_series(1, $1::int) AS id`,
          [sizes.subscriptions],
        );
        return `${sizes.subscriptions} subscriptions`;
      },
      release: () => sql("DELETE FROM svc.subscriptions WHERE user_id BETWEEN 1001 AND 2000"),
    };
  },
};

export const poison: HoldUp = {
  name: "poison: events of another resource whose transform throws",
  async prepare({ ada, sql, subscribe, openReceiver, api, dispatcher }, sizes) {
    const { port } = await openReceiver("fast");
    await subscribe(ada, { port, resource: "poisons" });
    const logged = (): number =>
      Buffer.byteLength(api.program.written()) + Buffer.byteLength(dispatcher.program.written());
    return {
      async run(durationMs) {
        const [before, startedAt] = [logged(), performance.now()];
        await sql("INSERT INTO poisons (user_id) SELECT $1 FROM generate_series(1, $2::int)", [
          ada.id,
          sizes.poisoned,
        ]);
        await sleep(durationMs - (performance.now() - startedAt));
        const rate = (logged() - before) / ((performance.now() - startedAt) / 1000);
        return `${sizes.poisoned} events, ${rate.toFixed(0)} bytes of log a second`;
      },
      release: () => sql("DELETE FROM svc.outbox WHERE resource = 'poisons'"),
    };
  },
};

export const lock: HoldUp = {
  name: "lock: on a table that another resource includes",
  async prepare({ ada, sql, pool, subscribe, openReceiver }) {
    const receiver = await openReceiver("fast");
    await subscribe(ada, { port: receiver.port, resource: "visits" });
    await sql("INSERT INTO places (id, name) VALUES (1, 'Here')");
    // The foreign key of a new row reads its place, so the lock would block the insert.
    await sql("ALTER TABLE visits DISABLE TRIGGER ALL");
    await sql("ALTER TABLE visits ENABLE TRIGGER USER");
    let visits = 0;
    return {
      async run(durationMs) {
        const client = await pool.connect();
        try {
          await client.query("BEGIN; LOCK TABLE places IN ACCESS EXCLUSIVE MODE");
          for (const endsAt = performance.now() + durationMs; performance.now() < endsAt;) {
            await sql("INSERT INTO visits (place_id, user_id) VALUES (1, $1)", [ada.id]);
            visits += 1;
            await sleep(100);
          }
        } finally {
          await client.query("ROLLBACK");
          client.release();
        }
        const startedAt = performance.now();
        const came = await arrivalsOf([receiver], { count: visits, limitMs: 60_000 });
        const seconds = (performance.now() - startedAt) / 1000;
        return `${came} of ${visits} events of that resource came, ${seconds.toFixed(1)} s after the lock`;
      },
    };
  },
};
