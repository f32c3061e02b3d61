import { expect } from "chai";
import type { BaseQuery, Row } from "../../src/mapping/definition.ts";
import { migrateCore } from "../support/core-database.ts";
import { fieldOf } from "../validation/definition.ts";
import { definitions, servedOfSuite, withVariant } from "./serving.ts";
import { ask, idsOf, startApi, type Api } from "./serving-api.ts";

const fail = (): never => {
  throw new Error("oops");
};

const tooMuch = (): unknown => ({ text: "é".repeat(8 * 1024 ** 2) });

const onlyForPrisma = (): BaseQuery => ({
  where: { id: { gt: 0 } },
  include: { customer: { select: { name: true } } },
});

describe("/resources with code modules", () => {
  const served = servedOfSuite();
  let api: Api;

  before(async () => {
    await migrateCore(served.database.pool);
    await served.sql("INSERT INTO orders (reference, amount, user_id) VALUES ('A-1', 10, 7), ('B-1', 30, 8)");
  });

  afterEach(() => api.server.close());

  for (const [name, request] of [
    ["transform", "GET /orders/1"],
    ["isAdmin", "GET /orders"],
    ["applySearch", "GET /orders?search=x"],
    ["baseQuery", "GET /orders"],
    ["createRules", "POST /orders"],
    ["updateRules", "PUT /orders/1"],
  ] as const) {
    it(`answers 500 when ${name} throws, and logs it with the resource's name`, async () => {
      api = await startApi(served, withVariant("orders", { code: { [name]: fail } }));

      const answer = await ask(api, "ada", request, request.startsWith("GET") ? undefined : {});
      const others = await ask(api, "ada", "GET /pages");

      expect([answer.status, answer.text]).to.deep.equal([500, '{"message":"Server Error"}']);
      expect(others.status).to.equal(200);
      const line = api.lines.find(({ msg }) => msg === "request failed");
      expect(JSON.stringify(line?.["err"])).to.match(
        new RegExp(`${name} of the resource orders failed.*oops`),
      );
    });
  }

  it("answers 422 to NULL in an array for which Prisma has no form", async () => {
    const code = { baseQuery: onlyForPrisma };
    const tags = fieldOf({ name: "tags", type: "String", isList: true });
    const fields = [...(definitions.get("orders")?.fields ?? []), tags];
    const updateRules = { tags: "array" };
    api = await startApi(served, withVariant("orders", { code, isManaged: false, fields, updateRules }));

    const { status, text } = await ask(api, "root", "PUT /orders/1", { tags: ["a", null] });

    expect([status, JSON.parse(text).errors]).to.deep.equal([
      422,
      { "tags.1": ["The tags.1 field is required."] },
    ]);
  });

  for (const [request, body] of [
    ["POST /orders", { reference: "L-1", amount: 1 }],
    ["PUT /orders/1", { notes: "large" }],
  ] as const) {
    it(`answers 413 to ${request} when the transform makes it larger than an event may be, and writes nothing`, async () => {
      api = await startApi(served, withVariant("orders", { code: { transform: tooMuch } }));
      const stored = (): Promise<unknown[]> => served.sql("SELECT * FROM orders ORDER BY id");
      const before = await stored();

      const answer = await ask(api, "ada", request, body);

      expect(answer.status).to.equal(413);
      expect(answer.text)
        .to.include("16777227 bytes")
        .and.include("15728640")
        .and.include("Nothing was written");
      expect(await stored()).to.deep.equal(before);
      expect(api.changes()).to.equal(0);
    });
  }

  it("answers with any size where there are no webhooks", async () => {
    api = await startApi(served, withVariant("orders", { triggers: [], code: { transform: tooMuch } }));

    expect((await ask(api, "ada", "PUT /orders/1", { notes: "large" })).status).to.equal(200);
  });

  for (const [name, request] of [
    ["isAdmin", "GET /orders"],
    ["applySearch", "GET /orders?search=x"],
    ["baseQuery", "GET /orders"],
    ["transform", "GET /orders/1"],
    ["createRules", "POST /orders"],
    ["updateRules", "PUT /orders/1"],
  ] as const) {
    it(`answers 500 when ${name} is async, also when its promise rejects`, async () => {
      const code = { [name]: () => Promise.reject(new Error("late")) };
      api = await startApi(served, withVariant("orders", { code }));

      const answer = await ask(api, "ada", request, request.startsWith("GET") ? undefined : {});

      expect([answer.status, answer.text]).to.deep.equal([500, '{"message":"Server Error"}']);
    });
  }

  for (const [name, request, body] of [
    ["applySearch", "GET /orders?search=x", undefined],
    ["baseQuery", "GET /orders/1", undefined],
    ["createRules", "POST /orders", { reference: "N-1", amount: 1 }],
    ["updateRules", "PUT /orders/1", { notes: "changed" }],
  ] as const) {
    it(`answers 500 when ${name} forgets its return, and logs it with the resource's name`, async () => {
      api = await startApi(served, withVariant("orders", { code: { [name]: () => undefined } }));

      const answer = await ask(api, "ada", request, body);

      expect([answer.status, answer.text]).to.deep.equal([500, '{"message":"Server Error"}']);
      const line = api.lines.find(({ msg }) => msg === "request failed");
      expect(JSON.stringify(line?.["err"])).to.match(
        new RegExp(`${name} of the resource orders must answer`),
      );
    });
  }

  for (const [request, body] of [
    ["POST /orders", { reference: "N-1", amount: "1" }],
    ["PUT /orders/1", { notes: "changed" }],
  ] as const) {
    it(`undoes a ${request.split(" ")[0]} whose transform throws`, async () => {
      api = await startApi(served, withVariant("orders", { code: { transform: fail } }));
      const before = await served.sql("SELECT * FROM orders ORDER BY id");

      const answer = await ask(api, "ada", request, body);

      expect([answer.status, api.changes()]).to.deep.equal([500, 0]);
      expect(await served.sql("SELECT * FROM orders ORDER BY id")).to.deep.equal(before);
    });
  }

  for (const [what, baseQuery] of [
    ["throws", fail],
    ["asks for a relation that is not there", () => ({ include: { nothing: true } })],
  ] as const) {
    for (const [request, body] of [
      ["POST /orders", { reference: "N-1", amount: "1" }],
      ["PATCH /orders/1", { notes: "changed" }],
    ] as const) {
      it(`undoes a ${request} when baseQuery ${what}`, async () => {
        api = await startApi(served, withVariant("orders", { code: { baseQuery } }));
        const before = await served.sql("SELECT * FROM orders ORDER BY id");

        const answer = await ask(api, "ada", request, body);

        expect([answer.status, answer.text, api.changes()]).to.deep.equal([
          500,
          '{"message":"Server Error"}',
          0,
        ]);
        expect(await served.sql("SELECT * FROM orders ORDER BY id")).to.deep.equal(before);
      });
    }
  }

  for (const [request, body, headers] of [
    ["POST /orders", { reference: "K-1", amount: "1" }, { "Idempotency-Key": "k" }],
    [
      "POST /orders/batch",
      { operations: [{ method: "create", data: { reference: "K-1", amount: "1" } }] },
      {},
    ],
    ["PUT /orders/1", { notes: "changed" }, { "If-Match": "*" }],
  ] as const) {
    it(`answers 422 to ${request} with ${JSON.stringify(headers)} where only Prisma knows the base query`, async () => {
      api = await startApi(served, withVariant("orders", { code: { baseQuery: onlyForPrisma } }));
      const before = await served.sql("SELECT * FROM orders ORDER BY id");

      const answer = await ask(api, "ada", request, body, headers);

      expect([answer.status, answer.text.includes("that only Prisma knows")]).to.deep.equal([422, true]);
      expect(await served.sql("SELECT * FROM orders ORDER BY id")).to.deep.equal(before);
    });
  }

  it("writes records whose transform in code does not throw", async () => {
    const code = { transform: ({ reference }: Row) => ({ is: reference }) };
    api = await startApi(served, withVariant("orders", { code }));

    const answer = await ask(api, "ada", "POST /orders", { reference: "C-1", amount: "1" });

    expect([answer.status, answer.json]).to.deep.equal([201, { is: "C-1" }]);
    expect(await served.sql("DELETE FROM orders WHERE reference = 'C-1' RETURNING user_id")).to.deep.equal([
      { user_id: 7 },
    ]);
  });

  it("adds the owner filter to every query of applySearch", async () => {
    const code = { applySearch: () => ({ where: { OR: [{ user_id: 8 }, { user_id: 7 }] } }) };
    api = await startApi(served, withVariant("orders", { code }));

    const own = await ask(api, "ada", "GET /orders?search=x");
    const all = await ask(api, "root", "GET /orders?search=x");

    expect([idsOf(own), idsOf(all)]).to.deep.equal([[1], [1, 2]]);
  });

  it("limits the patterns of a module to linear time, like those of the file", async () => {
    const code = { createRules: () => ({ reference: "regex:/^(?=a)/" }) };
    api = await startApi(served, withVariant("orders", { code }));

    const answer = await ask(api, "ada", "POST /orders", { reference: "a" });

    expect(answer.status).to.equal(500);
    const line = api.lines.find(({ msg }) => msg === "request failed");
    expect(JSON.stringify(line?.["err"])).to.include("look-around, back references");
  });

  it("evaluates the rules of a module once", async () => {
    let times = 0;
    const createRules = () => {
      times++;
      return { reference: "required" };
    };
    api = await startApi(served, withVariant("orders", { code: { createRules } }));

    await ask(api, "ada", "POST /orders", {});
    await ask(api, "ada", "POST /orders", {});

    expect(times).to.equal(1);
  });
});
