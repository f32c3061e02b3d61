import { expect } from "chai";
import { definitionOf, faultsOf, itRefuses, type Case } from "./mapping-folder.ts";

const customerShown =
  "transform: { id: id, kind: { value: 1 }, customer: { id: customer.id, email: customer.email } }\nbaseQuery: { include: { customer: true } }";

const cases: readonly Case[] = [
  [
    "a filterable path that is not there",
    "filterable: [titel]",
    '8:14: filterable[0]: the record\'s JSON has no "titel"; did you mean "title"?',
  ],
  [
    "a sortable path that is not there",
    "sortable: [title, colour]",
    '8:19: sortable[1]: the record\'s JSON has no "colour"; expected one of id, title, customer_id',
  ],
  ["a path given twice", "filterable: [id, id]", '8:18: filterable[1]: "id" is in the list already'],
  [
    "a field that the transform does not show",
    `${customerShown}\nfilterable: [title]`,
    '10:14: filterable[0]: the record\'s JSON has no "title"; expected one of id, customer.id, customer.email',
  ],
  [
    "an object, and a constant",
    `${customerShown}\nfilterable: [customer, kind, customer.email]`,
    '10:14: filterable[0]: "customer" cannot be filtered: it is an object',
    '10:24: filterable[1]: "kind" cannot be filtered: it is a constant',
  ],
  [
    "what has no order",
    "  meta: { type: Json }\n  data: { type: Bytes }\n  tags: { type: String, list: true }\nsortable: [meta, meta.plan, data, tags]",
    '11:12: sortable[0]: "meta" cannot be sorted: it is a Json value, which has no order',
    '11:18: sortable[1]: "meta.plan" cannot be sorted: it is a part of a Json value, which has no order',
    '11:29: sortable[2]: "data" cannot be sorted: it is of type Bytes',
    '11:35: sortable[3]: "tags" cannot be sorted: it is a list',
  ],
  [
    "a list of Json",
    "  all: { type: Json, list: true }\nfilterable: [all]",
    '9:14: filterable[0]: "all" cannot be filtered: it is a list of Json',
  ],
  [
    "a path that is no text",
    "filterable: [1]",
    "8:14: filterable[0]: expected a path of the record's JSON, such as customer.name",
  ],
  [
    "a filter that is no list",
    "filterable: id",
    "8:13: filterable: expected a list of paths of the record's JSON",
  ],
  [
    "an unknown relation",
    "includes: [custmer]",
    '8:12: includes[0]: there is no relation "custmer"; did you mean "customer"?',
  ],
  [
    "a relation under a name that none can have",
    "includes: [cus-tomer]",
    '8:12: includes[0]: there is no relation "cus-tomer"; did you mean "customer"?',
  ],
  ["a field to include", "includes: [title]", '8:12: includes[0]: "title" is a field; expected a relation'],
  [
    "a relation given twice",
    "includes: [customer, customer]",
    '8:22: includes[1]: "customer" is in the list already',
  ],
  [
    "an unknown count",
    "count: estimate",
    '8:8: count: expected one of exact, estimated, none; did you mean "estimated"?',
  ],
];

describe("filterable, sortable, includes, count", () => {
  itRefuses(cases);

  it("accept paths of the JSON, within Json fields too, and relations in both directions", async () => {
    const files = {
      "orders.yaml": `name: orders
model: Order
triggers: []
fields:
  id: { type: Int, id: true }
  meta: { type: Json }
  customer_id: { type: Int, references: customers.id }
transform: { id: id, meta: meta, customer: { name: customer.name } }
filterable: [id, meta, meta.plan, customer.name]
sortable: [customer.name]
includes: [customer]
count: estimated
baseQuery: { include: { customer: true } }
`,
      "customers.yaml":
        "name: customers\nmodel: Customer\ntriggers: []\nfields: { id: { type: Int, id: true }, name: { type: String } }\nincludes: [orders]\n",
    };

    const orders = await definitionOf("orders", files);
    const customers = await definitionOf("customers", files);

    expect(orders).to.deep.include({
      filterable: ["id", "meta", "meta.plan", "customer.name"],
      sortable: ["customer.name"],
      includes: ["customer"],
      count: "estimated",
    });
    expect(customers.includes).to.deep.equal(["orders"]);
  });

  it("accept field names beside a transform in code", async () => {
    const head =
      "name: notes\nmodel: Note\ntriggers: []\nfields: { id: { type: Int, id: true }, text: { type: String } }\nmodule: ./notes.mjs\n";
    const code = { "notes.mjs": "export const transform = (row) => ({ shown: row.text });" };

    expect(await faultsOf({ ...code, "notes.yaml": `${head}filterable: [text]\n` })).to.deep.equal([]);
    expect(await faultsOf({ ...code, "notes.yaml": `${head}filterable: [shown]\n` })).to.deep.equal([
      'notes.yaml:6:14: filterable[0]: there is no field "shown"; expected one of id, text',
    ]);
  });

  it("are not checked against fields with a fault", async () => {
    const text =
      "name: notes\nmodel: Note\ntriggers: []\nfields: { id: { type: Int, id: true }, text: { type: Text } }\nfilterable: [text]\n";

    expect(await faultsOf({ "notes.yaml": text })).to.have.lengthOf(1);
  });

  it("are not checked where another fault hides the target", async () => {
    const faults = await faultsOf({
      "orders.yaml":
        "name: orders\nmodel: Order\ntriggers: []\nfields: { id: { type: Int, id: true }, customer_id: { type: Int, references: customers.id } }\ntransform: { customer: { name: customer.name } }\nfilterable: [customer.name, customer.nam]\nbaseQuery: { include: { customer: true } }\n",
      "customers.yaml":
        "name: customers\nmodel: Customer\ntriggers: []\nfields: { id: { type: Int, id: true }, name: { type: Text } }\n",
    });

    expect(faults).to.have.lengthOf(2);
    expect(faults.join("\n"))
      .to.match(/customers.yaml.*fields.name.type/)
      .and.to.match(/customer.nam"/);
  });
});
