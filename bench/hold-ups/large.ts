import { arrivalsOf, type HoldUp, insertNotes, secondsOf } from "./hold-up.ts";
import type { System, User } from "./system.ts";

const limitMs = 120_000;

interface Audience {
  readonly user: User;
  readonly port: number;
  readonly times: number;
  readonly events?: readonly string[];
}

async function subscribeOften({ subscribe }: System, { user, times, ...wanted }: Audience): Promise<void> {
  for (let i = 0; i < times; i++) await subscribe(user, wanted);
}

export const largeCreate: HoldUp = {
  name: "large: a record of 1 MB, created for 50 webhooks of its user, updated for 150 of an admin",
  async prepare(system) {
    const { ada, grace, openReceiver, ask } = system;
    const receiver = await openReceiver("fast");
    const { port } = receiver;
    await subscribeOften(system, { user: ada, port, times: 50 });
    // An admin gets the changes of all users, and no other user updates records.
    await subscribeOften(system, { user: grace, port, times: 150, events: ["on_update"] });
    return {
      async run() {
        let came = 0;
        const seconds = await secondsOf(async () => {
          const { id } = await ask(ada, "POST", "/resources/notes", { text: "a".repeat(999_000) });
          await ask(ada, "PUT", `/resources/notes/${Number(id)}`, { text: "b".repeat(999_000) });
          came = await arrivalsOf([receiver], { count: 200, limitMs });
        });
        return `${came} of 200 came in ${seconds.toFixed(1)} s`;
      },
    };
  },
};

export const largeRows: HoldUp = {
  name: "large: 100 rows of 1 MB by SQL, 3 webhooks",
  async prepare(system) {
    const { ada, openReceiver } = system;
    const receiver = await openReceiver("fast");
    await subscribeOften(system, { user: ada, port: receiver.port, times: 3 });
    return {
      async run() {
        let came = 0;
        const seconds = await secondsOf(async () => {
          await insertNotes(system, { userId: ada.id, count: 100, text: "repeat(md5('x'), 31000)" });
          came = await arrivalsOf([receiver], { count: 300, limitMs });
        });
        return `${came} of 300 came in ${seconds.toFixed(1)} s`;
      },
    };
  },
};

export const tooLarge: HoldUp = {
  name: "too large: rows of 17 MB by SQL, which no message may hold",
  async prepare({ ada, sql, openReceiver, subscribe }) {
    const receiver = await openReceiver("fast");
    await subscribe(ada, { port: receiver.port, resource: "texts" });
    return {
      async run() {
        const count = 3;
        await sql(
          "INSERT INTO texts (text, user_id) SELECT repeat(md5('x'), 530000), $1 FROM generate_series(1, $2::int)",
          [ada.id, count],
        );
        await sql("INSERT INTO texts (text, user_id) VALUES ('small', $1)", [ada.id]);
        const came = await arrivalsOf([receiver], { count: 1, limitMs: 10_000 });
        return `${count} rows; ${came} of 1 small one of that resource came`;
      },
      release: () => sql("DELETE FROM svc.outbox WHERE resource = 'texts'"),
    };
  },
};
