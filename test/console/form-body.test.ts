import { expect } from "chai";
import {
  bodyOf,
  jsonOf,
  textsOf,
  textsOfJson,
  withRequired,
} from "../../src/console/pages/resources/form-body.ts";
import { formFields } from "../../src/console/pages/resources/form-fields.ts";

const fields = formFields({
  type: "object",
  properties: {
    title: { type: "string" },
    at: { type: "string", format: "date-time" },
    tags: { type: "array", items: { type: "string" } },
    meta: {},
    size: { anyOf: [{ type: "string", enum: ["s", "m"] }, { type: "null" }] },
  },
});
const record = {
  title: "Tea",
  at: "2026-03-28T14:30:00.123Z",
  tags: ["a\nb", ""],
  meta: { n: 1 },
  size: null,
};
const start = textsOf(fields, record);
const empty = textsOf(fields, null);

describe("the body of a record's form", () => {
  it("goes to JSON and back", () => {
    const texts = {
      ...empty,
      title: "Tea",
      at: "2026-03-28T14:30:00",
      tags: "a\nb",
      meta: '{"n":1}',
      size: "m",
    };
    const json = jsonOf(fields, texts);
    expect(JSON.parse(json)).to.deep.include({ title: "Tea", tags: ["a", "b"], meta: { n: 1 }, size: "m" });
    expect(bodyOf(fields, textsOfJson(json, fields, empty))).to.deep.equal(JSON.parse(json));
  });

  it("keeps text that is not JSON, and names the field when it is sent", () => {
    const meta = fields.filter(({ name }) => name === "meta");
    expect(JSON.parse(jsonOf(meta, { meta: "{" }))).to.deep.equal({ meta: "{" });
    expect(() => bodyOf(meta, { meta: "{" })).to.throw(/^meta: This is no JSON/);
  });

  it("leaves fields that the JSON does not have as they were", () => {
    expect(textsOfJson('{ "title": "Cake" }', fields, start)).to.deep.equal({ ...start, title: "Cake" });
    expect(textsOfJson('{ "meta": null }', fields, start)).to.deep.equal({ ...start, meta: "" });
  });

  for (const [json, reason] of [
    ["{", "This is no JSON"],
    ["[]", "The body must be a JSON object"],
    ['{ "more": 1 }', "no field more"],
    ['{ "title": null }', "title cannot show"],
    ['{ "title": 1 }', "title cannot show"],
    ['{ "at": "2026-03-28T14:30:00.123Z" }', "at cannot show"],
    ['{ "at": "tomorrow" }', "at cannot show"],
    ['{ "size": "xl" }', "size cannot show"],
    ['{ "size": null }', "size cannot show"],
  ] as const)
    it(`keeps the JSON ${json}, which the fields cannot show`, () => {
      expect(() => textsOfJson(json, fields, empty)).to.throw(reason);
    });
});

describe("withRequired", () => {
  const asked = formFields({
    type: "object",
    required: ["at", "customer_id", "password"],
    properties: {
      title: { type: "string" },
      at: { type: "string", format: "date-time" },
      customer_id: { type: "integer", "x-shown": "customer.id" },
      password: { type: "string" },
    },
  });
  const shown = { title: "Tea", at: "2026-03-28T14:30:00.123+00:00", customer: { id: 7 } };

  it("adds the fields that each update needs, with the record's values to the millisecond", () => {
    expect(withRequired({ title: "Cake" }, asked, shown)).to.deep.equal({
      title: "Cake",
      at: shown.at,
      customer_id: 7,
    });
    expect(withRequired({ at: null }, asked, shown)).to.deep.equal({ at: null, customer_id: 7 });
  });
});
