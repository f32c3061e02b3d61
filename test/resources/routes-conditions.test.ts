import { createHash } from "node:crypto";
import { expect } from "chai";
import { definition, definitionsOf, field } from "../support/definitions.ts";
import type { Answer } from "../support/http.ts";
import { until } from "../support/wait.ts";
import { withVariant, type ServedDatabase } from "./serving.ts";
import { ask, seed, apiOfSuite, startApi } from "./serving-api.ts";

const tagOf = ({ text }: Answer): string => `"${createHash("sha256").update(text).digest("base64url")}"`;
const codeOf = ({ json }: Answer): unknown => (json as { readonly code?: string } | undefined)?.code;

describe("conditions on records", () => {
  const { served, api } = apiOfSuite();
  const as = (
    who: string,
    request: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> => ask(api, who, request, body, headers);

  beforeEach(() => seed(served));

  const statusUnless = async (request: string, body: unknown, text: string): Promise<number> =>
    (await as("ada", request, body, { "If-None-Match": text })).status;
  const currentTag = async (): Promise<string> => (await as("ada", "GET /orders/1")).headers["etag"] ?? "";

  describe("ETag", () => {
    it("is the hash of the bytes, on every answer that holds one record", async () => {
      const body = { reference: "N-1", amount: 5 };

      for (const answer of [
        await as("ada", "GET /orders/1"),
        await as("ada", "POST /orders", body),
        await as("ada", "PUT /orders/1", { notes: "Zoë" }),
        await as("ada", "PATCH /orders/1", { notes: "b" }),
        await as("ada", "PUT /orders/1", {}),
      ]) {
        expect(answer.headers["etag"], answer.text).to.equal(tagOf(answer));
      }
    });

    it("is the same for HEAD, and for another user with the same view", async () => {
      const tag = await currentTag();

      expect((await as("ada", "HEAD /orders/1")).headers["etag"]).to.equal(tag);
      expect((await as("root", "GET /orders/1")).headers["etag"]).to.equal(tag);
    });

    it("changes with an included record", async () => {
      const before = await currentTag();
      await served.sql("UPDATE customers SET name = 'Other' WHERE id = 1");

      expect(await currentTag()).not.to.equal(before);
    });

    it("stays when only hidden parts change", async () => {
      const before = await currentTag();
      await served.sql("UPDATE orders SET token = gen_random_uuid() WHERE id = 1");

      expect(await currentTag()).to.equal(before);
    });

    it("is on no list and no error", async () => {
      expect((await as("ada", "GET /orders")).headers).not.to.have.property("etag");
      expect((await as("ada", "GET /orders/3")).headers).not.to.have.property("etag");
    });
  });

  describe("POST /resources/{name}", () => {
    it("links to the record, with the same answer at that path", async () => {
      const { headers, json } = await as("ada", "POST /pages", { slug: "c d/e", title: "Three" });
      const { pathname, origin } = new URL(headers["location"] ?? "");

      expect(origin).to.equal(`http://127.0.0.1:${api.server.port}`);
      expect(pathname).to.equal("/svc-api/resources/pages/c%20d%2Fe");
      expect((await as("ada", `GET ${pathname.replace("/svc-api/resources", "")}`)).json).to.deep.equal(json);
    });
  });

  describe("GET with If-None-Match", () => {
    for (const [what, make] of [
      ["the tag", (tag: string) => tag],
      ["the weak tag", (tag: string) => `W/${tag}`],
      ["a list with it", (tag: string) => `"x", ${tag} ,"y"`],
      ["*", () => "*"],
    ] as const) {
      it(`answers 304 without a body to ${what}`, async () => {
        const tag = await currentTag();

        const answer = await as("ada", "GET /orders/1", undefined, { "If-None-Match": make(tag) });

        expect([answer.status, answer.text, answer.headers["etag"]]).to.deep.equal([304, "", tag]);
        expect(answer.headers).not.to.have.property("content-type");
      });
    }

    it("answers 304 to a page that asks for no cache, as browsers do in their own header", async () => {
      const headers = { "If-None-Match": await currentTag(), "Cache-Control": "no-cache" };

      expect((await as("ada", "GET /orders/1", undefined, headers)).status).to.equal(304);
    });

    for (const text of ['"x"', "x", '"x" "y"']) {
      it(`answers the record to ${text}`, async () => {
        const answer = await as("ada", "GET /orders/1", undefined, { "If-None-Match": text });

        expect([answer.status, answer.text.length > 2]).to.deep.equal([200, true]);
      });
    }

    it("answers 304 to HEAD, 404 and 403 as without it", async () => {
      const headers = { "If-None-Match": "*" };

      const answers = await Promise.all(
        ["HEAD /orders/1", "GET /orders/99", "GET /orders/3"].map((request) =>
          as("ada", request, undefined, headers),
        ),
      );
      expect(answers.map(({ status }) => status)).to.deep.equal([304, 404, 403]);
    });
  });

  for (const method of ["PUT", "PATCH", "DELETE"]) {
    const request = `${method} /orders/1`;
    const body = method === "DELETE" ? undefined : { notes: "b" };
    const done = method === "DELETE" ? 204 : 200;

    describe(`${method} with If-Match`, () => {
      it("writes to the record that it names", async () => {
        const tag = await currentTag();

        for (const text of [tag, "*"]) {
          const answer = await as("ada", request, body, { "If-Match": text });
          expect(answer.status).to.equal(done);
          await seed(served);
        }
      });

      for (const [what, make] of [
        ["another tag", () => '"x"'],
        ["the weak tag, which matches nothing strongly", (tag: string) => `W/${tag}`],
      ] as const) {
        it(`answers 412 to ${what}, and writes nothing`, async () => {
          const before = await currentTag();

          const answer = await as("ada", request, body, { "If-Match": make(before) });

          expect([answer.status, codeOf(answer)]).to.deep.equal([412, "record.changed"]);
          expect(answer.headers).not.to.have.property("etag");
          expect(await currentTag()).to.equal(before);
        });
      }

      it("answers 412 to an earlier tag", async () => {
        const before = await currentTag();
        await as("ada", "PUT /orders/1", { notes: "first" });

        expect((await as("ada", request, body, { "If-Match": before })).status).to.equal(412);
      });

      for (const [what, make] of [
        ["what is no tag", (tag: string) => tag.slice(1, -1)],
        ["nothing", () => ""],
      ] as const) {
        it(`answers 400 to ${what}, and writes nothing`, async () => {
          const before = await currentTag();

          const answer = await as("ada", request, body, { "If-Match": make(before) });

          expect([answer.status, codeOf(answer)]).to.deep.equal([400, "request.malformed"]);
          expect(await currentTag()).to.equal(before);
        });
      }

      it("answers 404 and 403 as without it, also to *", async () => {
        for (const text of ["*", '"x"']) {
          const headers = { "If-Match": text };
          expect((await as("ada", `${method} /orders/99`, body, headers)).status).to.equal(404);
          expect((await as("ada", `${method} /orders/3`, body, headers)).status).to.equal(403);
        }
      });

      it("answers 412 when another user writes between the comparison and the statement", async () => {
        const tag = await currentTag();
        const client = await served.database.pool.connect();
        try {
          await client.query("BEGIN; UPDATE orders SET remarks = 'other' WHERE id = 1");
          const answering = as("ada", request, body, { "If-Match": tag });
          await waitsForLock(served);
          await client.query("COMMIT");

          const answer = await answering;
          expect([answer.status, codeOf(answer)]).to.deep.equal([412, "record.changed"]);
        } finally {
          client.release();
        }
        expect(await served.sql("SELECT remarks FROM orders WHERE id = 1")).to.deep.equal([
          { remarks: "other" },
        ]);
      });

      it("answers 404 when another user deletes it in between", async () => {
        const tag = await currentTag();
        const client = await served.database.pool.connect();
        try {
          await client.query("BEGIN; DELETE FROM orders WHERE id = 1");
          const answering = as("ada", request, body, { "If-Match": tag });
          await waitsForLock(served);
          await client.query("COMMIT");

          expect((await answering).status).to.equal(404);
        } finally {
          client.release();
        }
      });

      it("accepts one of ten writes with the same tag", async () => {
        const tag = await currentTag();

        const answers = await Promise.all(
          Array.from({ length: 10 }, (_, i) =>
            as("ada", request, body && { notes: `by ${i}` }, { "If-Match": tag }),
          ),
        );

        const lost = method === "DELETE" ? 404 : 412;
        expect(answers.filter(({ status }) => status === done)).to.have.length(1);
        expect(answers.filter(({ status }) => status === lost || status === 412)).to.have.length(9);
      });
    });

    describe(`${method} with If-None-Match`, () => {
      it("answers 412 to * and to the record's tag, and writes for another tag", async () => {
        const tag = await currentTag();
        expect([
          await statusUnless(request, body, "*"),
          await statusUnless(request, body, tag),
          await statusUnless(request, body, '"x"'),
        ]).to.deep.equal([412, 412, done]);
      });

      it("answers 412 where If-Match has the tag too, and writes nothing", async () => {
        const tag = await currentTag();

        const answer = await as("ada", request, body, { "If-Match": tag, "If-None-Match": tag });

        expect([answer.status, codeOf(answer)]).to.deep.equal([412, "record.changed"]);
        expect(await currentTag()).to.equal(tag);
      });
    });
  }

  it("are checked before the body", async () => {
    const answer = await as("ada", "PUT /orders/1", { amount: -1 }, { "If-Match": '"x"' });

    expect(answer.status).to.equal(412);
  });

  it("take one statement more", async () => {
    const tag = await currentTag();
    const statements = async (headers: Record<string, string>): Promise<number> => {
      served.statements();
      await as("ada", "PATCH /orders/1", { notes: "b" }, headers);
      return served.statements().length;
    };

    expect(await statements({})).to.equal(2);
    await seed(served);
    expect(await statements({ "If-Match": tag })).to.equal(3);
  });

  it("work for a resource with a transform in code", async () => {
    const own = await startApi(
      served,
      withVariant("orders", { code: { transform: ({ id, notes }) => ({ id, notes }) } }),
    );
    try {
      const { headers } = await ask(own, "ada", "GET /orders/1");
      const first = await ask(
        own,
        "ada",
        "PUT /orders/1",
        { notes: "b" },
        { "If-Match": headers["etag"] ?? "" },
      );
      const second = await ask(
        own,
        "ada",
        "PUT /orders/1",
        { notes: "c" },
        { "If-Match": headers["etag"] ?? "" },
      );

      expect([first.status, second.status]).to.deep.equal([200, 412]);
    } finally {
      await own.server.close();
    }
  });
});

describe("an id that its column cannot hold", () => {
  const native = { isKey: true, native: "inet" };
  const hosts = definition({
    name: "hosts",
    fields: [field("host", "String", native), field("name", "String")],
  });
  const { served, api } = apiOfSuite(definitionsOf(hosts));

  before(() => served.sql("CREATE TABLE hosts (host inet PRIMARY KEY, name text)"));

  for (const [name, request, body] of [
    ["GET", "GET /hosts/bogus", undefined],
    ["PUT", "PUT /hosts/bogus", { name: "a" }],
    ["DELETE", "DELETE /hosts/bogus", undefined],
    ...["update", "delete"].flatMap((method) =>
      [{}, { if_match: '"x"' }].map((condition) => {
        const operation = {
          method,
          id: "bogus",
          ...(method === "update" && { data: { name: "a" } }),
          ...condition,
        };
        const what = `a batch with ${JSON.stringify(operation)}`;
        return [what, "POST /hosts/batch", { operations: [operation] }] as const;
      }),
    ),
  ] as const)
    for (const headers of body !== undefined && "operations" in body ? [{}] : [{}, { "If-Match": '"x"' }])
      it(`is a 404 for ${name} ${JSON.stringify(headers)}`, async () => {
        expect((await ask(api, "root", request, body, headers)).status).to.equal(404);
      });
});

/** Waits until a statement of the API waits for a row. */
async function waitsForLock({ sql }: ServedDatabase): Promise<void> {
  await until(
    async () =>
      (
        await sql(
          "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
        )
      ).length > 0,
    { what: "a statement that waits for the row" },
  );
}
