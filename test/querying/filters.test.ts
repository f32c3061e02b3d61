import { expect } from "chai";
import { readListParameters } from "../../src/querying/list-parameters.ts";
import { listShop } from "../support/list-shop.ts";
import { listReader } from "./list-reader.ts";

const { read, errorsIn } = listReader(listShop().shape);

/** Returns the condition of a query, with names in place of fields and links. */
function filterIn(query: string): unknown {
  const text = JSON.stringify(read(query).filter, (key, value: { readonly name: string }) =>
    key === "field" || key === "link" ? value.name : value,
  );
  return JSON.parse(text);
}

const compare = (field: string, operator: string, value: unknown) => ({
  kind: "compare",
  field,
  operator,
  value,
});
const like = (field: string, pattern: string) => ({ kind: "like", field, pattern, isCaseSensitive: false });
const isNull = (field: string) => ({ kind: "null", field });
const not = (of: unknown) => ({ kind: "not", of });
const all = (...of: unknown[]) => ({ kind: "all", of });
const any = (...of: unknown[]) => ({ kind: "any", of });
const list = (operator: string, ...values: unknown[]) => ({ kind: "list", field: "tags", operator, values });
const isIn = (field: string, ...values: unknown[]) => ({ kind: "in", field, values });
const related = (link: string, of: unknown) => ({ kind: "related", link, of });
const endless = isIn("weight", "NaN", "Infinity", "-Infinity");
const json = (test: unknown, ...path: string[]) => ({ kind: "json", field: "meta", path, test });

