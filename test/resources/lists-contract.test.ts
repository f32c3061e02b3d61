import { expect } from "chai";
import type { Answer } from "../support/http.ts";
import { apiOfSuite, ask, errorsOf, startApi } from "./serving-api.ts";
import { fillShop, makeShop, shop, shopWith, token } from "./listed-shop.ts";

type Shown = Readonly<Record<string, unknown>>;

const dataOf = (answer: Answer): readonly Shown[] => {
  expect([answer.status, answer.status === 200 ? "" : answer.text]).to.deep.equal([200, ""]);
  return (answer.json as { data: readonly Shown[] }).data;
};

const references = (answer: Answer): string =>
  dataOf(answer)
    .map(({ reference }) => reference)
    .join("");

describe("lists of resources", () => {
  const { served, api } = apiOfSuite(shop);

  before(async () => {
    await makeShop(served);
    await fillShop(served);
  });

  const get = (query: string, who = "ada"): Promise<Answer> => ask(api, who, `GET /sales?${query}`);

  const foundBy = async (query: string): Promise<unknown> => {
    const { total } = (await get(query)).json as { total: number };
    return [total, references(await get(query))];
  };

  const counted = async (query: string): Promise<unknown> => {
    const { total, last_page, total_is_estimate, data } = (await ask(api, "root", `GET /firms?${query}`))
      .json as Shown;
    return { total, last_page, total_is_estimate, size: (data as unknown[]).length };
  };

  for (const [query, found] of [
    ["", "ABCD"],
    ["filter[reference]=A", "A"],
    ["filter[reference]=A,C", "AC"],
    ["filter[reference][eq]=a", ""],
    ["filter[reference][ne]=A", "BCD"],
    ["filter[amount]=10", "AD"],
    ["filter[amount]=10.00", "AD"],
    ["filter[amount][ne]=10", "B"],
    ["filter[amount][lt]=20.5", "AD"],
    ["filter[amount][lte]=20.5", "ABD"],
    ["filter[amount][gt]=10", "B"],
    ["filter[amount][gte]=1e1", "ABD"],
    ["filter[amount][between]=10.01,30", "B"],
    ["filter[amount][in]=10,20.5", "ABD"],
    ["filter[amount][not_in]=10", "B"],
    ["filter[amount][null]=true", "C"],
    ["filter[amount][null]=false", "ABD"],
    ["filter[weight]=1.5", "A"],
    ["filter[weight][lt]=0", "B"],
    ["filter[serial]=9007199254740993", "A"],
    ["filter[serial][lt]=9007199254740993", "BD"],
    ["filter[state]=open", "AC"],
    ["filter[state][contains]=PA", "BD"],
    ["filter[urgent]=true", "AD"],
    ["filter[urgent]=0", "B"],
    ["filter[due_at]=2026-03-28T16:30:00%2B02:00", "A"],
    ["filter[due_at][lt]=1970-01-01", "D"],
    ["filter[due_at][between]=2026-03-28,2026-03-29", "AB"],
    [`filter[token]=${token("1").toUpperCase()}`, "A"],
    ["filter[tags][has]=y", "AB"],
    ["filter[tags][has]=a\\,b", "B"],
    ["filter[tags][has_any]=x,q", "A"],
    ["filter[tags][has_all]=y,x", "A"],
    ["filter[sizes][has]=2", "AD"],
    ["filter[sizes][has_any]=2,3", "ACD"],
    ["filter[meta.plan]=pro", "A"],
    ["filter[meta.plan][contains]=100%25", "B"],
    ["filter[meta.plan][starts_with]=PRO", "AB"],
    ["filter[meta.deep.n]=5", "A"],
    ["filter[meta.deep.n][null]=false", "AB"],
    ["filter[meta.list.0]=p", "A"],
    ["filter[meta.0]=1", "D"],
    ["filter[meta.none][null]=true", "ABCD"],
    ["filter[customer.name]=Acme", "A"],
    // B has a firm that the caller may not read: a filter through the relation does not see it.
    ["filter[customer.name][null]=true", "BCD"],
    ["filter[customer.name][null]=false", "A"],
    ["filter[customer.name][starts_with]=a", "A"],
    ["filter[customer.name][starts_with]=b", ""],
    ["filter[customer.rank][gt]=1", "AD"],
    ["filter[skus]=nut", "AB"],
    ["filter[reference][contains]=%25", ""],
    ["filter[reference][contains]=_", ""],
    ["filter[reference][ends_with]=\\\\", ""],
    ["filter[or][0][reference]=A&filter[or][1][reference]=C", "AC"],
    ["filter[or][0][reference]=A&filter[or][0][state]=paid&filter[or][1][reference]=C", "C"],
    ["filter[not][reference]=A", "BCD"],
    ["filter[not][reference]=A&filter[not][state]=open", "BCD"],
    ["filter[and][0][or][0][reference]=A&filter[and][0][or][1][reference]=B&filter[and][1][state]=paid", "B"],
    ["filter[not][or][0][reference]=A&filter[not][or][1][reference]=B", "CD"],
    ["filter[state]=paid&filter[urgent]=true", "D"],
    ["sort=-reference", "DCBA"],
    ["sort=amount,-reference", "DABC"],
    ["sort=-amount,reference", "BADC"],
    ["sort=weight", "BADC"],
    ["sort=-weight", "DABC"],
    ["sort=due_at", "DABC"],
    ["sort=-due_at", "BADC"],
    ["sort=customer.rank", "BADC"],
    ["sort=-customer.rank", "DABC"],
    ["sort=customer.name,id", "ABCD"],
    ["sort=-customer.name,id", "BACD"],
    ["sort=-id&per_page=2&page=2", "BA"],
    ["search=b&filter[state]=paid", "B"],
  ] as const)
    it(`answer ${found === "" ? "nothing" : found} for ${query === "" ? "no parameter" : query}`, async () => {
      expect(references(await get(query))).to.equal(found);
    });

  for (const [query, shown] of [
    ["fields=reference,id", { id: 1, reference: "A" }],
    ["fields=customer.name", { customer: { name: "Acme" } }],
    ["fields=customer", { customer: { name: "Acme", rank: 2 } }],
    ["fields=meta.deep.n,meta.plan", { meta: { plan: "pro", deep: { n: 5 } } }],
    ["fields=skus,kind", { kind: "sale", skus: ["nut", "bolt", "void", "theirs"] }],
    [
      "fields=id&include=firm",
      { id: 1, firm: { id: 1, name: "Acme", secret: "alpha", rank: 2, user_id: 7 } },
    ],
    [
      "fields=id&include=parts",
      {
        id: 1,
        parts: [
          { part: "nut", number: 3 },
          { part: "bolt", number: null },
        ],
      },
    ],
  ] as const)
    it(`show ${JSON.stringify(shown)} for ${query}`, async () => {
      const [first] = dataOf(await get(`${query}&sort=id`));
      expect(Object.keys(first ?? {})).to.have.members(Object.keys(shown));
      const { skus, ...rest } = first ?? {};
      expect({ ...rest, ...(Array.isArray(skus) ? { skus } : {}) }).to.deep.equal(shown);
    });

  it("include only readable records: firms and parts of others are missing", async () => {
    const all = dataOf(await get("fields=reference&include=firm,parts"));
    expect(all.map(({ firm }) => (firm as Shown | null)?.["id"] ?? null)).to.deep.equal([1, null, null, 3]);
    const [mine] = dataOf(await get("fields=id&include=parts", "root"));
    expect((mine?.["parts"] as Shown[] | undefined)?.map(({ part }) => part)).to.deep.equal([
      "theirs",
      "nut",
      "bolt",
    ]);
  });

  it("include at most 100 records of each parent, the first in their own order", async () => {
    await served.sql(
      "INSERT INTO parts (sale_id, sku, user_id) SELECT 4, 'many ' || lpad(n::text, 3, '0'), 7 FROM generate_series(1, 150) AS n",
    );
    const [last] = dataOf(await get("filter[reference]=D&fields=id&include=parts"));
    await served.sql("DELETE FROM parts WHERE sale_id = 4");
    const shown = last?.["parts"] as readonly Shown[];
    expect([shown.length, shown[0]?.["part"], shown[99]?.["part"]]).to.deep.equal([
      100,
      "many 150",
      "many 051",
    ]);
  });

  it("include beside a transform in code, and show only its requested fields", async () => {
    const coded = await startApi(
      served,
      shopWith("sales", {
        code: {
          transform: ({ id, reference, hidden }) => ({
            id,
            label: `${String(reference)} ${String(hidden)}`,
            parts: 1,
          }),
        },
        filterable: ["reference"],
      }),
    );
    const list = await ask(coded, "ada", "GET /sales?include=parts&sort=&fields=label");
    expect(list.status).to.equal(422);
    const found = await ask(coded, "ada", "GET /sales?include=parts&fields=label&filter[reference]=A");
    const unlisted = await ask(coded, "ada", "GET /sales?filter[hidden]=red");
    await coded.server.close();
    expect(dataOf(found)).to.deep.equal([
      {
        label: "A red",
        parts: [
          { part: "nut", number: 3 },
          { part: "bolt", number: null },
        ],
      },
    ]);
    expect(errorsOf(unlisted)).to.deep.equal([
      422,
      { "filter[hidden]": ["There is no field hidden; expected one of reference."] },
    ]);
  });

  it("show no trace of hidden rows: filters, sorts, counts and searches do not reveal those of others", async () => {
    const queries = [
      "filter[reference]=E,F",
      "search=E",
      "filter[not][reference]=A&count=estimated",
      "filter[or][0][amount]=99&filter[or][1][id]=5",
    ];
    const before = await Promise.all(queries.map(foundBy));
    await served.sql("UPDATE sales SET reference = reference || 'x' WHERE user_id = 8 OR is_gone");
    const later = await Promise.all(queries.map(foundBy));
    await served.sql("UPDATE sales SET reference = left(reference, 1) WHERE user_id = 8 OR is_gone");
    expect(before).to.deep.equal([
      [0, ""],
      [0, ""],
      [3, "BCD"],
      [0, ""],
    ]);
    expect(later).to.deep.equal(before);
  });

  describe("count", () => {
    before(() =>
      served.sql(
        "INSERT INTO firms (name, secret, rank, user_id) SELECT 'f', 's', n, 7 FROM generate_series(1, 10000) AS n",
      ),
    );
    after(() => served.sql("DELETE FROM firms WHERE id > 3"));

    it("exactly by default", async () => {
      expect(await counted("per_page=100")).to.deep.equal({
        total: 10_003,
        last_page: 101,
        total_is_estimate: undefined,
        size: 100,
      });
    });

    it("exactly up to 10,000 when estimated", async () => {
      const exact = { total: 10_000, last_page: 100, size: 100 };
      const found = (await counted("per_page=100&count=estimated&filter[name]=f")) as Shown;
      expect(found).to.include(exact);
      expect(found["total_is_estimate"]).to.not.equal(true);
    });

    it("by the planner beyond that, and says so", async () => {
      await served.sql("ANALYZE firms");
      expect(await counted("per_page=100&count=estimated")).to.deep.equal({
        total: 10_003,
        last_page: 101,
        total_is_estimate: true,
        size: 100,
      });
    });

    it("by pages too, whose links reach the end with any error of the estimate", async () => {
      // Statistics of an empty table, and of one with far more rows.
      for (const rows of [10, 90_000]) {
        await served.sql(`UPDATE pg_class SET reltuples = ${rows}, relpages = 10 WHERE relname = 'firms'`);
        const pageOf = (page: number): Promise<Shown> =>
          ask(api, "root", `GET /firms?count=estimated&per_page=100&page=${page}`).then(
            ({ json }) => json as Shown,
          );
        expect(await pageOf(100), "a page in the middle").to.include({ total_is_estimate: true });
        expect((await pageOf(100))["next_page_url"]).to.contain("page=101");
        expect(await pageOf(101)).to.include({ total: 10_003, last_page: 101, next_page_url: null });
        expect(await pageOf(103)).to.include({ next_page_url: null });
      }
    });

    it("never when none, in no statement", async () => {
      served.statements();
      expect(await counted("per_page=100&count=none")).to.deep.equal({
        total: null,
        last_page: null,
        total_is_estimate: undefined,
        size: 100,
      });
      expect(served.statements().filter((text) => /count\(|EXPLAIN/.test(text))).to.deep.equal([]);
    });

    it("never when none, also where no record can match", async () => {
      expect(await counted("count=none&search=%00")).to.include({ total: null, last_page: null, size: 0 });
    });

    it("never, and links to no page behind one that the last record fills", async () => {
      for (const [size, isFollowed] of [
        [2, true],
        [3, false],
      ] as const) {
        const { json } = await ask(api, "root", `GET /firms?filter[id][lte]=3&count=none&per_page=${size}`);
        const { next_page_url: next } = json as { readonly next_page_url: string | null };
        expect(next !== null, `with pages of ${size}`).to.equal(isFollowed);
      }
    });
  });
});
