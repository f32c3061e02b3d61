import { expect } from "chai";
import { ask, seed, apiOfSuite } from "./serving-api.ts";

describe("statements per request", () => {
  const { served, api } = apiOfSuite();

  beforeEach(async () => {
    await seed(served);
    served.statements();
  });

  // `orders` includes a relation and looks up two rules on a create, `pages` has neither.
  for (const [request, body, status, statements] of [
    ["GET /pages", undefined, 200, 1],
    ["GET /pages?per_page=1", undefined, 200, 1],
    ["GET /pages/two", undefined, 200, 1],
    ["POST /pages", { slug: "new", title: "New" }, 201, 1],
    ["PUT /pages/two", { title: "New" }, 200, 2],
    ["PUT /pages/two", {}, 200, 2],
    ["DELETE /pages/two", undefined, 204, 1],
    ["GET /orders", undefined, 200, 1],
    ["GET /orders/1", undefined, 200, 1],
    ["POST /orders", { reference: "N", amount: 1, customer_id: 1 }, 201, 2],
    ["PUT /orders/1", { notes: "n" }, 200, 2],
    ["DELETE /orders/2", undefined, 204, 1],
    ["DELETE /orders/99", undefined, 404, 2],
    ["GET /nothing", undefined, 404, 0],
  ] as const) {
    it(`${request} takes ${statements}, transaction control included`, async () => {
      const answer = await ask(api, "root", request, body);

      expect(answer.status).to.equal(status);
      // The triggers of a table are then known for 10 s.
      const asked = served.statements().filter((text) => !JSON.stringify(text).includes("pg_trigger"));
      expect(asked).to.have.lengthOf(statements);
    });
  }

  it("a caller who may see nothing needs none", async () => {
    await ask(api, "ada", "GET /notices");

    expect(served.statements()).to.deep.equal([]);
  });
});
