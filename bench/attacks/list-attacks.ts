import { callerOf } from "../call-api.ts";
import { addAccomplices, byAccomplices } from "./accomplices.ts";
import { type Attack, attackerId, makeRecords, notes, sends, together } from "./attack.ts";
import type { Scene } from "./scene.ts";

/** Makes many small records of one user, for lists without a fitting index. */
function makeMany(scene: Scene): Promise<void> {
  return makeRecords(
    scene,
    `INSERT INTO notes (reference, amount, meta, text, user_id)
     SELECT 'many-' || i, i % 1000, jsonb_build_object('kind', i % 7), md5(i::text), ${attackerId} FROM generate_series(1, 100000) AS i`,
  );
}

/** Makes five users, each with many records. */
async function makeAccomplices(scene: Scene): Promise<void> {
  await addAccomplices(scene, 5);
  await makeRecords(
    scene,
    `INSERT INTO notes (reference, amount, text, user_id)
     SELECT name || i, 1, md5(i::text), id FROM svc.users, generate_series(1, 50000) AS i WHERE name LIKE 'eve %'`,
  );
}

/** Makes 100 records, each with 100 records that refer to it. */
async function makeParents(scene: Scene): Promise<void> {
  await makeRecords(
    scene,
    `INSERT INTO notes (reference, amount, user_id) SELECT 'parent-' || i, 1, ${attackerId} FROM generate_series(1, 100) AS i`,
  );
  await scene.sql(
    `INSERT INTO comments (text, note_id) SELECT repeat('a comment ', 50), note.id
     FROM notes AS note, generate_series(1, 100) WHERE note.user_id = ${attackerId}`,
  );
}

/** The maximum number of conditions of a request, each of which most records meet. */
const conditions = [
  ...Array.from({ length: 24 }, (_, index) => `filter[or][${index}][text][contains]=${index.toString(16)}`),
  ...Array.from({ length: 24 }, (_, index) => `filter[and][${index}][reference][ne]=no-${index}`),
  "filter[amount][gte]=0",
  "filter[id][gt]=0",
].join("&");

/** Returns the path of a later page. */
async function deepPage(scene: Pick<Scene, "port" | "token">, path: string): Promise<string> {
  const callApi = callerOf(scene);
  let cursor = "";
  for (let page = 0; page < 5; page += 1) {
    const { next_cursor: next } = await callApi("GET", `${path}&cursor=${cursor}`);
    if (typeof next === "string") cursor = next;
  }
  return `${path}&cursor=${cursor}`;
}

export const listAttacks: readonly Attack[] = [
  {
    name: "later pages by cursor with 50 conditions",
    prepare: makeMany,
    async run(attacker, signal) {
      const path = await deepPage(attacker, `${notes}?${conditions}&sort=-amount,text&per_page=100`);
      await together(100, signal, () => attacker.send({ method: "GET", path }));
    },
  },
  {
    name: "long lists of five users",
    prepare: makeAccomplices,
    async run(attacker, signal) {
      const path = `${notes}?${conditions}&sort=text&per_page=1`;
      await byAccomplices(5, 25, signal, (token) => attacker.send({ method: "GET", path, token }));
    },
  },
  {
    name: "sorts of 100,000 records without an index",
    prepare: makeMany,
    run: sends(100, () => ({
      method: "GET",
      path: `${notes}?sort=-text,amount,-created_at&per_page=100&page=900`,
    })),
  },
  {
    name: "exact counts of wide filters",
    prepare: makeMany,
    run: sends(100, () => ({
      method: "GET",
      path: `${notes}?count=exact&per_page=1&filter[text][contains]=a&filter[meta.kind][ne]=9`,
    })),
  },
  {
    name: "includes of 100 records for each of 100",
    prepare: makeParents,
    run: sends(100, () => ({ method: "GET", path: `${notes}?include=comments&per_page=100` })),
  },
  {
    name: "groups of conditions that no record meets",
    prepare: makeMany,
    run: sends(100, () => ({
      method: "GET",
      path: `${notes}?cursor=&filter[not][text][contains]=a&filter[text][contains]=a`,
    })),
  },
];
