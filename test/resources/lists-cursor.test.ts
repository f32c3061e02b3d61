import { expect } from "chai";
import type { Answer } from "../support/http.ts";
import { createRandom, pick, upTo, type Random } from "../support/random.ts";
import { apiOfSuite, ask, errorsOf, startApi } from "./serving-api.ts";
import { makeShop, shop, shopWith } from "./listed-shop.ts";

const seed = Number(process.env["SVC_TEST_SEED"] ?? Date.now() % 1_000_000);

interface Page {
  readonly data: readonly { readonly id: number }[];
  readonly next_cursor: string | null;
  readonly prev_cursor: string | null;
}

const pageOf = (answer: Answer): Page => {
  expect([answer.status, answer.status === 200 ? "" : answer.text]).to.deep.equal([200, ""]);
  return answer.json as Page;
};

const ids = ({ data }: Page): readonly number[] => data.map(({ id }) => id);

describe(`pages of resources by cursor, with seed ${seed}`, () => {
  const { served, api } = apiOfSuite(shop);

  before(() => makeShop(served));

  beforeEach(() => served.sql("TRUNCATE sales, parts, stocks RESTART IDENTITY"));

  const get = async (query: string): Promise<Page> => pageOf(await ask(api, "ada", `GET /sales?${query}`));

  /** Values with ties and nulls. */
  async function fill(count: number, random: Random): Promise<void> {
    for (let at = 0; at < count; at += 1)
      await served.sql(
        `INSERT INTO sales (reference, amount, weight, serial, state, urgent, due, firm_id, user_id, is_gone, tags)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
        [
          pick(random, ["a", "b", "ä", "B", ""]),
          pick(random, [null, "1.00", "-2.50", "10"]),
          pick(random, [null, "NaN", "-Infinity", "0.1"]),
          pick(random, [null, "9007199254740993", "9007199254740992"]),
          pick(random, ["open", "paid"]),
          pick(random, [null, true, false]),
          pick(random, [null, "infinity", "0044-03-15 BC", "2026-03-28T14:30:00.123Z"]),
          pick(random, [null, 1, 2, 3]),
          pick(random, [7, 7, 7, 8]),
          pick(random, [false, false, false, true]),
          pick(random, ["{}", "{x}", "{x,y}"]),
        ],
      );
  }

  async function walk(
    query: string,
    from: string,
    key: "next_cursor" | "prev_cursor",
  ): Promise<readonly Page[]> {
    const pages: Page[] = [];
    let cursor: string | null = from;
    while (cursor !== null) {
      const page: Page = await get(`${query}&cursor=${cursor}`);
      pages.push(page);
      cursor = page[key];
    }
    return pages;
  }

  const sortable = [
    "reference",
    "amount",
    "weight",
    "serial",
    "state",
    "urgent",
    "due_at",
    "customer.name",
    "customer.rank",
    "id",
  ];
  const filters = [
    "filter[state]=open",
    "filter[amount][null]=false",
    "filter[or][0][urgent]=true&filter[or][1][reference][gt]=a",
    "filter[customer.rank][gte]=2",
    "search=a",
    "filter[not][tags][has]=y",
  ];

  it("give the records of the list by page once each, in its order, forwards and backwards, for random sorts and filters", async () => {
    const random = createRandom(seed);
    await fill(60, random);
    for (let round = 0; round < 25; round += 1) {
      const chosen = sortable.toSorted(() => random() - 0.5).slice(0, upTo(random, 4));
      const sort = chosen.map((path) => (random() < 0.5 ? `-${path}` : path)).join(",");
      const parts = [...(sort === "" ? [] : [`sort=${sort}`]), ...filters.filter(() => random() < 0.25)];
      const all = ids(await get([...parts, "per_page=100"].join("&")));
      const query = [...parts, `per_page=${1 + upTo(random, 8)}`].join("&");

      const forwards = await walk(query, "", "next_cursor");
      expect({ query, ids: forwards.flatMap(ids) }).to.deep.equal({ query, ids: all });

      const last = forwards.at(-1)?.prev_cursor;
      const backwards = last === null || last === undefined ? [] : await walk(query, last, "prev_cursor");
      const before = backwards.toReversed().flatMap(ids);
      expect({ query, ids: before }).to.deep.equal({
        query,
        ids: all.slice(0, all.length - (forwards.at(-1)?.data.length ?? 0)),
      });
    }
  });

  it("give each unchanged record once, while others are added and removed", async () => {
    const random = createRandom(seed + 1);
    await fill(50, random);
    await served.sql("UPDATE sales SET user_id = 7, is_gone = false");
    for (const sort of ["", "&sort=-amount,reference", "&sort=due_at,-customer.name", "&sort=-urgent"]) {
      const stay = new Set(ids(await get("per_page=100")).filter((id) => id % 3 !== 0));
      const seen: number[] = [];
      let cursor: string | null = "";
      while (cursor !== null) {
        const page: Page = await get(`per_page=4${sort}&cursor=${cursor}`);
        seen.push(...ids(page));
        cursor = page.next_cursor;
        await fill(1, random);
        await served.sql(
          "DELETE FROM sales WHERE id = (SELECT id FROM sales WHERE id % 3 = 0 ORDER BY random() LIMIT 1)",
        );
      }
      expect(seen.length).to.equal(new Set(seen).size);
      expect([...stay].filter((id) => !seen.includes(id))).to.deep.equal([]);
    }
  });

  for (const sort of ["id", "urgent,id", "-state,id"])
    it(`lead from a page that became empty to all remaining records, by ${sort}`, async () => {
      await fill(6, () => 0.3);
      await served.sql("UPDATE sales SET user_id = 7, is_gone = false");
      const [first, second] = [
        await get(`per_page=2&sort=${sort}&cursor=`),
        await get(`per_page=2&sort=${sort}&cursor=`),
      ];
      const next = await get(`per_page=2&sort=${sort}&cursor=${first.next_cursor}`);
      expect(ids(second)).to.deep.equal([1, 2]);

      await served.sql("DELETE FROM sales WHERE id > 2");
      const emptied = await get(`per_page=2&sort=${sort}&cursor=${first.next_cursor}`);
      expect([ids(emptied), emptied.next_cursor]).to.deep.equal([[], null]);
      expect(ids(await get(`per_page=2&sort=${sort}&cursor=${emptied.prev_cursor}`))).to.deep.equal([1, 2]);

      await served.sql("UPDATE sales SET id = id + 2");
      const before = await get(`per_page=2&sort=${sort}&cursor=${next.prev_cursor}`);
      expect([ids(before), before.prev_cursor]).to.deep.equal([[], null]);
      expect(ids(await get(`per_page=2&sort=${sort}&cursor=${before.next_cursor}`))).to.deep.equal([3, 4]);
    });

  it("continue with other fields, relations and sizes, in any order of the parameters", async () => {
    await fill(5, () => 0.3);
    await served.sql("UPDATE sales SET user_id = 7, is_gone = false");
    const { next_cursor: cursor } = await get("filter[state][in]=open,paid&sort=id&per_page=2&cursor=");
    const on = `cursor=${cursor}&sort=id&filter[state][in]=open,paid`;

    for (const [changed, size] of [
      ["", 3],
      ["&per_page=1", 1],
      ["&fields=id", 3],
      ["&include=firm", 3],
    ] as const)
      expect(ids(await get(on + changed)), changed).to.deep.equal([3, 4, 5].slice(0, size));
  });

  it("do not exist for values that would make an address too long", async () => {
    await fill(3, () => 0.3);
    await served.sql("UPDATE sales SET user_id = 7, is_gone = false, reference = repeat('x', 5000)");

    const answer = await ask(api, "ada", "GET /sales?sort=reference&per_page=2&cursor=");

    expect(errorsOf(answer)).to.deep.equal([
      422,
      {
        cursor: ["The values that the list is sorted by are too long for a cursor. Sort by shorter ones."],
      },
    ]);
    expect(ids(await get("sort=id&per_page=2&cursor="))).to.deep.equal([1, 2]);
  });

  describe("refuse a cursor", () => {
    const refusal = [
      422,
      {
        cursor: [
          "The cursor is not one of this list with this filter, sort and search. Begin with an empty one.",
        ],
      },
    ];
    let cursor: string | null;

    beforeEach(async () => {
      await fill(10, () => 0.3);
      await served.sql("UPDATE sales SET user_id = 7, is_gone = false");
      ({ next_cursor: cursor } = await get("per_page=2&sort=amount&filter[state]=open&cursor="));
    });

    for (const [what, request] of [
      ["of another sort", "/sales?sort=-amount&filter[state]=open"],
      ["of no sort", "/sales?filter[state]=open"],
      ["of another filter", "/sales?sort=amount&filter[state]=paid"],
      ["of no filter", "/sales?sort=amount"],
      ["of another search", "/sales?sort=amount&filter[state]=open&search=a"],
      ["of another resource", "/firms?"],
    ] as const)
      it(what, async () => {
        expect(errorsOf(await ask(api, "ada", `GET ${request}&cursor=${cursor}`))).to.deep.equal(refusal);
      });

    it("of another user", async () => {
      const answer = await ask(api, "bob", `GET /sales?sort=amount&filter[state]=open&cursor=${cursor}`);
      expect(errorsOf(answer)).to.deep.equal(refusal);
    });

    for (const garbage of [
      "x",
      "AAAA",
      "a".repeat(20),
      "a".repeat(8),
      "%00",
      "null",
      "a".repeat(5000),
      encodeURIComponent("\u{1F418}"),
    ])
      it(`that is ${garbage.slice(0, 20)}, of ${garbage.length} characters`, async () => {
        expect(errorsOf(await ask(api, "ada", `GET /sales?cursor=${garbage}`))).to.deep.equal(refusal);
      });

    it("that was changed in one character", async () => {
      const changed = `${cursor?.startsWith("A") === true ? "B" : "A"}${cursor?.slice(1)}`;
      expect(
        errorsOf(await ask(api, "ada", `GET /sales?sort=amount&filter[state]=open&cursor=${changed}`)),
      ).to.deep.equal(refusal);
    });

    for (const [what, changes] of [
      ["default order", { baseQuery: { where: { is_gone: false }, orderBy: [{ due: "asc" }] } }],
      [
        "default order, the other way round",
        { baseQuery: { where: { is_gone: false }, orderBy: [{ reference: "desc" }] } },
      ],
    ] as const)
      it(`of a resource that now has another ${what}`, async () => {
        const { next_cursor: old } = await get("per_page=2&cursor=");
        const later = await startApi(
          served,
          shopWith("sales", { ...changes, transform: undefined as never }),
        );
        const answer = await ask(later, "ada", `GET /sales?cursor=${old}`);
        await later.server.close();
        expect(errorsOf(answer)).to.deep.equal(refusal);
      });

    it("whose column now has another type", async () => {
      const { next_cursor: bySort } = await get("per_page=2&sort=reference&cursor=");
      const { next_cursor: byDefault } = await get("per_page=2&cursor=");
      await served.sql("ALTER TABLE sales ALTER reference TYPE int USING id");
      const fields = (shop.get("sales")?.fields ?? []).map((one) =>
        one.name === "reference" ? { ...one, type: "Int" as const } : one,
      );
      const later = await startApi(served, shopWith("sales", { fields, searchableColumns: [] }));
      const answers = [
        await ask(later, "ada", `GET /sales?sort=reference&cursor=${bySort}`),
        await ask(later, "ada", `GET /sales?cursor=${byDefault}`),
      ];
      await later.server.close();
      await served.sql("ALTER TABLE sales ALTER reference TYPE text");
      expect(answers.map(errorsOf)).to.deep.equal([refusal, refusal]);
    });

    it("beside a page, or a count", async () => {
      expect(errorsOf(await ask(api, "ada", "GET /sales?cursor=&page=2"))).to.deep.equal([
        422,
        { page: ["There is no page beside cursor."] },
      ]);
      expect(errorsOf(await ask(api, "ada", "GET /sales?cursor=&count=exact"))).to.deep.equal([
        422,
        { count: ["There is no count beside cursor."] },
      ]);
    });
  });

  it("sort values of a missing record last, where no reference is kept", async () => {
    await served.sql(
      "INSERT INTO stocks (small, rough, mood, day, firm_id) SELECT n, n, 'calm', '2026-03-28', (ARRAY[1, 2, 99])[1 + n % 3] FROM generate_series(1, 9) AS n",
    );
    for (const sort of ["rank", "-rank"]) {
      const query = `sort=${sort}`;
      const list = pageOf(await ask(api, "root", `GET /stocks?${query}`));
      const shown = list.data.map((record) => (record as unknown as { rank: number | null }).rank);
      const ranks = sort === "rank" ? [1, 2] : [2, 1];
      expect(shown).to.deep.equal([...ranks.flatMap((rank) => [rank, rank, rank]), null, null, null]);
      const seen: number[] = [];
      let cursor: string | null = "";
      while (cursor !== null) {
        const page: Page = pageOf(await ask(api, "root", `GET /stocks?${query}&per_page=2&cursor=${cursor}`));
        seen.push(...ids(page));
        cursor = page.next_cursor;
      }
      expect(seen).to.deep.equal(ids(list));
    }
  });
});
