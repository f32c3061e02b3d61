import { expect } from "chai";
import type { Answer } from "../support/http.ts";
import { ask, idsOf, seed, apiOfSuite } from "./serving-api.ts";

const refused = (name: string): unknown => [`There is no parameter ${name} here; only lists take it.`];

describe("reading resources", () => {
  const { served, api } = apiOfSuite();
  const as = (who: string, request: string, body?: unknown): Promise<Answer> => ask(api, who, request, body);

  beforeEach(() => seed(served));

  const orderOne = {
    id: 1,
    reference: "A-1",
    status: "open",
    amount: "10.00",
    notes: null,
    user_id: 7,
    customer: "Acme",
  };

  describe("GET /resources", () => {
    it("lists every resource with name, model and triggers", async () => {
      const answer = await as("ada", "GET ");

      expect(answer.status).to.equal(200);
      expect(answer.json).to.deep.equal({
        data: [
          { name: "customers", model: "Customer", triggers: ["on_create", "on_update", "on_delete"] },
          { name: "orders", model: "Order", triggers: ["on_create", "on_update"] },
          { name: "pages", model: "Page", triggers: ["on_create", "on_update", "on_delete"] },
          { name: "notices", model: "Notice", triggers: ["on_create", "on_update", "on_delete"] },
        ],
      });
    });
  });

  describe("parameters of a request for one record", () => {
    it("are refused, by their names, where lists support them, and otherwise ignored", async () => {
      for (const method of ["GET", "HEAD"]) {
        for (const query of ["include=customer", "page=1", "limit=1", "select=id", "page%5Bsize%5D=1"])
          expect((await as("ada", `${method} /orders/1?${query}`)).status, query).to.equal(422);
        expect((await as("ada", `${method} /orders/1?colour=red`)).status, method).to.equal(200);
      }
      const answer = await as("ada", "GET /orders/1?sort=id&filter[id]=2&limit=1&colour=&colour=&=");

      expect((answer.json as { errors: unknown }).errors).to.deep.equal({
        sort: refused("sort"),
        "filter[id]": refused("filter[id]"),
        limit: ["There is no parameter limit here; this request takes none."],
      });
    });

    it("are named up to 20, of any number", async () => {
      const query = Array.from({ length: 500 }, (_, index) => `sort[${index}]=1`).join("&");
      const first = Array.from({ length: 20 }, (_, index) => `sort[${index}]`);
      const answer = await as("ada", `GET /orders/1?${query}`);

      expect(answer.status).to.equal(422);
      expect((answer.json as { errors: object }).errors).to.have.all.keys(first);
    });

    it("are refused in a write too", async () => {
      const customer = { name: "New", email: "new@example.com" };
      for (const [request, body] of [
        ["DELETE /customers/1?filter[name]=Acme", undefined],
        ["PUT /orders/1?fields=id", { notes: "x" }],
        ["PATCH /orders/1?filter=x", { notes: "x" }],
        ["POST /customers?include=orders", customer],
        ["POST /customers/batch?count=none", { operations: [] }],
      ] as const)
        expect((await as("root", request, body)).status, request).to.equal(422);
      expect((await as("ada", "GET /orders/1")).json).to.deep.equal(orderOne);
      expect((await as("ada", "PUT /orders/1?filters=x&colour=red", { notes: "x" })).status).to.equal(200);
    });
  });

  describe("the order of checks", () => {
    for (const [request, status, message] of [
      ["PATCH /nothing/x", 404, "The resource nothing could not be found."],
      ["POST /nothing", 404, "The resource nothing could not be found."],
      ["GET /constructor", 404, "The resource constructor could not be found."],
      [
        "DELETE /notices/99",
        405,
        /^The DELETE method is not supported for route svc-api\/resources\/notices\/99\./,
      ],
      ["PUT /orders/99", 404, "The orders record 99 could not be found."],
      ["PUT /orders/3", 403, "This action is unauthorized."],
      ["PUT /orders/1", 415, /application\/json/],
    ] as const) {
      it(`answers ${status} to ${request} with a broken body`, async () => {
        const answer = await ask(api, "ada", request, "{broken", { "Content-Type": "text/plain" });

        expect(answer.status).to.equal(status);
        const told = (answer.json as { message: string }).message;
        if (typeof message === "string") expect(told).to.equal(message);
        else expect(told).to.match(message);
      });
    }

    it("answers 401 before all else", async () => {
      const answer = await as("stranger", "PATCH /nothing/x", "{broken");

      expect(answer.status).to.equal(401);
    });

    for (const [request, allow] of [
      ["DELETE /orders", "GET, HEAD, POST"],
      ["POST /orders/1", "GET, HEAD, PUT, PATCH, DELETE"],
      ["PATCH /notices/1", "GET, HEAD"],
      ["PUT /notices/1", "GET, HEAD"],
      ["DELETE /notices/1", "GET, HEAD"],
    ] as const) {
      it(`answers 405 to ${request} with Allow: ${allow}`, async () => {
        const answer = await as("root", request, {});

        expect([answer.status, answer.headers["allow"]]).to.deep.equal([405, allow]);
      });
    }

    it("answers OPTIONS with the supported methods", async () => {
      const answer = await as("ada", "OPTIONS /notices/1");

      expect([answer.status, answer.headers["allow"]]).to.deep.equal([204, "GET, HEAD"]);
    });
  });

  describe("GET /resources/{name}", () => {
    for (const [who, name, ids] of [
      ["ada", "orders", [1, 2]],
      ["bob", "orders", [3]],
      ["root", "orders", [1, 2, 3]],
      ["ada", "notices", []],
      ["root", "notices", [1]],
    ] as const) {
      it(`shows ${who} the ${name} ${ids.join(", ") || "that are none"}`, async () => {
        const answer = await as(who, `GET /${name}`);

        expect(answer.status).to.equal(200);
        expect(idsOf(answer)).to.deep.equal(ids);
        expect(answer.json).to.include({ total: ids.length, current_page: 1, last_page: 1, per_page: 15 });
      });
    }

    it("shows transformed records", async () => {
      const answer = await as("ada", "GET /orders?per_page=1");

      expect(answer.json).to.have.deep.property("data", [orderOne]);
    });

    it("links to the neighbouring pages, and keeps the query", async () => {
      const path = `http://127.0.0.1:${api.server.port}/svc-api/resources/orders`;
      const second = await as("root", "GET /orders?page=2&per_page=1&search=-");
      const past = await as("root", "GET /orders?page=9&per_page=1");

      expect(second.json).to.include({
        current_page: 2,
        last_page: 3,
        total: 3,
        next_page_url: `${path}?page=3&per_page=1&search=-`,
        prev_page_url: `${path}?page=1&per_page=1&search=-`,
      });
      expect(past.json).to.deep.equal({
        data: [],
        current_page: 9,
        last_page: 3,
        per_page: 1,
        total: 3,
        next_page_url: null,
        prev_page_url: `${path}?page=3&per_page=1`,
      });
    });

    it("follows its own links through every record once", async () => {
      const seen: unknown[] = [];
      let path: string | null = "?per_page=2";
      while (path !== null) {
        const answer: Answer = await as("root", `GET /orders${path}`);
        seen.push(...idsOf(answer));
        const next = (answer.json as { next_page_url: string | null }).next_page_url;
        path = next === null ? null : new URL(next).search;
      }

      expect(seen).to.deep.equal([1, 2, 3]);
    });

    for (const [query, ids] of [
      ["search=b-1", []],
      ["search=a-1", [1]],
      ["search=%25", []],
      ["search=_", []],
      ["search=%5C", []],
      ["search=", [1, 2]],
      ["search=%00", []],
      ["search=a%00-1", []],
      ["search=A-1&search=A-2", [2]],
      ["page=99999999999999999999&per_page=100", []],
      ["page=-1&per_page=zero", [1, 2]],
    ] as const) {
      it(`answers ${JSON.stringify(ids)} of Ada's to ?${query}`, async () => {
        const answer = await as("ada", `GET /orders?${query}`);

        expect(answer.status).to.equal(200);
        expect(idsOf(answer)).to.deep.equal(ids);
      });
    }

    it("refuses unknown parameters, each by its name", async () => {
      const answer = await as("ada", "GET /orders?page[a]=2&user_id=8&where=x&include=customer.orders");

      expect(answer.status).to.equal(422);
      expect((answer.json as { readonly errors: object }).errors).to.have.keys([
        "page[a]",
        "user_id",
        "where",
        "include",
      ]);
    });

    it("applies the base query's scope and order, with the key last", async () => {
      await served.sql(
        "INSERT INTO site_pages (slug, title, author) VALUES ('b', 'Two', '7'), ('z', 'Two', '7')",
      );

      const answer = await as("root", "GET /pages");

      const slugs = (answer.json as { data: { slug: string }[] }).data.map(({ slug }) => slug);
      expect(slugs).to.deep.equal(["b", "two", "z", "a/b"]);
    });

    it("answers HEAD like GET, without a body", async () => {
      const answer = await as("ada", "HEAD /orders");

      expect([answer.status, answer.text]).to.deep.equal([200, ""]);
      expect(Number(answer.headers["content-length"])).to.be.greaterThan(100);
    });
  });

  describe("GET /resources/{name}/{id}", () => {
    it("shows the record itself", async () => {
      const answer = await as("ada", "GET /orders/1");

      expect(answer.status).to.equal(200);
      expect(answer.json).to.deep.equal(orderOne);
    });

    for (const [who, request, status] of [
      ["root", "GET /orders/3", 200],
      ["bob", "GET /orders/1", 403],
      ["ada", "GET /notices/1", 403],
      ["root", "GET /notices/1", 200],
      ["ada", "GET /pages/a%2Fb", 200],
      ["bob", "GET /pages/a%2Fb", 403],
      ["ada", "GET /pages/gone", 404],
      ["root", "GET /pages/gone", 404],
      ["ada", "GET /orders/99", 404],
      ["ada", "GET /orders/abc", 404],
      ["ada", "GET /orders/1e0", 404],
      ["ada", "GET /orders/01", 404],
      ["ada", "GET /orders/1%20", 404],
      ["ada", "GET /orders/99999999999", 404],
      ["ada", "GET /orders/%zz", 404],
      ["ada", "GET /orders/%00", 404],
      ["ada", "GET /pages/a%00b", 404],
      ["ada", "GET /pages/%F0%9F", 404],
      ["ada", "GET /orders/1/x", 404],
    ] as const) {
      it(`answers ${who}'s ${request} with ${status}`, async () => {
        expect((await as(who, request)).status).to.equal(status);
      });
    }
  });
});
