import { expect } from "chai";
import { ownersOnly } from "../support/definitions.ts";
import { withVariant } from "./serving.ts";
import { apiOfSuite, ask, seed, startApi } from "./serving-api.ts";

const creates = (count: number): readonly unknown[] =>
  Array.from({ length: count }, (_, i) => ({
    method: "create",
    data: { reference: `${count}-${i}`, amount: 5 },
  }));

const pages = (count: number): readonly unknown[] =>
  Array.from({ length: count }, (_, i) => ({
    method: "create",
    data: { slug: `${count}-${i}`, title: `${count}-${i}` },
  }));

describe("statements of a batch", () => {
  const { served, api } = apiOfSuite();

  before(() => seed(served));

  const statementsOf = async (
    resource: string,
    operations: readonly unknown[],
    over = api,
  ): Promise<number> => {
    served.statements();
    const answer = await ask(over, "ada", `POST /${resource}/batch`, { operations });
    expect(answer.status).to.equal(200);
    return served.statements().length;
  };
  const deletesOf = async (count: number): Promise<readonly unknown[]> => {
    const { json } = await ask(api, "ada", "POST /orders/batch", { operations: creates(count) });
    const { data } = json as { readonly data: readonly { readonly record: { readonly id: number } }[] };
    return data.map(({ record }) => ({ method: "delete", id: record.id }));
  };

  it("is one for 25 creates with a relation, and one for 20 answers of their rules", async () => {
    const [few, many] = [
      await statementsOf("orders", creates(25)),
      await statementsOf("orders", creates(100)),
    ];

    expect(many - few).to.equal(3 + 3);
  });

  it("is one more for 25 creates with a rule of access", async () => {
    const where = { OR: [{ customer_id: null }, { customer: { name: "Acme" } }] };
    const access = { ...ownersOnly, create: { kind: "filter", where } } as const;
    const own = await startApi(served, withVariant("orders", { access }));
    try {
      const [few, many] = [
        await statementsOf("orders", creates(50), own),
        await statementsOf("orders", creates(75), own),
      ];

      expect(many - few).to.equal(1 + 1 + 1);
    } finally {
      await own.server.close();
    }
  });

  it("is two for each create with a rule that may depend on an earlier one", async () => {
    const rules = { slug: "required|string", title: "required|string|unique:pages,title" };
    const own = await startApi(served, withVariant("pages", { createRules: rules }));
    try {
      const [few, many] = [
        await statementsOf("pages", pages(10), own),
        await statementsOf("pages", pages(20), own),
      ];

      expect(many - few).to.equal(20);
    } finally {
      await own.server.close();
    }
  });

  it("is the same for 2 deletes and for 99, which are sent at once", async () => {
    const [few, many] = [await deletesOf(2), await deletesOf(99)];

    expect(await statementsOf("orders", many)).to.equal(await statementsOf("orders", few));
  });
});
