import { expect } from "chai";
import { apiOfSuite, ask, errorsOf, idsOf, startApi } from "./serving-api.ts";
import { fillShop, makeShop, shop, shopWith } from "./listed-shop.ts";

type Shown = Readonly<Record<string, unknown>>;

describe("lists of resources", () => {
  const { served, api } = apiOfSuite(shop);

  before(async () => {
    await makeShop(served);
    await fillShop(served);
  });

  describe("refuse, with the parameter as it was written,", () => {
    const paths =
      "id, reference, amount, weight, serial, state, urgent, due_at, token, tags, sizes, customer.name, customer.rank, skus";
    const withoutInclude = "a list is filtered and sorted by what its records show without include.";
    for (const [query, errors] of [
      ["filter[amuont]=1", { "filter[amuont]": ["There is no field amuont; did you mean amount?"] }],
      ["filter[amount][gtt]=1", { "filter[amount][gtt]": ["There is no operator gtt; did you mean gt?"] }],
      ["filter[amount]=abc", { "filter[amount]": ["The value of amount must be a number."] }],
      ["filter[state]=lost", { "filter[state]": ["The value of state must be one of open, paid."] }],
      [
        "filter[due_at][gt]=soon",
        { "filter[due_at][gt]": ["The value of due_at must be a date, such as 2026-03-28T14:30:00Z."] },
      ],
      [
        "filter[id]=3000000000",
        { "filter[id]": ["The value of id must be an integer between -2147483648 and 2147483647."] },
      ],
      [
        "filter[amount][between]=1",
        {
          "filter[amount][between]": [
            "between takes two values with a comma between them; write \\, for a comma in one.",
          ],
        },
      ],
      ["filter[amount][null]=1", { "filter[amount][null]": ["The value of null must be true or false."] }],
      [
        "filter[urgent][gt]=true",
        {
          "filter[urgent][gt]": [
            "The operator gt is not for urgent; expected one of eq, ne, in, not_in, null.",
          ],
        },
      ],
      [
        "filter[meta]=1",
        {
          "filter[meta]": [
            "The field meta cannot be filtered: it is a whole Json value; expected a path in it.",
          ],
        },
      ],
      ["filter[blob]=1", { "filter[blob]": ["The field blob cannot be filtered: it is of type Bytes."] }],
      ["filter[kind]=sale", { "filter[kind]": ["The field kind cannot be filtered: it is a constant."] }],
      [
        "filter[customer]=1",
        { "filter[customer]": ["The field customer cannot be filtered: it is an object."] },
      ],
      [
        "filter[or][a][id]=1",
        { "filter[or][a][id]": ["The group or is written as filter[or][0][path], filter[or][1][path]."] },
      ],
      [
        "filter[not][not][not][not][id]=1",
        { "filter[not][not][not][not][id]": ["Groups may be at most 3 deep."] },
      ],
      [
        "sort=meta.plan",
        {
          sort: [
            `There is no field meta.plan; expected one of ${paths.replace(", tags, sizes", "").replace(", skus", "")}.`,
          ],
        },
      ],
      ["sort=skus", { sort: ["The field skus cannot be sorted: it is that of several records."] }],
      ["sort=id,-id", { sort: ["The field id is in it twice."] }],
      ["sort=id,amount,weight,serial,state,urgent", { sort: ["A list is sorted by at most 5 fields."] }],
      ["fields=refernce", { fields: ["There is no field refernce; did you mean reference?"] }],
      ["include=lines", { include: ["There is no relation lines to include; expected one of firm, parts."] }],
      ["count=all", { count: ["The value of count must be one of exact, estimated, none."] }],
      ["per-page=5", { "per-page": ["There is no parameter per-page; did you mean per_page?"] }],
      ["filter[id]=1&filter[id]=2", { "filter[id]": ["The parameter was given twice."] }],
      // A hidden field does not exist, under any name in the table.
      ["filter[hidden]=red", { "filter[hidden]": [`There is no field hidden; expected one of ${paths}.`] }],
      ["filter[user_id]=8", { "filter[user_id]": [`There is no field user_id; expected one of ${paths}.`] }],
      [
        "filter[is_gone]=true",
        { "filter[is_gone]": [`There is no field is_gone; expected one of ${paths}.`] },
      ],
      ["filter[due]=2026-03-28", { "filter[due]": [`There is no field due; expected one of ${paths}.`] }],
      [
        "filter[firm.secret]=alpha",
        { "filter[firm.secret]": [`There is no field firm.secret: ${withoutInclude}`] },
      ],
      [
        "filter[customer.secret]=alpha",
        { "filter[customer.secret]": ["There is no field customer.secret; did you mean customer.name?"] },
      ],
      [
        "filter[parts.quantity]=3",
        { "filter[parts.quantity]": [`There is no field parts.quantity: ${withoutInclude}`] },
      ],
      [
        "filter[constructor]=1",
        { "filter[constructor]": [`There is no field constructor; expected one of ${paths}.`] },
      ],
      [
        "sort=hidden",
        {
          sort: [
            `There is no field hidden; expected one of ${paths.replace(", tags, sizes", "").replace(", skus", "")}.`,
          ],
        },
      ],
    ] as const)
      it(query, async () => {
        expect(errorsOf(await ask(api, "ada", `GET /sales?${query}`))).to.deep.equal([422, errors]);
      });

    for (const [filter, what] of [
      ["rough][lt=1e300", "a number beyond single precision"],
      ["mood=mild", "a text that is no value of the column's enum"],
    ] as const)
      it(`${what}, in a table made by others: filter[${filter}`, async () => {
        const name = `filter[${filter.split("=")[0] ?? ""}]`;
        const answer = await ask(
          api,
          "root",
          `GET /stocks?filter[id][gt]=0&${name}=${filter.split("=")[1] ?? ""}`,
        );
        const [status, errors] = errorsOf(answer) as [number, Shown];
        expect([status, Object.keys(errors ?? {})]).to.deep.equal([422, ["filter[id][gt]", name]]);
      });
  });

  for (const [filter, found] of [
    ["small]=40000", []],
    ["small][in]=40000,1", [1]],
    ["small][gt]=-40000", [1, 2]],
  ] as const)
    it(`compare a smallint with any number of its field: filter[${filter}`, async () => {
      const answer = await ask(api, "root", `GET /stocks?filter[${filter}`);
      expect([answer.status, idsOf(answer)]).to.deep.equal([200, found]);
    });

  it("show no record of a smallint owner to a user whose id is larger", async () => {
    const owned = await startApi(served, shopWith("stocks", { ownerColumn: "small" }));
    const list = await ask(owned, "zoe", "GET /stocks");
    const page = await ask(owned, "zoe", "GET /stocks?cursor=");
    const record = await ask(owned, "zoe", "GET /stocks/1");
    await owned.server.close();

    expect([list.status, idsOf(list)]).to.deep.equal([200, []]);
    expect([page.status, idsOf(page)]).to.deep.equal([200, []]);
    expect(record.status).to.equal(403);
  });
});
