import { expect } from "chai";
import { readListParameters } from "../../src/querying/list-parameters.ts";
import { listShop } from "../support/list-shop.ts";
import { listReader } from "./list-reader.ts";

const { shape: plain } = listShop({ includes: ["lines", "customer"] });
const shape = {
  ...plain,
  own: new Map([["webhook_id", (value: string) => (value === "x" ? "No webhook." : undefined)]]),
};

const { read, errorsIn } = listReader(shape);

const written = "A filter is written as filter[path] or filter[path][operator].";
const oneValue = (operator: string) => `${operator} takes one value; write \\, for a comma in it.`;
const integer = "The value of id must be an integer between -2147483648 and 2147483647.";

describe("a list refuses", () => {
  for (const [query, errors] of [
    ["=a", { "": ["A parameter has no name."] }],
    ["serach=a", { serach: ["There is no parameter serach; did you mean search?"] }],
    [
      "filters[id]=1",
      {
        "filters[id]": [
          "There is no parameter filters[id]; expected one of filter, sort, fields, include, cursor, count, page, per_page, search, webhook_id.",
        ],
      },
    ],
    [
      "__proto__=1",
      {
        ["__proto__"]: [
          "There is no parameter __proto__; expected one of filter, sort, fields, include, cursor, count, page, per_page, search, webhook_id.",
        ],
      },
    ],
    ...[
      ["limit", "per_page"],
      ["page[size]", "per_page"],
      ["pageSize", "per_page"],
      ["$top", "per_page"],
      ["offset", "page"],
      ["page[number]", "page"],
      ["page[after]", "cursor"],
      ["select", "fields"],
      ["fields[orders]", "fields"],
      ["order", "sort"],
      ["order_by", "sort"],
      ["expand", "include"],
      ["q", "search"],
      ["where[amount]", "filter[path]"],
      ["or", "filter[or][0][path]"],
    ].map(
      ([name = "", own]) =>
        [
          `${encodeURIComponent(name)}=1`,
          { [name]: [`There is no parameter ${name}; use ${own}.`] },
        ] as const,
    ),
    ["_sort=id", { _sort: ["There is no parameter _sort; did you mean sort?"] }],
    [
      "status=eq.open&amount[gte]=5",
      {
        status: ["There is no parameter status; a filter is written as filter[status]."],
        "amount[gte]": ["There is no parameter amount[gte]; a filter is written as filter[amount][gte]."],
      },
    ],
    [
      "meta=1&blob[eq]=1",
      {
        meta: [
          "There is no parameter meta. The field meta cannot be filtered: it is a whole Json value; expected a path in it.",
        ],
        "blob[eq]": [
          "There is no parameter blob[eq]. The field blob cannot be filtered: it is of type Bytes.",
        ],
      },
    ],
    [
      "sort=amount.desc,id:ASC",
      {
        sort: [
          "The field amount is written as -amount to sort in that direction.",
          "The field id is written as id to sort in that direction.",
        ],
      },
    ],
    ["filter[]=1", { "filter[]": ["A filter is written as filter[path] or filter[path][operator]."] }],
    [
      "filter[amount][]=1",
      { "filter[amount][]": ["A filter is written as filter[path] or filter[path][operator]."] },
    ],
    ["filter[amuont]=1", { "filter[amuont]": ["There is no field amuont; did you mean amount?"] }],
    ["filter=1", { filter: [written] }],
    ["filter[id=1", { "filter[id": [written] }],
    ["filter[id]x=1", { "filter[id]x": [written] }],
    ["filter[id][gt][a]=1", { "filter[id][gt][a]": [written] }],
    ["filter[id][gtt]=1", { "filter[id][gtt]": ["There is no operator gtt; did you mean gt?"] }],
    [
      "filter[id][constructor]=1",
      {
        "filter[id][constructor]": [
          "There is no operator constructor; expected one of eq, ne, in, not_in, null, lt, lte, gt, gte, between.",
        ],
      },
    ],
    [
      "filter[id][contains]=1",
      {
        "filter[id][contains]": [
          "The operator contains is not for id; expected one of eq, ne, in, not_in, null, lt, lte, gt, gte, between.",
        ],
      },
    ],
    [
      "filter[tags]=a",
      { "filter[tags]": ["The operator eq is not for tags; expected one of has, has_any, has_all, null."] },
    ],
    [
      "filter[urgent][gt]=1",
      {
        "filter[urgent][gt]": [
          "The operator gt is not for urgent; expected one of eq, ne, in, not_in, null.",
        ],
      },
    ],
    ["filter[id]=1&filter[id]=2", { "filter[id]": ["The parameter was given twice."] }],
    ["filter[id]=", { "filter[id]": [integer] }],
    ["filter[id]=1,", { "filter[id]": [integer] }],
    ["filter[id]=1.5", { "filter[id]": [integer] }],
    ["filter[id]=2147483648", { "filter[id]": [integer] }],
    [`filter[id]=${"9".repeat(9000)}`, { "filter[id]": [integer] }],
    [
      "filter[serial]=9223372036854775808",
      {
        "filter[serial]": [
          "The value of serial must be an integer between -9223372036854775808 and 9223372036854775807.",
        ],
      },
    ],
    ["filter[weight]=1e400", { "filter[weight]": ["The value of weight must be a number."] }],
    ["filter[weight]=NaN", { "filter[weight]": ["The value of weight must be a number."] }],
    ["filter[amount]=abc", { "filter[amount]": ["The value of amount must be a number."] }],
    [
      "filter[amount]=1e999999999",
      { "filter[amount]": ["The value of amount must have at most 1000 digits."] },
    ],
    ["filter[amount]=1e-5000", { "filter[amount]": ["The value of amount must have at most 1000 digits."] }],
    [
      "filter[due_at]=2026-02-30",
      { "filter[due_at]": ["The value of due_at must be a date, such as 2026-03-28T14:30:00Z."] },
    ],
    ["filter[token]=abc", { "filter[token]": ["The value of token must be a UUID."] }],
    [
      "filter[status]=opne",
      { "filter[status]": ["The value of status must be one of open, paid, shipped."] },
    ],
    ["filter[urgent]=yes", { "filter[urgent]": ["The value of urgent must be true or false."] }],
    ["filter[amount][null]=1", { "filter[amount][null]": ["The value of null must be true or false."] }],
    [
      "filter[reference]=a%00",
      { "filter[reference]": ["The value of reference must not contain NUL characters."] },
    ],
    [
      "filter[meta.plan]=a%00",
      { "filter[meta.plan]": ["The value of meta.plan must not contain NUL characters."] },
    ],
    ["filter[reference]=%zz", { "filter[reference]": ["The percent-encoding is broken."] }],
    ["filter[reference]=%ff", { "filter[reference]": ["The percent-encoding is broken."] }],
    ["filter[reference][ne]=a,b", { "filter[reference][ne]": [oneValue("ne")] }],
    ["filter[reference][contains]=a,b", { "filter[reference][contains]": [oneValue("contains")] }],
    ["filter[tags][has]=a,b", { "filter[tags][has]": [oneValue("has")] }],
    [
      "filter[id][between]=1",
      {
        "filter[id][between]": [
          "between takes two values with a comma between them; write \\, for a comma in one.",
        ],
      },
    ],
    ["filter[or]=1", { "filter[or]": [/^There is no field or;/] }],
    [
      "filter[or][id]=1",
      { "filter[or][id]": ["The group or is written as filter[or][0][path], filter[or][1][path]."] },
    ],
    [
      "filter[and][0]=1",
      { "filter[and][0]": ["The group and is written as filter[and][0][path], filter[and][1][path]."] },
    ],
    [
      "filter[not][not][not][not][id]=1",
      { "filter[not][not][not][not][id]": ["Groups may be at most 3 deep."] },
    ],
    ["sort=", { sort: ["A path is missing."] }],
    ["sort=amuont,-id", { sort: ["There is no field amuont; did you mean amount?"] }],
    ["sort=id,-id", { sort: ["The field id is in it twice."] }],
    ["sort=--id", { sort: ["There is no field -id; did you mean id?"] }],
    ["sort=tags", { sort: ["The field tags cannot be sorted: it is a list."] }],
    ["sort=id,amount,weight,serial,urgent,token", { sort: ["A list is sorted by at most 5 fields."] }],
    ["sort=id&sort=amount", { sort: ["The parameter was given twice."] }],
    ["fields=", { fields: ["A path is missing."] }],
    [
      "fields=id,hidden,kinds",
      { fields: [/^There is no field hidden;/, "There is no field kinds; did you mean kind?"] },
    ],
    [`fields=${"id,".repeat(100)}id`, { fields: ["A request may name at most 100 fields."] }],
    ["include=", { include: ["A name is missing."] }],
    ["include=line", { include: ["There is no relation line to include; did you mean lines?"] }],
    ["count=all", { count: ["The value of count must be one of exact, estimated, none."] }],
    ["cursor=&page=1", { page: ["There is no page beside cursor."] }],
    ["cursor=&count=exact", { count: ["There is no count beside cursor."] }],
    ["search=%F0%9F", { search: ["The percent-encoding is broken."] }],
    [`search=${"a".repeat(101)}`, { search: ["The search field must not be greater than 100 characters."] }],
    [
      "filter[a]=1&sort=b&fields=c&count=d&e=f&webhook_id=x",
      { "filter[a]": [/./], sort: [/./], fields: [/./], count: [/./], e: [/./], webhook_id: ["No webhook."] },
    ],
    ["&a=".repeat(101), { query: ["A request may have at most 100 parameters."] }],
  ] as const) {
    it(query.slice(0, 60), () => {
      const found = errorsIn(query);

      expect(Object.keys(found).toSorted()).to.deep.equal(Object.keys(errors).toSorted());
      for (const [name, messages] of Object.entries(errors) as readonly [
        string,
        readonly (string | RegExp)[],
      ][]) {
        expect(found[name], name).to.have.lengthOf(messages.length);
        for (const [index, message] of messages.entries())
          if (typeof message === "string") expect(found[name]?.[index]).to.equal(message);
          else expect(found[name]?.[index]).to.match(message);
      }
    });
  }
});