describe("the filters of a list", () => {
  for (const [query, condition] of [
    ["", all()],
    ["filter[status]=open", compare("status", "=", "open")],
    ["filter%5Bstatus%5D=open", compare("status", "=", "open")],
    ["filter[status]=open,paid", isIn("status", "open", "paid")],
    ["filter[status][in]=open", isIn("status", "open")],
    ["filter[status][not_in]=open,paid", not(isIn("status", "open", "paid"))],
    ["filter[reference]=a%5C,b,c", isIn("reference", "a,b", "c")],
    ["filter[reference]=a%5C%5C,b%5Cc", isIn("reference", "a\\", "b\\c")],
    ["filter[reference]=", compare("reference", "=", "")],
    ["filter[reference]", compare("reference", "=", "")],
    ["filter[reference]=,", isIn("reference", "", "")],
    ["filter[reference]=a+b%2Bc", compare("reference", "=", "a b+c")],
    ["filter[reference][ne]=a", compare("reference", "<>", "a")],
    ["filter[amount][lt]=1.50", compare("amount", "<", "1.5")],
    ["filter[amount][lte]=-.5", compare("amount", "<=", "-0.5")],
    ["filter[amount][gt]=%2B1e3", compare("amount", ">", "1000")],
    ["filter[id][gte]=-2147483648", compare("id", ">=", "-2147483648")],
    ["filter[id][between]=1,9", all(compare("id", ">=", "1"), compare("id", "<=", "9"))],
    ["filter[serial]=9223372036854775807", compare("serial", "=", "9223372036854775807")],
    [
      "filter[weight]=1e-3",
      any(all(compare("weight", "=", 0.001), not(endless)), all(endless, compare("weight", "=", null))),
    ],
    ["filter[urgent]=1", compare("is_urgent", "=", true)],
    ["filter[urgent]=false", compare("is_urgent", "=", false)],
    ["filter[due_at][gt]=2026-03-28", compare("due_at", ">=", "2026-03-28T00:00:00.001Z")],
    [
      "filter[due_at]=2026-03-28T14:30:00%2B02:00",
      all(
        compare("due_at", ">=", "2026-03-28T12:30:00.000Z"),
        compare("due_at", "<", "2026-03-28T12:30:00.001Z"),
      ),
    ],
    [
      "filter[token]=0A1B2C3D-0000-4000-8000-000000000000",
      compare("token", "=", "0a1b2c3d-0000-4000-8000-000000000000"),
    ],
    ["filter[reference][contains]=5%25_%5C%5C", like("reference", "%5\\%\\_\\\\%")],
    ["filter[reference][starts_with]=A", like("reference", "A%")],
    ["filter[status][ends_with]=d", like("status", "%d")],
    ["filter[tags][has]=a", all(list("@>", "a"), not(isNull("tags")))],
    ["filter[tags][has_any]=a,b", all(list("&&", "a", "b"), not(isNull("tags")))],
    ["filter[tags][has_all]=a,b", all(list("@>", "a", "b"), not(isNull("tags")))],
    ["filter[tags][null]=true", any()],
    ["filter[amount][null]=true", isNull("amount")],
    ["filter[amount][null]=false", not(isNull("amount"))],
    ["filter[customer.name]=Ada", related("customer", compare("name", "=", "Ada"))],
    ["filter[customer.name][null]=true", not(related("customer", not(isNull("name"))))],
    ["filter[customer.name][null]=false", related("customer", not(isNull("name")))],
    ["filter[lines.quantity][null]=true", related("lines", isNull("quantity"))],
    [
      "filter[lines.quantity][between]=1,2",
      related("lines", all(compare("quantity", ">=", "1"), compare("quantity", "<=", "2"))),
    ],
    ["filter[meta.plan]=pro", json({ kind: "compare", operator: "=", value: "pro" }, "plan")],
    ["filter[meta.a.b][in]=1,2", json({ kind: "in", values: ["1", "2"] }, "a", "b")],
    ["filter[meta.plan][null]=true", json({ kind: "null" }, "plan")],
    ["filter[meta.plan][contains]=o", json({ kind: "like", pattern: "%o%", isCaseSensitive: false }, "plan")],
    [
      "filter[id]=1&filter[amount][gt]=2&filter[amount][lt]=5",
      all(compare("id", "=", "1"), compare("amount", ">", "2"), compare("amount", "<", "5")),
    ],
    [
      "filter[or][0][id]=1&filter[or][1][status]=open&filter[or][1][amount]=2",
      any(compare("id", "=", "1"), all(compare("status", "=", "open"), compare("amount", "=", "2"))),
    ],
    ["filter[and][0][id]=1&filter[and][1][id]=2", all(compare("id", "=", "1"), compare("id", "=", "2"))],
    ["filter[not][id]=1", not(compare("id", "=", "1"))],
    [
      "filter[not][id]=1&filter[not][status]=open",
      not(all(compare("id", "=", "1"), compare("status", "=", "open"))),
    ],
    [
      "filter[not][or][00][id]=1&filter[not][or][1][not][id]=2",
      not(any(compare("id", "=", "1"), not(compare("id", "=", "2")))),
    ],
  ] as const) {
    it(`takes ${query}`, () => expect(filterIn(query)).to.deep.equal(condition));
  }

  it("accepts a field that is named like a group, by equality", () => {
    const { shape: odd } = listShop({
      transform: undefined as never,
      fields: [...listShop().orders.fields, { ...listShop().orders.key, isKey: false, name: "not" }],
    });

    expect(readListParameters("filter[not]=1", odd, { maxPerPage: 15 }).filter).to.deep.include({
      kind: "compare",
      value: "1",
    });
  });

  it("accepts 50 conditions and 100 values", () => {
    const values = Array.from({ length: 100 }, (_, index) => index).join(",");
    const conditions = Array.from({ length: 49 }, (_, index) => `filter[or][${index}][id]=1`).join("&");

    expect(read(`filter[id]=${values}&${conditions}`).filter.kind).to.equal("all");
    expect(errorsIn(`filter[id]=${values},1`)).to.deep.equal({
      "filter[id]": ["A condition may have at most 100 values."],
    });
    expect(errorsIn(`filter[id]=1&${conditions}&filter[amount]=1`)).to.deep.equal({
      "filter[amount]": ["A request may have at most 50 conditions."],
    });
  });
});
