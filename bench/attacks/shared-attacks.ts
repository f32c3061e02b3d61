import { addAccomplices, byAccomplices } from "./accomplices.ts";
import { type Attack, fresh, makeRecords, notes, removeRecords } from "./attack.ts";
import { batchOf } from "./batch-attacks.ts";
import { prefix, type Scene } from "./scene.ts";

const users = 10;
/** SQL of the first of these users: an attack may have made more. */
const owners = `(SELECT id, name FROM svc.users WHERE name LIKE 'eve %' ORDER BY id LIMIT ${users}) AS owner`;

async function makeUsers(scene: Scene): Promise<void> {
  await addAccomplices(scene, users);
  await removeRecords(scene);
}

/** Makes 100 events of each user, with records of 40 KB. */
async function makeEvents(scene: Scene): Promise<void> {
  await makeUsers(scene);
  await scene.sql(
    `INSERT INTO notes (reference, amount, text, meta, user_id)
     SELECT name || i, 1, repeat('é', 20000), '{"a":[1,2,3,{"b":"c"}]}', id FROM ${owners}, generate_series(1, 100) AS i`,
  );
}

/**
 * Makes 100 records of each user, which together are a little larger than an answer may be, 2 MiB.
 * The part that exceeds it also ends the result of the database.
 */
async function makeTooLarge(scene: Scene): Promise<void> {
  await addAccomplices(scene, users);
  await makeRecords(
    scene,
    `INSERT INTO notes (reference, amount, text, user_id)
     SELECT name || i, 1, repeat('a', 20800 + 40 * (id % 10)::int), id FROM ${owners}, generate_series(1, 100) AS i`,
  );
}

const texts = Array.from({ length: 50 }, (_, index) => ({ text: { contains: `é${index}` } }));
const filter = JSON.stringify({ resource: "notes", events: ["on_create"], filter: { or: texts } });

/** Attacks by many users at once, which shares of a user alone do not bound. */
export const sharedAttacks: readonly Attack[] = [
  {
    name: "batches of 1,000 creates of ten users",
    prepare: makeUsers,
    run: (attacker, signal) =>
      byAccomplices(users, 40, signal, (token) =>
        attacker.send({ method: "POST", path: `${notes}/batch`, body: batchOf(1_000), token }),
      ),
  },
  {
    name: "batches of 1,000 creates of 200 users",
    prepare: (scene) => addAccomplices(scene, 200),
    run: (attacker, signal) =>
      byAccomplices(200, 200, signal, (token) =>
        attacker.send({ method: "POST", path: `${notes}/batch`, body: batchOf(1_000), token }),
      ),
  },
  {
    name: "creates of 1 MB of ten users",
    prepare: makeUsers,
    run: (attacker, signal) =>
      byAccomplices(users, 40, signal, (token) =>
        attacker.send({ method: "POST", path: notes, body: fresh({ text: "a".repeat(900_000) }), token }),
      ),
  },
  {
    name: "previews of ten users",
    prepare: makeEvents,
    run: (attacker, signal) =>
      byAccomplices(users, 40, signal, (token) =>
        attacker.send({ method: "POST", path: `${prefix}/webhooks/preview`, body: filter, token }),
      ),
  },
  {
    name: "lists of 100 records of 40 KB of ten users",
    prepare: makeEvents,
    run: (attacker, signal) =>
      byAccomplices(users, 40, signal, (token) =>
        attacker.send({ method: "GET", path: `${notes}?per_page=100`, token }),
      ),
  },
  {
    name: "lists of ten users that are a little too large",
    prepare: makeTooLarge,
    run: (attacker, signal) =>
      byAccomplices(users, 40, signal, (token) =>
        attacker.send({ method: "GET", path: `${notes}?per_page=100`, token }),
      ),
  },
  {
    name: "pages of old events of ten users",
    prepare: makeEvents,
    run: (attacker, signal) =>
      byAccomplices(users, 40, signal, (token) =>
        attacker.send({ method: "GET", path: `${prefix}/events?after=0&per_page=100`, token }),
      ),
  },
  {
    name: "streams of old events of ten users",
    prepare: makeEvents,
    run: (attacker, signal) =>
      byAccomplices(users, 40, signal, (token) =>
        attacker.send({
          method: "GET",
          path: `${prefix}/events/stream?after=0`,
          token,
          leavesAfterMs: 500,
        }),
      ),
  },
];
