import { expect } from "chai";
import type { Access } from "../../src/mapping/definition.ts";
import { migrateCore } from "../support/core-database.ts";
import { ownersOnly } from "../support/definitions.ts";
import type { Answer } from "../support/http.ts";
import { withVariant } from "./serving.ts";
import { ask, seed, apiOfSuite, startApi, type Api } from "./serving-api.ts";

interface Result {
  readonly status: number;
  readonly record?: Readonly<Record<string, unknown>>;
}

const create = (reference: string, more: object = {}): unknown => ({
  method: "create",
  data: { reference, amount: 5, ...more },
});

const resultsOf = ({ json }: Answer): readonly Result[] => (json as { data: readonly Result[] }).data;

const faultOf = ({ status, json }: Answer): unknown => {
  const { code, errors } = json as { code: string; errors?: unknown };
  return [status, code, errors];
};

describe("POST /resources/{name}/batch", () => {
  const { served, api } = apiOfSuite(undefined, { bodyLimitBytes: 2_000_000 });
  const as = (who: string, request: string, body?: unknown): Promise<Answer> => ask(api, who, request, body);
  const batch = (who: string, ...operations: readonly unknown[]): Promise<Answer> =>
    as(who, "POST /orders/batch", { operations });

  const statusOf = async (...references: readonly string[]): Promise<number> =>
    (await batch("ada", ...references.map((reference) => create(reference)))).status;

  beforeEach(() => seed(served));

  const stored = (): Promise<unknown[]> =>
    served.sql("SELECT id, reference, amount, remarks, user_id FROM orders ORDER BY id");

  it("creates records without a reference whose target has a filter that only Prisma knows", async () => {
    const access: Access = { ...ownersOnly, reference: { kind: "owner" } };
    const baseQuery = { where: { name: { equals: "acme", mode: "insensitive" } } };
    const other = await startApi(served, withVariant("customers", { access, baseQuery }));
    const operations = [create("N-1"), create("N-2")];
    const answer = await ask(other, "ada", "POST /orders/batch", { operations });
    await other.server.close();

    expect([answer.status, (await stored()).length]).to.deep.equal([200, 5]);
  });

  it("runs the operations in their order, and answers each like a single write", async () => {
    const before = api.changes();

    const answer = await batch(
      "ada",
      create("N-1", { customer_id: 1, user_id: 8 }),
      { method: "update", id: 1, data: { notes: "b" } },
      { method: "delete", id: "2" },
      create("A-2"),
    );

    expect(answer.status).to.equal(200);
    expect(resultsOf(answer)).to.deep.equal([
      {
        status: 201,
        record: {
          id: 4,
          reference: "N-1",
          status: "open",
          amount: "5.00",
          notes: null,
          user_id: 7,
          customer: "Acme",
        },
      },
      { status: 200, record: (await as("ada", "GET /orders/1")).json },
      { status: 204 },
      { status: 201, record: (await as("ada", "GET /orders/5")).json },
    ]);
    expect((await as("ada", "GET /orders/2")).status).to.equal(404);
    expect(api.changes()).to.equal(before + 1);
    expect(answer.headers).not.to.have.property("etag");
  });

  it("takes 1,000 operations", async () => {
    const answer = await batch("ada", ...Array.from({ length: 1000 }, (_, i) => create(`M-${i}`)));

    expect(answer.status).to.equal(200);
    expect(resultsOf(answer)).to.have.length(1000);
    expect(await stored()).to.have.length(1003);
  }).timeout(30_000);

  describe("writes nothing, and names the place,", () => {
    for (const [what, operations, fault] of [
      [
        "for data that break the rules",
        [create("N-1"), create("N-2", { amount: -1, notes: 5 })],
        [
          422,
          "validation.failed",
          {
            "operations.1.data.amount": ["The amount field must be at least 0."],
            "operations.1.data.notes": ["The notes field must be a string."],
          },
        ],
      ],
      [
        "for a unique value that the batch itself has used",
        [create("N-1"), create("N-1")],
        [
          422,
          "validation.failed",
          { "operations.1.data.reference": ["The reference has already been taken."] },
        ],
      ],
      [
        "for what only the database refuses",
        [create("N-1"), { method: "update", id: 1, data: { customer_id: 99 } }],
        [
          422,
          "validation.failed",
          { "operations.1.data.customer_id": ["The selected customer id is invalid."] },
        ],
      ],
      [
        "for a record that is not there",
        [create("N-1"), { method: "update", id: 99, data: {} }],
        [404, "record.not_found", { "operations.1.id": ["The orders record 99 could not be found."] }],
      ],
      [
        "for an id that cannot be one",
        [create("N-1"), { method: "delete", id: "abc" }],
        [404, "record.not_found", { "operations.1.id": ["The orders record abc could not be found."] }],
      ],
      [
        "for a long id that cannot be one, which the answer shortens",
        [create("N-1"), { method: "delete", id: "a".repeat(5000) }],
        [
          404,
          "record.not_found",
          { "operations.1.id": [`The orders record ${"a".repeat(100)}… could not be found.`] },
        ],
      ],
      [
        "for a record that the batch itself has deleted",
        [
          { method: "delete", id: 1 },
          { method: "update", id: 1, data: { notes: "b" } },
        ],
        [404, "record.not_found", { "operations.1.id": ["The orders record 1 could not be found."] }],
      ],
      [
        "for somebody else's record",
        [create("N-1"), { method: "delete", id: 3 }],
        [403, "record.forbidden", { "operations.1.id": ["This action is unauthorized."] }],
      ],
      [
        "for another entity tag",
        [create("N-1"), { method: "update", id: 1, data: { notes: "b" }, if_match: '"x"' }],
        [
          412,
          "record.changed",
          {
            "operations.1.if_match": [
              "The record was changed since it was read. Nothing was written: read it again, and send the change with its new ETag.",
            ],
          },
        ],
      ],
      [
        "for another entity tag of the second of two deletes",
        [
          { method: "delete", id: 1, if_match: "*" },
          { method: "delete", id: 2, if_match: '"x"' },
        ],
        [
          412,
          "record.changed",
          {
            "operations.1.if_match": [
              "The record was changed since it was read. Nothing was written: read it again, and send the change with its new ETag.",
            ],
          },
        ],
      ],
      [
        "for a fault in the form of the body",
        [create("N-1"), { method: "upsert" }],
        [
          422,
          "validation.failed",
          {
            "operations.1.method": [
              "The selected operations.1.method is invalid; expected create, update or delete.",
            ],
          },
        ],
      ],
    ] as const) {
      it(what, async () => {
        const [before, changes] = [await stored(), api.changes()];

        expect(faultOf(await batch("ada", ...operations))).to.deep.equal(fault);
        expect(await stored()).to.deep.equal(before);
        expect(api.changes()).to.equal(changes);
      });
    }
  });

  it("refuses a delete that a reference forbids with 409", async () => {
    const answer = await as("root", "POST /customers/batch", {
      operations: [
        { method: "create", data: { name: "New" } },
        { method: "delete", id: 1 },
      ],
    });

    expect(faultOf(answer)).to.deep.equal([
      409,
      "record.referenced",
      { "operations.1.id": ["The record cannot be deleted: other records refer to it."] },
    ]);
    expect(await served.sql("SELECT FROM customers")).to.have.length(2);
  });

  it("allows a unique value again that the batch has freed", async () => {
    const answer = await batch("ada", { method: "delete", id: 1 }, create("A-1"));

    expect(resultsOf(answer).map(({ status }) => status)).to.deep.equal([204, 201]);
  });

  it("continues after a value that its column cannot hold", async () => {
    const own = await startApi(
      served,
      withVariant("pages", {
        createRules: { slug: "required|string", title: "required|string|unique:countries,size" },
      }),
    );
    try {
      const operations = ["x", "y"].map((slug) => ({ method: "create", data: { slug, title: "no size" } }));

      expect((await ask(own, "ada", "POST /pages/batch", { operations })).status).to.equal(200);
    } finally {
      await own.server.close();
    }
  });

  it("writes when the entity tags match the records, of earlier operations too", async () => {
    const { headers } = await as("ada", "GET /orders/1");
    const after = await as("ada", "PUT /orders/1", { notes: "once" });
    await seed(served);

    const answer = await batch(
      "ada",
      { method: "update", id: 1, data: { notes: "once" }, if_match: headers["etag"] },
      { method: "update", id: 1, data: { notes: "twice" }, if_match: after.headers["etag"] },
      { method: "delete", id: 2, if_match: "*" },
    );

    expect(resultsOf(answer).map(({ status }) => status)).to.deep.equal([200, 200, 204]);
  });

  it("refuses a new record that the rule of create excludes, with 403", async () => {
    const rules = [
      { where: { status: { not: "shipped" } }, place: 1, of: ["open", "shipped"] },
      { where: { status: { not: "shipped" } }, place: 5, of: [...Array<string>(5).fill("open"), "shipped"] },
      // Later records would make it fit.
      {
        where: { customer: { orders: { some: { status: "paid" } } } },
        place: 0,
        of: ["open", ...Array<string>(5).fill("paid")],
      },
    ];
    for (const { where, place, of } of rules) {
      const access: Access = { ...ownersOnly, create: { kind: "filter", where } };
      const own = await startApi(served, withVariant("orders", { access }));
      const before = await stored();
      try {
        const operations = of.map((status, index) => create(`N-${index}`, { status, customer_id: 1 }));
        const answer = await ask(own, "ada", "POST /orders/batch", { operations });

        expect(faultOf(answer)).to.deep.equal([
          403,
          "record.forbidden",
          { [`operations.${place}.data`]: ["This action is unauthorized."] },
        ]);
        expect(await stored()).to.deep.equal(before);
      } finally {
        await own.server.close();
      }
    }
  });

  it("refuses an operation that the resource does not support, with 422", async () => {
    const answer = await as("root", "POST /notices/batch", {
      operations: [
        { method: "create", data: { text: "a" } },
        { method: "delete", id: 1 },
      ],
    });

    expect(faultOf(answer)).to.deep.equal([
      422,
      "validation.failed",
      { "operations.1.method": ["The resource notices does not support delete."] },
    ]);
    expect(await served.sql("SELECT FROM notices")).to.have.length(1);
  });

  it("repeats the answer of an Idempotency-Key after a reload that removed a method", async () => {
    await migrateCore(served.database.pool);
    const operations = [{ method: "delete", id: 1 }];
    const again = (to: Api): Promise<Answer> =>
      ask(to, "ada", "POST /orders/batch", { operations }, { "Idempotency-Key": "k" });
    const first = await again(api);
    const own = await startApi(served, withVariant("orders", { supportsDelete: false }));
    try {
      const second = await again(own);

      expect([first.status, second.status, second.text]).to.deep.equal([200, 200, first.text]);
    } finally {
      await own.server.close();
    }
  });

  it("answers 404 for an unknown resource, and 405 where nothing is supported", async () => {
    const own = await startApi(
      served,
      withVariant("orders", { supportsCreate: false, supportsUpdate: false, supportsDelete: false }),
    );
    try {
      expect((await ask(own, "ada", "POST /nothing/batch", {})).status).to.equal(404);
      const answer = await ask(own, "ada", "POST /orders/batch", {});
      expect([answer.status, answer.headers["allow"]]).to.deep.equal([405, "GET, HEAD"]);
    } finally {
      await own.server.close();
    }
  });

  it("keeps a record whose key is batch: all other methods are about it", async () => {
    await as("ada", "POST /pages", { slug: "batch", title: "A page" });

    const operations = [{ method: "update", id: "batch", data: { title: "Changed" } }];
    const done = await as("ada", "POST /pages/batch", { operations });
    const shown = await as("ada", "GET /pages/batch");
    const changed = await as("ada", "PATCH /pages/batch", { title: "Again" });
    const allow = (await as("ada", "OPTIONS /pages/batch")).headers["allow"];
    const removed = await as("ada", "DELETE /pages/batch");

    expect([done.status, shown.status, changed.status, removed.status]).to.deep.equal([200, 200, 200, 204]);
    expect(shown.json).to.include({ slug: "batch", title: "Changed" });
    expect(allow).to.equal("GET, HEAD, POST, PUT, PATCH, DELETE");
  });

  for (const [name, code] of [
    ["transform", { transform: ({ reference }: { reference?: unknown }) => failAt(reference) }],
    ["createRules", { createRules: () => failAt("N-2") }],
    ["isAdmin", { isAdmin: () => failAt("N-2") }],
  ] as const) {
    it(`answers 500 and writes nothing when ${name} throws`, async () => {
      const own = await startApi(served, withVariant("orders", { code: code as never }));
      const before = await stored();
      try {
        const operations = [create("N-1"), create("N-2"), { method: "update", id: 1, data: { notes: "b" } }];
        const answer = await ask(own, "ada", "POST /orders/batch", { operations });

        expect([answer.status, answer.text]).to.deep.equal([500, '{"message":"Server Error"}']);
        expect(await stored()).to.deep.equal(before);
      } finally {
        await own.server.close();
      }
    });
  }

  it("accepts one of two batches with the same values", async () => {
    expect(await Promise.all([statusOf("P-1", "P-2"), statusOf("P-2", "P-1")])).to.have.members([200, 422]);
    expect(await stored()).to.have.length(5);
  });
});

function failAt(reference: unknown): object {
  if (reference === "N-2") throw new Error("a bug");
  return { reference };
}
