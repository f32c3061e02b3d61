import { expect } from "chai";
import { makeCaller } from "../support/callers.ts";
import { coreOfSuite } from "../support/core-database.ts";
import { definition, definitionsOf, field, keyField, ownersOnly } from "../support/definitions.ts";
import { eligibilityOf } from "../support/eligibility.ts";

const where = { OR: [{ reader: "$user.id" }, { code: "public" }] };
const read = { kind: "filter", where } as const;
const cards = definition({
  name: "cards",
  fields: [keyField(), field("reader", "Int"), field("code", "String")],
  isAdmin: { kind: "nobody" },
  access: { ...ownersOnly, read },
});

describe("snapshotRow", () => {
  const core = coreOfSuite();

  before(async () => {
    await core.sql("CREATE DOMAIN code AS text NOT NULL CHECK (VALUE <> '')");
    // Columns without a field, one with the name of a row in the statement.
    await core.sql("CREATE TABLE cards (id int, gone int, reader int, code code, nulls code, t char(3))");
    await core.sql("ALTER TABLE cards DROP COLUMN gone");
  });

  for (const [what, record, expected] of [
    ["as it was", { id: 1, reader: 7, code: "a" }, [true, false]],
    ["for all", { id: 1, reader: 7, code: "public" }, [true, true]],
    ["from before the field was mapped", { id: 1, reader: 7 }, [true, false]],
  ] as const)
    it(`decides on an event with a record ${what}`, async () => {
      const [event] = await core.sql<{ readonly id: string }>(
        `INSERT INTO svc.events (resource, trigger, record_id, snapshot) VALUES ('cards', 'on_create', '1', $1) RETURNING id`,
        [JSON.stringify(record)],
      );
      const eligibility = eligibilityOf(definitionsOf(cards), { sql: core.sql });
      const pairs = [7, 8].map((id) => ({
        event: { id: event?.id ?? "", resource: "cards", owner_id: null },
        user: makeCaller({ id, name: "Ada", email: "ada@example.com", isAdmin: false }),
      }));

      expect(await eligibility.judge(pairs)).to.deep.equal(expected);
    });

  it("decides on none once the name of a column differs from the mapping file", async () => {
    const [event] = await core.sql<{ readonly id: string }>(
      `INSERT INTO svc.events (resource, trigger, record_id, snapshot) VALUES ('cards', 'on_create', '1', '{"id": 1, "reader": 7}') RETURNING id`,
    );
    const eligibility = eligibilityOf(definitionsOf(cards), { sql: core.sql });
    const user = makeCaller({ id: 7, name: "Ada", email: "ada@example.com", isAdmin: false });
    const judge = (): Promise<readonly (boolean | undefined)[]> =>
      eligibility.judge([{ event: { id: event?.id ?? "", resource: "cards", owner_id: null }, user }]);
    expect(await judge()).to.deep.equal([true]);

    await core.sql("ALTER TABLE cards RENAME reader TO reader_id");

    expect(await judge()).to.deep.equal([undefined]);
  });
});
