import { expect } from "chai";
import { openDatabase, type Database } from "../../src/db/client.ts";
import type { ModelsClient } from "../../src/db/models-client.ts";
import { openModelsClient } from "../../src/db/prisma-internals/models-client.ts";
import { prismaSchemaOf } from "../../src/mapping/models.ts";
import type { Answer } from "../support/http.ts";
import { definitions, openServedDatabase, recordDatabaseOf, type ServedDatabase } from "./serving.ts";
import { ask, idsOf, startApi, type Api } from "./serving-api.ts";

interface Envelope {
  readonly data: readonly unknown[];
  readonly per_page: number;
  readonly current_page: number;
  readonly last_page: number;
  readonly total: number;
  readonly next_page_url: string | null;
}

const envelopeOf = (answer: Answer): Envelope => answer.json as Envelope;

/**
 * 40 notices, the second to the thirtieth of 100 KB, the others small; one answer may read 1 MB.
 */
describe("GET /resources/{name} of large records", () => {
  let served: ServedDatabase;
  let database: Database;
  let models: ModelsClient;
  let api: Api;

  before(async () => {
    served = await openServedDatabase();
    await served.sql(
      "INSERT INTO notices (text) SELECT CASE WHEN i BETWEEN 2 AND 30 THEN repeat('a', 100000) ELSE 'small' END FROM generate_series(1, 40) AS i",
    );
    database = await openDatabase({
      url: served.url,
      poolSize: 4,
      lists: { connections: 2, statementTimeoutMs: 5000, maxResultBytes: 1_000_000, maxRowBytes: 3_000_000 },
      isEmbedded: false,
    });
    models = await openModelsClient({
      schemaText: prismaSchemaOf(definitions),
      pool: database.pool,
      lists: database.lists,
      isEmbedded: false,
    });
    api = await startApi({ ...served, records: recordDatabaseOf({ database, models }) });
  });

  after(async () => {
    await api.server.close();
    await models.close();
    await database.close();
    await served.close();
  });

  it("ends a page early, with the real per_page, and links on without a gap", async () => {
    const answer = envelopeOf(await ask(api, "root", "GET /notices?per_page=40"));

    expect(answer).to.include({ total: 40, current_page: 1, per_page: 10, last_page: 4 });
    expect(answer.data).to.have.length(10);
    expect(answer.next_page_url).to.match(/per_page=10&page=2$/);
  });

  it("ends no page early whose small part of the records fits", async () => {
    await ask(api, "root", "GET /notices?per_page=40");

    const answer = envelopeOf(await ask(api, "root", "GET /notices?per_page=40&fields=id"));
    expect([answer.per_page, answer.data.length, answer.next_page_url]).to.deep.equal([40, 40, null]);
  });

  it("shows every record once to a client that follows the links", async () => {
    const ids: unknown[] = [];
    let path: string | null = "/notices?per_page=20";
    while (path !== null) {
      const answer = await ask(api, "root", `GET ${path}`);
      expect(answer.status).to.equal(200);
      ids.push(...idsOf(answer));
      const next = envelopeOf(answer).next_page_url;
      path = next === null ? null : next.slice(next.indexOf("/notices"));
    }

    expect(ids).to.deep.equal(Array.from({ length: 40 }, (_, i) => i + 1));
  });

  for (const count of ["exact", "estimated", "none"])
    it(`continues from a shortened page with the links, with count=${count}`, async () => {
      // The page before had 10 records at most, and no page of so many begins at the 32nd.
      await ask(api, "root", `GET /notices?per_page=40&count=${count}`);
      const answer = envelopeOf(await ask(api, "root", `GET /notices?per_page=31&page=2&count=${count}`));

      expect([answer.per_page, answer.current_page, answer.data.length]).to.deep.equal([1, 32, 1]);
      expect(answer.next_page_url).to.contain("per_page=1&page=33");
    });

  it("sends a large page with its length, to HEAD too, and one log line each", async () => {
    const [large, small] = [
      await ask(api, "root", "GET /notices?per_page=9"),
      await ask(api, "root", "GET /notices?per_page=1"),
    ];
    const from = api.lines.length;
    const head = await ask(api, "root", "HEAD /notices?per_page=9");

    const shown = envelopeOf(large);
    expect(shown.data).to.have.length(9);
    expect(shown.data[0]).to.deep.equal(envelopeOf(small).data[0]);
    expect(JSON.stringify(shown)).to.equal(large.text);
    expect(large.text.length).to.be.above(800_000);
    for (const { headers } of [large, head])
      expect([headers["content-type"], headers["content-length"]]).to.deep.equal([
        "application/json; charset=utf-8",
        String(large.text.length),
      ]);
    expect([head.status, head.text]).to.deep.equal([200, ""]);
    expect(api.lines.slice(from).filter(({ msg }) => msg === "request").length).to.equal(1);
  });

  for (const [what, path] of [
    ["number", "/notices?per_page=3"],
    ["number, without a count", "/notices?per_page=3&count=none"],
    ["cursor", "/notices?per_page=3&cursor="],
  ] as const)
    it(`shows records that are larger than a page one by one, and continues behind them by ${what}`, async () => {
      await served.sql(
        "UPDATE notices SET text = CASE WHEN id IN (2, 3) THEN repeat('b', 2000000) ELSE 'small' END WHERE id < 6",
      );

      const ids: unknown[] = [];
      let next: string | null = path;
      while (next !== null && ids.length < 5) {
        const answer = await ask(api, "root", `GET ${next}`);
        expect(answer.status).to.equal(200);
        ids.push(...idsOf(answer));
        const url = envelopeOf(answer).next_page_url;
        next = url && url.slice(url.indexOf("/notices"));
      }

      expect(ids.slice(0, 5)).to.deep.equal([1, 2, 3, 4, 5]);
    });

  it("says whether another record follows one that is larger than a page", async () => {
    await served.sql(
      "INSERT INTO notices (id, text) VALUES (99, repeat('b', 2000000)), (100, repeat('b', 2000000))",
    );

    const first = await ask(api, "root", "GET /notices?per_page=3&cursor=&sort=-id");
    const last = await ask(api, "root", "GET /notices?per_page=3&cursor=&filter[id]=100");

    await served.sql("DELETE FROM notices WHERE id > 98");
    expect([idsOf(first), envelopeOf(first).next_page_url === null]).to.deep.equal([[100], false]);
    expect([idsOf(last), envelopeOf(last).next_page_url]).to.deep.equal([[100], null]);
  });

  it("answers 500 for a record beyond every limit, and logs the name of the limit", async () => {
    await served.sql("INSERT INTO notices (id, text) VALUES (0, repeat('a', 4000000))");

    const answer = await ask(api, "root", "GET /notices?per_page=40");

    await served.sql("DELETE FROM notices WHERE id = 0");
    expect(answer.status).to.equal(500);
    expect(JSON.stringify(api.lines)).to.contain("http.memoryBudget");
  });
});
