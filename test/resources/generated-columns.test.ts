import { expect } from "chai";
import type { Definition } from "../../src/mapping/definition.ts";
import { field } from "../support/definitions.ts";
import { definitions, openServedDatabase, withVariant, type ServedDatabase } from "./serving.ts";
import { ask, seed, startApi, type Api } from "./serving-api.ts";

describe("a column that the database computes", () => {
  let served: ServedDatabase;
  let api: Api;

  before(async () => {
    served = await openServedDatabase();
    await served.sql("ALTER TABLE orders ADD COLUMN loud text GENERATED ALWAYS AS (upper(reference)) STORED");
    const orders = definitions.get("orders") as Definition;
    const rule = { loud: "sometimes|string" };
    api = await startApi(
      served,
      withVariant("orders", {
        fields: [...orders.fields, field("loud", "String", { isGenerated: true })],
        createRules: { ...orders.createRules, ...rule },
        updateRules: { ...orders.updateRules, ...rule },
      }),
    );
    await seed(served);
  });

  after(async () => {
    await api.server.close();
    await served.close();
  });

  it("is never written, even if a rule names it", async () => {
    const made = await ask(api, "ada", "POST /orders", { reference: "n-1", amount: 5, loud: "x" });
    const changed = await ask(api, "ada", "PUT /orders/1", { reference: "a-1", loud: "x" });
    const alone = await ask(api, "ada", "PUT /orders/1", { loud: "x" });

    expect([made.status, changed.status, alone.status]).to.deep.equal([201, 200, 200]);
    expect(await served.sql("SELECT loud FROM orders WHERE id IN (1, 4) ORDER BY id")).to.deep.equal([
      { loud: "A-1" },
      { loud: "N-1" },
    ]);
  });
});
