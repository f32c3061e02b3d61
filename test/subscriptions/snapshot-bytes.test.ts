import { expect } from "chai";
import { snapshotOf } from "../../src/events/snapshot-sql.ts";
import { coreOfSuite } from "../support/core-database.ts";
import { makeCaller } from "../support/callers.ts";
import { definition, definitionsOf, field, keyField, ownersOnly } from "../support/definitions.ts";
import { eligibilityOf } from "../support/eligibility.ts";

const files = definition({
  name: "files",
  fields: [
    keyField(),
    field("hash", "Bytes", { isOptional: true }),
    field("parts", "Bytes", { isList: true }),
    // `svc-admin import` writes a domain of a list like this.
    field("pieces", "Bytes", { isList: true, native: "pieces", isOptional: true }),
  ],
  isAdmin: { kind: "nobody" },
});
const [one, other] = ["3q2+7wD/", "AQ=="];
const stored = [one, other].map((text) => Buffer.from(text, "base64"));

/** The rule and the records that it finds, of which the last has neither hash nor parts. */
const cases: readonly (readonly [where: Readonly<Record<string, unknown>>, ids: readonly string[]])[] = [
  [{ hash: one }, ["1"]],
  [{ hash: { not: one } }, ["2"]],
  [{ hash: null }, ["3", "4"]],
  [{ parts: { has: one } }, ["2"]],
  [{ parts: { hasEvery: [other, one] } }, ["2"]],
  [{ parts: { equals: [one, other] } }, ["2"]],
  [{ NOT: { parts: { has: one } } }, ["1", "3"]],
  [{ parts: { isEmpty: true } }, ["3"]],
  [{ pieces: { isEmpty: true } }, ["4"]],
  [{ NOT: { pieces: { isEmpty: true } } }, ["1"]],
];

describe("access.read by a field of Bytes", () => {
  const core = coreOfSuite();
  const events = new Map<string, string>();

  before(async () => {
    await core.sql("CREATE DOMAIN pieces AS bytea[]");
    await core.sql("CREATE TABLE files (id int PRIMARY KEY, hash bytea, parts bytea[], pieces pieces)");
    await core.sql("INSERT INTO files VALUES (1, $1, ARRAY[$2, NULL]::bytea[], ARRAY[$1]::bytea[])", stored);
    await core.sql("INSERT INTO files VALUES (2, $2, ARRAY[$1, $2]::bytea[])", stored);
    await core.sql("INSERT INTO files VALUES (3, NULL, '{}', NULL), (4, NULL, NULL, '{}')");
    const made = await core.sql<{ readonly event: string; readonly id: string }>(
      `INSERT INTO svc.events (resource, trigger, record_id, snapshot)
       SELECT 'files', 'on_create', id, ${snapshotOf(files, "t")} FROM files AS t
       RETURNING id::text AS event, record_id AS id`,
    );
    for (const { event, id } of made) events.set(event, id);
  });

  for (const [where, ids] of cases)
    it(`decides on events like on records: ${JSON.stringify(where)}`, async () => {
      const read = { kind: "filter", where } as const;
      const definitions = definitionsOf({ ...files, access: { ...ownersOnly, read } });
      const user = makeCaller({ id: 7, name: "Ada", email: "ada@example.com", isAdmin: false });
      const pairs = [...events.keys()].map((id) => ({
        event: { id, resource: "files", owner_id: null },
        user,
      }));

      const verdicts = await eligibilityOf(definitions, { sql: core.sql }).judge(pairs);

      expect([...events.values()].filter((_, index) => verdicts[index])).to.have.members(ids);
    });
});