describe("readListParameters", () => {
  it("tells why a field of a relation that only include shows cannot be filtered or sorted", () => {
    const { errorsIn: errors } = listReader({ ...plain, includes: ["buyer"] });
    const end = "a list is filtered and sorted by what its records show without include.";

    expect(errors("filter[buyer.name]=Ada&sort=buyer.name&filter[buyers.name]=Ada")).to.deep.include({
      "filter[buyer.name]": [`There is no field buyer.name: ${end}`],
      sort: [`There is no field buyer.name: ${end}`],
    });
  });

  it("returns the defaults for a request without parameters", () => {
    const { given, ...rest } = read("");

    expect(given.size).to.equal(0);
    expect(rest).to.deep.equal({
      filter: { kind: "all", of: [] },
      sort: undefined,
      fields: undefined,
      include: [],
      paging: { kind: "page", page: 1, perPage: 15, skip: 0 },
      count: undefined,
      search: undefined,
    });
  });

  it("reads page, per_page and search as in earlier versions", () => {
    const { paging, search } = read("page=2&page=%ff&per_page=1000&per_page=500&search=50%&search=100%+a");

    expect(paging).to.deep.equal({ kind: "page", page: 1, perPage: 100, skip: 0 });
    expect(search).to.equal("100% a");
  });

  it("reads sort with nulls last in both directions", () => {
    const { sort } = read("sort=-amount,customer.name");

    expect(
      sort?.map(({ links, field, ...rest }) => [links.map(({ name }) => name), field.name, rest]),
    ).to.deep.equal([
      [[], "amount", { direction: "desc", nulls: "last" }],
      [["customer"], "name", { direction: "asc", nulls: "last" }],
    ]);
  });

  it("reads fields, include, count, cursor and the list's own parameters", () => {
    expect(
      read("fields=id,customer,lines.sku,meta.a,kind&include=lines,customer,lines&count=estimated"),
    ).to.deep.include({
      fields: ["id", "customer", "lines.sku", "meta.a", "kind"],
      include: ["lines", "customer"],
      count: "estimated",
    });
    expect(read("cursor=&per_page=7&count=none").paging).to.deep.equal({
      kind: "cursor",
      cursor: "",
      perPage: 7,
    });
    expect(read("cursor=abc").paging).to.deep.equal({ kind: "cursor", cursor: "abc", perPage: 15 });
    expect(read("webhook_id=1&webhook_id=2").given.get("webhook_id")).to.equal("2");
  });

  it("takes any path in fields where code makes the JSON", () => {
    const { shape: code } = listShop({ code: { transform: () => ({}) } });

    expect(readListParameters("fields=a.b", code, { maxPerPage: 15 }).fields).to.deep.equal(["a.b"]);
  });

  it("refuses groups and search where the list has none", () => {
    const bare = { ...shape, hasGroups: false, hasSearch: false };

    expect(() => readListParameters("filter[not][id]=1", bare, { maxPerPage: 15 })).to.throw(
      "This list has no groups of conditions.",
    );
    expect(() => readListParameters("search=a", bare, { maxPerPage: 15 })).to.throw(
      "There is no parameter search",
    );
  });
});
