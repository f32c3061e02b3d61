import { expect } from "chai";
import { definition, definitionsOf, field } from "../support/definitions.ts";
import type { Answer } from "../support/http.ts";
import { ask, idsOf, startApi } from "./serving-api.ts";
import { servedOfSuite } from "./serving.ts";

const places = definition({
  name: "places",
  isManaged: false,
  fields: [field("code", "String", { isKey: true })],
  access: {
    read: { kind: "everyone" },
    create: { kind: "admin" },
    update: { kind: "admin" },
    delete: { kind: "admin" },
    reference: { kind: "everyone" },
  },
});

const visits = definition({
  name: "visits",
  isManaged: false,
  fields: [
    field("place_code", "String", {
      references: { resource: "places", field: "code", as: "place", onDelete: "noAction" },
    }),
  ],
  access: places.access,
  includes: ["place"],
});

const notes = definition({
  name: "notes",
  isManaged: false,
  fields: [
    field("text", "String"),
    field("visit_id", "Int", {
      references: { resource: "visits", field: "id", as: "visit", onDelete: "noAction" },
    }),
  ],
  access: places.access,
});

interface Errors {
  readonly errors: unknown;
}

describe("the parameter include", () => {
  const served = servedOfSuite();

  before(async () => {
    await served.sql("CREATE TABLE places (code char(4) PRIMARY KEY)");
    await served.sql(
      "CREATE TABLE visits (id serial PRIMARY KEY, place_code varchar(4) NOT NULL REFERENCES places)",
    );
    await served.sql("INSERT INTO places VALUES ('it'), ('se')");
    await served.sql("INSERT INTO visits (place_code) VALUES ('se'), ('it'), ('se')");
  });

  it("shows a record whose key is written differently from the reference to it", async () => {
    const api = await startApi(served, definitionsOf(places, visits));

    const { json } = await ask(api, "ada", "GET /visits?include=place&fields=id");

    expect((json as { readonly data: unknown }).data).to.deep.equal([
      { id: 1, place: { code: "se  " } },
      { id: 2, place: { code: "it  " } },
      { id: 3, place: { code: "se  " } },
    ]);
    await api.server.close();
  });

  it("shows the first of two records whose key has no constraint", async () => {
    await served.sql("CREATE VIEW doubled AS SELECT code FROM places UNION ALL SELECT code FROM places");
    const doubled = { ...places, table: "doubled" };
    for (const code of [{}, { transform: (row: unknown) => row }]) {
      const api = await startApi(served, definitionsOf({ ...doubled, code }, visits));

      const { json } = await ask(api, "ada", "GET /visits?include=place&fields=id");

      expect((json as { readonly data: readonly unknown[] }).data[0]).to.deep.equal({
        id: 1,
        place: { code: "se  " },
      });
      await api.server.close();
    }
  });

  it("is refused where one record has more linked records than an answer may hold, and no other is", async () => {
    await served.sql("CREATE TABLE notes (id serial PRIMARY KEY, text text NOT NULL, visit_id int NOT NULL)");
    await served.sql(
      "INSERT INTO notes (text, visit_id) VALUES ('a', 1), (repeat('a', 9000000), 2), (repeat('a', 9000000), 2), ('a', 3)",
    );
    const noted = { ...visits, includes: ["notes"] };
    const api = await startApi(served, definitionsOf(places, noted, notes));
    const get = (query: string): Promise<Answer> => ask(api, "ada", `GET /visits?include=notes&${query}`);

    const refused = [
      await get("filter[id]=2"),
      await get("per_page=1&page=2&count=none"),
      await get("filter[id][lt]=3&sort=-id&cursor="),
    ];
    const others = [await get("per_page=2"), await get("sort=-id&cursor=")];

    await api.server.close();
    const message = "The notes of one record are too large for an answer; ask for them by a list of notes.";
    for (const { status, json } of refused)
      expect([status, (json as Errors).errors]).to.deep.equal([422, { include: [message] }]);
    expect(others.map(idsOf)).to.deep.equal([[1], [3]]);
  });
});
