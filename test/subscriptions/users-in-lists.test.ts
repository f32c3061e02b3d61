import { expect } from "chai";
import type { Field, FieldType } from "../../src/mapping/definition.ts";
import { snapshotOf } from "../../src/events/snapshot-sql.ts";
import { conditionText, createParameters } from "../../src/querying/condition-text.ts";
import { createAccessConditions } from "../../src/resources/access.ts";
import { makeCaller } from "../support/callers.ts";
import { coreOfSuite } from "../support/core-database.ts";
import { definition, definitionsOf, field, keyField, ownersOnly } from "../support/definitions.ts";
import { eligibilityOf } from "../support/eligibility.ts";

const list = (name: string, type: FieldType, rest: Partial<Field> = {}): Field =>
  field(name, type, { isList: true, ...rest });

const columns: readonly (readonly [Field, string])[] = [
  [list("ints", "Int"), "smallint[]"],
  [list("bigs", "BigInt"), "bigint[]"],
  [list("floats", "Float"), "double precision[]"],
  [list("decimals", "Decimal"), "numeric(12, 2)[]"],
  [list("texts", "String"), "text[]"],
  [list("shorts", "String"), "varchar(40)[]"],
  [list("folded", "String", { native: "citext" }), "citext[]"],
  [field("owner", "BigInt", { isOptional: true }), "bigint"],
  [field("share", "Decimal", { isOptional: true }), "numeric(12, 2)"],
  [field("address", "String", { native: "citext", isOptional: true }), "citext"],
];
const boards = definition({
  name: "boards",
  fields: [keyField(), ...columns.map(([one]) => one)],
  isAdmin: { kind: "nobody" },
});
const users = [7, 8].map((id) =>
  makeCaller({ id, name: "Ada", email: `a${id}@example.com`, isAdmin: false }),
);

const numbers = ["ints", "bigs", "floats", "decimals", "owner", "share"];
const valueOf = (name: string): string => (numbers.includes(name) ? "$user.id" : "$user.email");
const rules = [
  ...columns
    .filter(([{ isList }]) => isList)
    .flatMap(([{ name }]) => {
      const value = valueOf(name);
      const more = numbers.includes(name) ? 9 : "x@example.com";
      return [
        { has: value },
        { hasSome: [value, more] },
        { hasEvery: [value, more] },
        { equals: [more, value] },
      ].flatMap((filter) => [{ [name]: filter }, { NOT: { [name]: filter } }]);
    }),
  { owner: { in: ["$user.id", 5_000_000_000] } },
  { NOT: { share: { in: [1.5, "$user.id"] } } },
  { address: "$user.email" },
  { address: { not: "$user.email" } },
  { address: { in: ["x@example.com", "$user.email"] } },
];

/**
 * Columns stand for the values of users there, which have a type, as parameters have none. The
 * search path may lack the schema of an extension.
 */
for (const schema of ["public", "elsewhere"])
  describe(`access.read by the users in a list, in a native type of the schema ${schema} and among other values`, () => {
    const core = coreOfSuite();
    const events = new Map<string, string>();

    before(async () => {
      await core.sql(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
      await core.sql(`CREATE EXTENSION citext SCHEMA ${schema}`);
      const types = columns.map(
        ([{ column }, type]) => `${column} ${type.replace("citext", `${schema}.citext`)}`,
      );
      await core.sql(`CREATE TABLE boards (id int PRIMARY KEY, ${types.join(", ")})`);
      for (const [id, ids, addresses] of [
        [1, "{7}", "{A7@example.com}"],
        [2, "{9,7}", "{x@example.com,a7@example.com}"],
        [3, "{8,NULL}", "{NULL,a8@example.com}"],
        [4, "{}", "{}"],
        [5, null, null],
      ] as const) {
        const values = columns.map(([{ name, isList }]) => {
          const given = numbers.includes(name) ? ids : addresses;
          const last = given?.slice(1, -1).split(",").at(-1);
          return isList ? given : last === "NULL" ? "5000000000" : last || null;
        });
        const places = values.map((_, index) => `$${index + 2}`).join(", ");
        await core.sql(`INSERT INTO boards VALUES ($1, ${places})`, [id, ...values]);
      }
      for (const { id, email } of users)
        await core.sql("INSERT INTO svc.users (id, name, email) VALUES ($1, 'Ada', $2)", [id, email]);
      await core.sql(`INSERT INTO svc.subscriptions (user_id, url, resource, events, encrypted_secret, secret_hint)
      SELECT id, 'http://localhost', 'boards', '{on_create}', '', 'abcd' FROM svc.users`);
      const made = await core.sql<{ readonly event: string; readonly id: string }>(
        `INSERT INTO svc.events (resource, trigger, record_id, snapshot)
       SELECT 'boards', 'on_create', id, ${snapshotOf(boards, "t")} FROM boards AS t
       RETURNING id::text AS event, record_id AS id`,
      );
      for (const { event, id } of made) events.set(event, id);
    });

    const itDecidesAlike = (crowd: string): void => {
      for (const where of rules)
        it(`decides on events like on records, among ${crowd} webhooks: ${JSON.stringify(where)}`, async () => {
          const read = { kind: "filter", where } as const;
          const ruled = { ...boards, access: { ...ownersOnly, read } };
          const definitions = definitionsOf(ruled);
          const judged = [...events.keys()].map((id) => ({ id, resource: "boards", owner_id: null }));
          const eligibility = eligibilityOf(definitions, { sql: core.sql });
          const { ofEach } = (await eligibility.readerSelectorOf("boards", judged)).choose(users);

          for (const user of users) {
            const parameters = createParameters();
            const condition = createAccessConditions(definitions).of(ruled, ["read"], user);
            const text = `SELECT id::text FROM boards AS t WHERE ${conditionText(condition, "t", parameters)}`;
            const found = await core.sql<{ readonly id: string }>(text, parameters.values);
            const verdicts = await eligibility.judge(judged.map((event) => ({ event, user })));

            const ids = found.map(({ id }) => id);
            const ofEvents = (isRead: (place: number) => boolean): readonly (string | undefined)[] =>
              judged.flatMap(({ id }, place) => (isRead(place) ? [events.get(id)] : []));
            expect(ofEvents((place) => verdicts[place] === true)).to.have.members(ids);
            const isReader = (place: number): boolean => {
              const readers = ofEach[place];
              return readers === "everybody" || readers?.includes(user.id) === true;
            };
            expect(ofEvents(isReader)).to.have.members(ids);
          }
        });
    };
    itDecidesAlike("few");
    describe("and", () => {
      before(async () => {
        await core.sql(
          "INSERT INTO svc.users (id, name, email) SELECT n, 'Bob', 'b' || n FROM generate_series(100, 140) AS n",
        );
        await core.sql(`INSERT INTO svc.subscriptions (user_id, url, resource, events, encrypted_secret, secret_hint)
        SELECT id, 'http://localhost', 'boards', '{on_create}', '', 'abcd' FROM svc.users WHERE id >= 100`);
      });
      itDecidesAlike("many");
    });
  });
