import { randomBytes } from "node:crypto";
import { expect } from "chai";
import type { Definition } from "../../src/mapping/definition.ts";
import type { Answer } from "../support/http.ts";
import { definitions, withVariant } from "./serving.ts";
import { ask, seed, apiOfSuite, startApi, type Api } from "./serving-api.ts";

describe("writing resources", () => {
  const { served, api } = apiOfSuite();
  const as = (who: string, request: string, body?: unknown): Promise<Answer> => ask(api, who, request, body);

  beforeEach(() => seed(served));

  const stored = (): Promise<unknown[]> =>
    served.sql("SELECT id, md5(remarks) AS notes FROM orders ORDER BY id");

  const orderOne = {
    id: 1,
    reference: "A-1",
    status: "open",
    amount: "10.00",
    notes: null,
    user_id: 7,
    customer: "Acme",
  };

  describe("POST /resources/{name}", () => {
    const fresh = { reference: "N-1", amount: 5 };

    it("creates a record of the caller's and answers it with 201", async () => {
      const before = api.changes();
      const answer = await as("bob", "POST /orders", { ...fresh, customer_id: 2, user_id: 7 });

      expect(answer.status).to.equal(201);
      expect(answer.json).to.deep.equal({
        id: 4,
        reference: "N-1",
        status: "open",
        amount: "5.00",
        notes: null,
        user_id: 8,
        customer: "Bolt",
      });
      expect(api.changes()).to.equal(before + 1);
    });

    it("writes only validated fields", async () => {
      const answer = await as("ada", "POST /orders", {
        ...fresh,
        id: 77,
        created_at: "2000-01-01T00:00:00Z",
        secret_word: "x",
        token: "6f1c7d0e-0000-4000-8000-00000000000a",
        customer: { create: { name: "Eve" } },
        user_id: { set: 8 },
      });

      expect(answer.status).to.equal(422);
      const second = await ask(
        api,
        "ada",
        "POST /orders",
        '{"reference":"N-2","amount":5,"id":77,"token":"6f1c7d0e-0000-4000-8000-00000000000a","customer":{"create":{"name":"Eve"}},"secret_word":"x","__proto__":{"status":"paid"},"constructor":{"prototype":{"notes":"x"}}}',
      );
      expect(second.status).to.equal(201);
      expect(second.json).to.include({ id: 4, status: "open", notes: null, customer: null });
      expect(await served.sql("SELECT token FROM orders WHERE id = 4")).to.deep.equal([{ token: null }]);
      expect(await served.sql("SELECT count(*)::int AS n FROM customers")).to.deep.equal([{ n: 2 }]);
    });

    it("lets every user create where there is no owner", async () => {
      const answer = await as("ada", "POST /notices", { text: "mine" });

      expect([answer.status, answer.json]).to.deep.equal([201, { id: 2, text: "mine" }]);
    });

    it("answers each of several concurrent creates with its own record", async () => {
      const slugs = ["a", "b", "two", "c", "a"];
      const answers = await Promise.all(
        slugs.map((slug) => as("ada", "POST /pages", { slug, title: slug, meta: null })),
      );

      const [first, , , , last] = answers;
      expect([first?.status, last?.status]).to.have.members([201, 422]);
      expect(answers.slice(1, 4).map(({ status }) => status)).to.deep.equal([201, 422, 201]);
      for (const [index, { status, json }] of answers.entries())
        if (status === 201) expect(json).to.include({ slug: slugs[index], title: slugs[index] });
      expect(await served.sql("SELECT slug FROM site_pages WHERE slug = title ORDER BY slug")).to.deep.equal(
        ["a", "b", "c"].map((slug) => ({ slug })),
      );
    });

    it("accepts a key that the client chooses", async () => {
      const answer = await as("ada", "POST /pages", { slug: "new", title: "New", meta: { a: [1] } });

      expect(answer.status).to.equal(201);
      expect(answer.json).to.deep.equal({
        slug: "new",
        title: "New",
        meta: { a: [1] },
        is_hidden: false,
        author: "7",
      });
    });

    for (const [what, name, body, errors] of [
      [
        "an empty body",
        "orders",
        {},
        { reference: ["The reference field is required."], amount: ["The amount field is required."] },
      ],
      [
        "a reference that is taken",
        "orders",
        { ...fresh, reference: "A-1" },
        { reference: ["The reference has already been taken."] },
      ],
      [
        "a customer that is none",
        "orders",
        { ...fresh, customer_id: 99 },
        { customer_id: ["The selected customer id is invalid."] },
      ],
      [
        "a key that is taken",
        "pages",
        { slug: "two", title: "x" },
        { slug: ["The slug has already been taken."] },
      ],
      [
        "a NUL",
        "orders",
        { ...fresh, notes: "a\0b" },
        { notes: ["The notes field must not contain NUL characters."] },
      ],
      [
        "a NUL in a looked up field",
        "orders",
        { ...fresh, reference: "a\0b" },
        { reference: ["The reference field must not contain NUL characters."] },
      ],
      [
        "a NUL in JSON",
        "pages",
        { slug: "x", title: "x", meta: { a: ["\0"] } },
        { meta: ["The meta field must not contain NUL characters."] },
      ],
      [
        "half a surrogate pair",
        "orders",
        { ...fresh, notes: "\uD800" },
        { notes: ["The notes field must not contain half a surrogate pair."] },
      ],
    ] as const) {
      it(`refuses ${what} with 422`, async () => {
        const before = api.changes();
        const answer = await as("ada", `POST /${name}`, body);

        expect(answer.status).to.equal(422);
        expect(answer.json).to.have.deep.property("errors", errors);
        expect(api.changes()).to.equal(before);
      });
    }

    it("refuses a text that is too long for an index of its column with 422", async () => {
      await served.sql("CREATE INDEX pages_title ON site_pages (title)");
      try {
        const title = randomBytes(4_000).toString("base64");
        const answer = await as("ada", "POST /pages", { slug: "long", title });

        expect(answer.status).to.equal(422);
        expect(answer.json).to.include({
          message: "The given data was invalid: a column cannot hold its value.",
        });
      } finally {
        await served.sql("DROP INDEX pages_title");
      }
    });

    for (const [what, body, headers, status] of [
      ["malformed JSON", "{", {}, 400],
      ["a list", "[]", {}, 400],
      ["a large body", `{"a":"${"x".repeat(10_000)}"}`, {}, 413],
      ["a deep body", `${'{"a":'.repeat(1000)}1${"}".repeat(1000)}`, {}, 400],
      ["a form", "reference=x", { "Content-Type": "application/x-www-form-urlencoded" }, 415],
    ] as const) {
      it(`refuses ${what} with ${status}`, async () => {
        const answer = await ask(api, "ada", "POST /orders", body, headers);

        expect(answer.status).to.equal(status);
        expect(answer.json).to.have.property("message").that.is.a("string");
      });
    }

    it("answers 422 to the loser of two creates of the same value at once", async () => {
      const answers = await Promise.all([1, 2, 3, 4].map(() => as("ada", "POST /orders", fresh)));

      expect(answers.map(({ status }) => status)).to.have.members([201, 422, 422, 422]);
      for (const { status, json } of answers) {
        if (status === 422)
          expect(json).to.have.deep.property("errors", {
            reference: ["The reference has already been taken."],
          });
      }
    });
  });

  describe("PUT /resources/{name}/{id}", () => {
    it("changes the fields that are sent and answers the record", async () => {
      const before = api.changes();
      const answer = await as("ada", "PUT /orders/1", { notes: "late", customer_id: 2 });

      expect(answer.status).to.equal(200);
      expect(answer.json).to.deep.equal({ ...orderOne, notes: "late", customer: "Bolt" });
      expect(api.changes()).to.equal(before + 1);
    });

    it("never changes the key, the owner or a field without rules", async () => {
      const answer = await as("ada", "PUT /orders/1", {
        id: 99,
        user_id: 8,
        created_at: "2000-01-01",
        notes: "x",
      });

      expect(answer.json).to.deep.equal({ ...orderOne, notes: "x" });
    });

    for (const [what, body] of [
      ["no body", undefined],
      ["an empty object", {}],
      ["only fields without rules", { user_id: 8, secret_word: "x" }],
      ["only the key", { id: 5 }],
    ] as const) {
      it(`answers the record to ${what}, and writes nothing`, async () => {
        const before = api.changes();
        const answer = await as("ada", "PUT /orders/1", body);

        expect([answer.status, answer.json]).to.deep.equal([200, orderOne]);
        expect(api.changes()).to.equal(before);
        expect(served.statements().filter((text) => text.startsWith("UPDATE"))).to.deep.equal([]);
      });
    }

    it("keeps a unique value that is the record's own, and refuses another record's", async () => {
      const own = await as("ada", "PUT /orders/1", { reference: "A-1" });
      const other = await as("ada", "PUT /orders/1", { reference: "B-1" });

      expect([own.status, other.status]).to.deep.equal([200, 422]);
    });

    for (const [what, body, errors] of [
      [
        "a reference to nothing that no rule looks up",
        { customer_id: 99 },
        { customer_id: ["The selected customer id is invalid."] },
      ],
      [
        "a value that the type refuses though no rule does",
        { status: "lost" },
        { status: ["The selected status is invalid."] },
      ],
      [
        "an operation of the client library",
        { status: { set: "paid" } },
        { status: ["The selected status is invalid."] },
      ],
    ] as const) {
      it(`refuses ${what} with 422`, async () => {
        const answer = await as("ada", "PUT /orders/1", body);

        expect(answer.status).to.equal(422);
        expect(answer.json).to.have.deep.property("errors", errors);
      });
    }

    for (const [who, request, status] of [
      ["root", "PUT /orders/1", 200],
      ["bob", "PUT /orders/1", 403],
      ["ada", "PUT /orders/99", 404],
      ["ada", "PUT /orders/abc", 404],
      ["ada", "PUT /pages/gone", 404],
      ["bob", "PUT /pages/a%2Fb", 403],
    ] as const) {
      it(`answers ${who}'s ${request} with ${status}`, async () => {
        expect((await as(who, request, { notes: "x", title: "x" })).status).to.equal(status);
      });
    }
  });

  describe("DELETE /resources/{name}/{id}", () => {
    it("deletes the record and answers 204 without a body", async () => {
      const before = api.changes();
      const answer = await as("ada", "DELETE /orders/1");
      const again = await as("ada", "DELETE /orders/1");

      expect([answer.status, answer.text, answer.headers["content-type"]]).to.deep.equal([
        204,
        "",
        undefined,
      ]);
      expect(again.status).to.equal(404);
      expect(api.changes()).to.equal(before + 1);
    });

    for (const [who, request, status] of [
      ["root", "DELETE /orders/1", 204],
      ["bob", "DELETE /orders/1", 403],
      ["ada", "DELETE /customers/1", 403],
      ["root", "DELETE /customers/1", 409],
      ["ada", "DELETE /orders/99", 404],
      ["ada", "DELETE /orders/abc", 404],
      ["root", "DELETE /pages/gone", 404],
      ["ada", "DELETE /pages/a%00b", 404],
    ] as const) {
      it(`answers ${who}'s ${request} with ${status}`, async () => {
        const { status: told } = await as(who, request);

        expect(told).to.equal(status);
        const [left] = await served.sql<{ orders: number; pages: number; customers: number }>(
          `SELECT (SELECT count(*)::int FROM orders) AS orders, (SELECT count(*)::int FROM site_pages) AS pages,
           (SELECT count(*)::int FROM customers) AS customers`,
        );
        expect(left).to.deep.equal({ orders: status === 204 ? 2 : 3, pages: 3, customers: 2 });
      });
    }
  });

  describe("a record too large for an event", () => {
    const limit = 15 * 1024 ** 2;
    let large: Api;

    before(async () => {
      const fields = (definitions.get("orders") as Definition).fields.map((field) =>
        field.name === "notes" ? { ...field, length: limit } : field,
      );
      large = await startApi(served, withVariant("orders", { fields }), { bodyLimitBytes: 40 * 1024 ** 2 });
    });

    after(() => large.server.close());

    for (const [request, body] of [
      ["POST /orders", { reference: "L-1", amount: 1, notes: "a".repeat(limit) }],
      ["PUT /orders/1", { notes: "a".repeat(limit) }],
      ["PUT /orders/1", { notes: "é".repeat(limit / 2) }],
    ] as const) {
      it(`is refused with 413, and nothing is written: ${request} with ${body.notes.length} characters`, async () => {
        const before = await stored();

        const answer = await ask(large, "ada", request, body);

        expect(answer.status).to.equal(413);
        expect(answer.json).to.have.property("message").that.includes(`may be ${limit}`);
        expect(await stored()).to.deep.equal(before);
      });
    }

    it("is refused where the request alone would fit, but not together with its related record", async () => {
      await served.sql("UPDATE customers SET name = repeat('a', $1::int)", [limit - 1000]);
      const before = await stored();

      const answer = await ask(large, "ada", "PUT /orders/1", { notes: "a".repeat(100_000) });

      expect(answer.status).to.equal(413);
      expect(await stored()).to.deep.equal(before);
    });

    it("is written up to the limit", async () => {
      const answer = await ask(large, "ada", "PUT /orders/1", { notes: "a".repeat(limit - 1000) });

      expect(answer.status).to.equal(200);
      expect(answer.headers["content-type"]).to.equal("application/json; charset=utf-8");
    });
  });
});
