import type { Attacker } from "./attacker.ts";
import {
  type Attack,
  attackerId,
  fresh,
  holdConnections,
  makeRecords,
  megabyte,
  notes,
  removeRecords,
  sends,
} from "./attack.ts";
import { batchAttacks } from "./batch-attacks.ts";
import { connectionAttacks } from "./connection-attacks.ts";
import { listAttacks } from "./list-attacks.ts";
import { prefix, type Scene } from "./scene.ts";
import { sharedAttacks } from "./shared-attacks.ts";

function makeLarge(scene: Scene): Promise<void> {
  return makeRecords(
    scene,
    `INSERT INTO notes (reference, amount, text, user_id)
     SELECT 'large-' || i, 1, repeat(md5(i::text), 31000), ${attackerId} FROM generate_series(1, 100) AS i`,
  );
}

/** Makes records whose characters take six bytes each in JSON. */
function makeEscaped(scene: Scene): Promise<void> {
  return makeRecords(
    scene,
    `INSERT INTO notes (reference, amount, text, user_id)
     SELECT 'escaped-' || i, 1, repeat(chr(1), 900000), ${attackerId} FROM generate_series(1, 2) AS i`,
  );
}

/** Requests lists, and reads no answer. */
const unread = (attacker: Attacker, perPage: number, signal: AbortSignal): Promise<void> =>
  holdConnections(attacker, {
    width: 300,
    localAddress: "127.0.0.2",
    greet: (socket) => {
      socket.pause();
      socket.write(attacker.head({ method: "GET", path: `${notes}?per_page=${perPage}` }));
    },
    signal,
  });

function makeLong(scene: Scene): Promise<void> {
  return makeRecords(
    scene,
    `INSERT INTO notes (reference, amount, text, user_id)
     SELECT 'long-' || i, 1, repeat('ab ', 20000), ${attackerId} FROM generate_series(1, 3000) AS i`,
  );
}

/** Makes events of 20 records with non-ASCII letters. */
async function makeAccented(scene: Scene): Promise<void> {
  await removeRecords(scene);
  await scene.sql(
    `INSERT INTO notes (reference, amount, text, user_id)
     SELECT 'accented-' || i, 1, repeat('é', 500000), ${attackerId} FROM generate_series(1, 20) AS i`,
  );
}

const texts = Array.from({ length: 50 }, (_, index) => ({ text: { contains: `é${index}` } }));

export const attacks: readonly Attack[] = [
  {
    name: "amounts of 150,000 digits",
    run: sends(8, () => ({
      method: "POST",
      path: notes,
      body: fresh({ amount: `${"1".repeat(150_000)}x` }),
    })),
  },
  {
    name: "lists of 100 records of 1 MB",
    prepare: makeLarge,
    run: sends(20, () => ({ method: "GET", path: `${notes}?per_page=100` })),
  },
  {
    name: "lists of 1 MB records that nobody reads",
    prepare: makeLarge,
    run: (attacker, signal) => unread(attacker, 100, signal),
  },
  {
    name: "lists of two records of 5 MB of JSON that nobody reads",
    prepare: makeEscaped,
    run: (attacker, signal) => unread(attacker, 2, signal),
  },
  {
    name: "200 creates of 1 MB at once",
    prepare: removeRecords,
    run: sends(200, () => ({ method: "POST", path: notes, body: fresh({ text: megabyte }) })),
  },
  {
    name: "creates of 1 MB whose clients leave",
    prepare: removeRecords,
    run: sends(200, () => ({
      method: "POST",
      path: notes,
      body: fresh({ text: megabyte }),
      leavesAfterMs: 50,
    })),
  },
  {
    name: "200 bodies of 1 MB that are refused",
    run: sends(200, () => ({ method: "POST", path: notes, body: fresh({ amount: "none", text: megabyte }) })),
  },
  {
    name: "bodies of 330,000 objects",
    run: sends(200, () => ({
      method: "POST",
      path: notes,
      body: fresh({ meta: "@" }).replace('"@"', `[${"{},".repeat(330_000)}0]`),
    })),
  },
  {
    name: "Json with Prisma's own keys",
    run: sends(8, () => ({
      method: "POST",
      path: notes,
      body: fresh({ meta: { a: { __prismaRawParameters__: { $type: "Json", value: "{}" } } } }),
    })),
  },
  {
    name: "bodies over the limit, on kept connections",
    run: sends(50, () => ({ method: "POST", path: notes, body: fresh({ text: megabyte.repeat(2) }) })),
  },
  {
    name: "searches of 100 characters over long columns",
    prepare: makeLong,
    run: sends(100, () => ({ method: "GET", path: `${notes}?search=${"ab%20".repeat(33)}c` })),
  },
  {
    name: "5,000 silent connections",
    run: (attacker, signal) =>
      holdConnections(attacker, { width: 5000, localAddress: "127.0.0.2", greet: () => undefined, signal }),
  },
  {
    name: "tokens that do not exist",
    run: sends(100, () => ({
      method: "GET",
      path: notes,
      token: `svc_${"x".repeat(43)}`,
      localAddress: "127.0.0.2",
    })),
  },
  {
    name: "previews of a filter with 50 texts on 1 MB records",
    prepare: makeAccented,
    run: sends(20, () => ({
      method: "POST",
      path: `${prefix}/webhooks/preview`,
      body: JSON.stringify({ resource: "notes", events: ["on_create"], filter: { or: texts } }),
    })),
  },
  {
    name: "pages of events of 1 MB records",
    prepare: makeAccented,
    run: sends(20, () => ({ method: "GET", path: `${prefix}/events?after=0&per_page=100` })),
  },
  ...connectionAttacks,
  ...batchAttacks,
  ...listAttacks,
  ...sharedAttacks,
];
