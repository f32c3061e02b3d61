import { expect } from "chai";
import type { Definitions, Field } from "../../src/mapping/definition.ts";
import { definitionsOf, field, keyField } from "../support/definitions.ts";
import { openScene, type Scene } from "../support/migration-scene.ts";
import { customers } from "../support/shop.ts";

const hostileKey = keyField("The Id; '--", { name: "id" });
const { default: _, ...uncountedKey } = hostileKey;

/** Customers in a table of a hostile name, with a key that counts. */
function keyedBy(changes: Partial<Field>, key: Field = { ...hostileKey, ...changes }): Definitions {
  return definitionsOf({ ...customers, table: "cust'o; mers", fields: [key, field("name", "String")], key });
}

const withoutCounter = keyedBy({}, uncountedKey);

describe("applyMigration, with keys that count", () => {
  let scene: Scene;

  beforeEach(async () => {
    scene = await openScene();
  });

  afterEach(() => scene.close());

  const rowsOf = async (sql: string): Promise<readonly unknown[]> => (await scene.client.query(sql)).rows;

  const done = async (definitions: Definitions, allowDestructive = false): Promise<void> =>
    void expect(await scene.apply(definitions, allowDestructive)).to.equal("done");

  it("widens a counting Int key together with its sequence", async () => {
    await done(definitionsOf(customers));
    await scene.client.query("SELECT setval('customers_id_seq', 2147483647)");

    await done(
      definitionsOf({
        ...customers,
        fields: [keyField("id", { type: "BigInt" }), field("name", "String")],
        key: keyField("id", { type: "BigInt" }),
      }),
    );

    await scene.client.query("INSERT INTO customers (name) VALUES ('Ann')");
    expect(await rowsOf("SELECT id FROM customers")).to.deep.equal([{ id: "2147483648" }]);
  });

  it("leaves the sequence of another column as it is", async () => {
    await done(keyedBy({}));
    await scene.client.query(`ALTER TABLE "cust'o; mers" ADD theirs serial`);

    await done(keyedBy({ type: "BigInt" }));

    expect(
      await rowsOf("SELECT data_type FROM information_schema.sequences WHERE sequence_name LIKE '%theirs%'"),
    ).to.deep.equal([{ data_type: "integer" }]);
  });

  it("narrows a counting BigInt key again together with its sequence, when that is allowed", async () => {
    await done(keyedBy({ type: "BigInt" }));

    await done(keyedBy({ type: "Int" }), true);

    expect(await scene.shape()).to.include(`"cust'o; mers" The Id; '-- integer`);
    expect(
      await rowsOf("SELECT data_type FROM information_schema.sequences WHERE sequence_schema = 'public'"),
    ).to.deep.equal([{ data_type: "integer" }]);
    expect((await scene.plan(keyedBy({ type: "Int" }))).steps).to.deep.equal([]);
  });

  it("adds and removes the counter of a key, under any names", async () => {
    await done(withoutCounter);

    await done(keyedBy({}));

    expect(await rowsOf(`INSERT INTO "cust'o; mers" (name) VALUES ('Ann') RETURNING *`)).to.deep.equal([
      { "The Id; '--": 1, name: "Ann" },
    ]);
    expect((await scene.plan(keyedBy({}))).steps).to.deep.equal([]);
    await done(withoutCounter);
    expect((await scene.plan(withoutCounter)).steps).to.deep.equal([]);
  });
});
