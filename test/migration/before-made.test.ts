import { expect } from "chai";
import { readFile } from "node:fs/promises";
import { coreSteps, loadCoreMigrations, runSteps } from "../../src/migration/core-migrations.ts";
import { definitionsOf, field } from "../support/definitions.ts";
import {
  openEmptyScene,
  ordersWith,
  recordOfOrders,
  titlesOf,
  type Scene,
} from "../support/migration-scene.ts";
import { customers, shop } from "../support/shop.ts";

describe("applyMigration in a database of the version before svc.made", () => {
  let scene: Scene;

  beforeEach(async () => {
    scene = await openEmptyScene();
    const [first] = await loadCoreMigrations();
    await runSteps(scene.client, coreSteps(first === undefined ? [] : [first]));
    await scene.client.query("SET search_path = public");
    await scene.client.query(await readFile("test/fixtures/before-made.sql", "utf8"));
  });

  it("adopts parts that are as the file has them, and leaves the rest unchanged", async () => {
    await scene.client.query(`
        CREATE UNIQUE INDEX hand_made ON orders (amount); ALTER TABLE orders ADD extra text;
        ALTER TABLE orders ALTER notes SET NOT NULL, ADD CONSTRAINT positive CHECK (amount > 0);
        ALTER TABLE customers ADD CONSTRAINT customers_name_svc_values CHECK (name <> '')`);
    const was = await scene.shape();

    const planned = await scene.plan(shop);

    expect(planned).to.deep.include({ losses: [], impossible: [] });
    expect(titlesOf(planned).filter((title) => !title.startsWith("core migration"))).to.deep.equal([
      "customers: record what svc made",
      "orders: record what svc made",
      "customers: capture trigger on customers",
      "orders: capture trigger on orders",
    ]);
    expect(planned.notes.join("\n")).to.match(
      /The table orders was made by a version of svc that kept no record/,
    );
    for (const name of ["hand_made", "extra", "positive", "customers_name_svc_values", "notes .*by hand"])
      expect(planned.leftAlone.join("\n")).to.match(new RegExp(name));
    expect(await scene.apply(shop)).to.equal("done");
    expect(await scene.shape()).to.equal(was);
    expect((await scene.record()).filter((line) => line.startsWith("orders"))).to.deep.equal(recordOfOrders);
    expect(await scene.plan(shop)).to.deep.include({ steps: [], notes: [] });
    expect(
      await scene.apply(
        definitionsOf(
          customers,
          ordersWith((one) => (one.name === "customer_id" ? undefined : one)),
        ),
        true,
      ),
    ).to.equal("done");
    expect(await scene.shape())
      .to.match(/hand_made/)
      .and.not.match(/orders_customer_id_idx/);
  });

  it("makes changes of the file since then, and drops nothing that it has lost", async () => {
    const next = definitionsOf(
      customers,
      ordersWith(
        (one) => {
          if (one.name === "notes") return undefined;
          if (one.name === "reference") return { ...one, length: 80, isUnique: false };
          const references = {
            resource: "customers",
            field: "id",
            as: "customer",
            onDelete: "cascade",
          } as const;
          return one.name === "customer_id" ? { ...one, references } : one;
        },
        field("paid_at", "DateTime", { isOptional: true }),
      ),
    );

    const planned = await scene.plan(next);

    expect(planned).to.deep.include({ losses: [], impossible: [] });
    expect(planned.leftAlone.join("\n")).to.match(/column notes[^]*index orders_reference_key/);
    expect(await scene.apply(next)).to.equal("done");
    expect(await scene.shape())
      .to.match(/orders notes text/)
      .and.to.match(/orders_reference_key/)
      .and.to.match(/orders reference character varying\(80\)/)
      .and.to.match(/orders_customer_id_fkey .* ON DELETE CASCADE/);
    expect((await scene.plan(next)).steps).to.deep.equal([]);
  });

  it("refuses to undo an index that was made again by hand under the name of its own", async () => {
    await scene.client.query(
      "DROP INDEX orders_customer_id_idx; CREATE UNIQUE INDEX orders_customer_id_idx ON orders (customer_id)",
    );

    expect(await scene.apply(shop, true)).to.match(
      /do not allow the migration.*unique index orders_customer_id_idx/s,
    );
  });

  afterEach(() => scene.close());
});
