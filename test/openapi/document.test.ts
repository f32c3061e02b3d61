import { createConfig, lintFromString } from "@redocly/openapi-core";
import { Validator } from "@seriousme/openapi-schema-validator";
import { expect } from "chai";
import { signedHeaders } from "../../src/deliveries/attempt/sign.ts";
import { scopeTable } from "../../src/http/scope-check.ts";
import { errorStatus } from "../../src/kit/errors.ts";
import { createRouter } from "../../src/http/state.ts";
import { addOpenApiRoutes } from "../../src/openapi/routes.ts";
import { deliveryRequests } from "../../src/openapi/delivery-requests.ts";
import { definition, definitionsOf } from "../support/definitions.ts";
import { documentOf, type TestDocument } from "./documents.ts";

const everyField = `
name: things
model: Thing
fields:
  id: { type: Uuid, id: true }
  big: { type: BigInt }
  rate: { type: Float, optional: true }
  size: { type: Decimal, precision: 8, scale: 2, default: 1.5 }
  meta: { type: Json, optional: true }
  file: { type: Bytes, optional: true }
  tags: { type: String, list: true, default: [secret-tag] }
  kind: { type: Enum, values: [a, b], optional: true }
  day: { type: Date, optional: true }
  due: { type: Date, optional: true }
  told: { type: DateTime, optional: true }
  note: { type: String, default: secret-default }
  user_id: { type: Int, index: true }
table: secret_table
triggers: [on_create]
ownerColumn: user_id
access: { read: { note: secret-of-access } }
baseQuery: { where: { note: secret-of-query } }
createRules:
  meta: nullable|array
  meta.plan: required|string|in:free,pro
  meta.seats.*.name: required|string|max:20
  big: required|integer|between:1,10
  rate: nullable|numeric|gt:0
  kind: [nullable, { in: [a, b] }]
  day: nullable|date
  due: nullable|date_format:Y-m-d
  told: nullable|date|date_format:Y-m-d
  tags: array|min:1
  tags.*: string|regex:/^[a-z]+$/
  note: exists:secret_lookup,secret_column
`;

describe("createDocument", () => {
  let sample: TestDocument;
  let things: TestDocument;
  before(async () => {
    sample = await documentOf();
    things = await documentOf(
      { "things.yaml": everyField },
      { http: { openApi: "public", rateLimit: { count: 1, windowMs: 1 } }, jwt: {} },
    );
  });

  it("is valid by the schema of OpenAPI 3.1", async () => {
    for (const document of [sample, things]) {
      const result = await new Validator().validate(JSON.parse(JSON.stringify(document)));

      expect(result.errors ?? []).to.deep.equal([]);
    }
  });

  it("passes every recommended rule of Redocly, examples by their schemas included", async () => {
    const config = await createConfig({ extends: ["recommended-strict"] });
    for (const document of [sample, things]) {
      const problems = await lintFromString({ source: JSON.stringify(document), config });

      expect(
        problems.map(({ ruleId, message, location: [at] }) => `${ruleId}: ${message} ${at?.pointer ?? ""}`),
      ).to.deep.equal([]);
    }
  });

  it("describes every route of the service, and no other", () => {
    const described = new Set(
      Object.entries(sample.paths).flatMap(([path, methods]) =>
        Object.keys(methods).map((method) => routeOf(method.toUpperCase(), path)),
      ),
    );
    const routes = { ...scopeTable, ...openRoutes() };
    const missing = Object.keys(routes).filter((route) => !described.has(route));
    const unknown = [...described].filter((route) => !(route in routes));

    expect(
      missing,
      "routes without a description: add each to the file of its room in src/openapi/endpoints",
    ).to.deep.equal([]);
    expect(unknown, "descriptions in src/openapi/endpoints of what is no route").to.deep.equal([]);
  });

  it("names the scope that scopeTable has for each route", () => {
    const wrong = Object.entries(sample.paths).flatMap(([path, methods]) =>
      Object.entries(methods).flatMap(([method, { security }]) => {
        const needed = { ...scopeTable, ...openRoutes() }[routeOf(method.toUpperCase(), path)];
        const name = path.split("/")[2] ?? "";
        const scopes =
          needed === "any"
            ? []
            : needed === "resource"
              ? [`${name}:${method === "get" ? "read" : "write"}`]
              : [needed];
        const expected = JSON.stringify(needed === "none" ? [] : [{ token: scopes }]);
        return JSON.stringify(security) === expected
          ? []
          : [`${method} ${path}: ${JSON.stringify(security)}, expected ${expected}`];
      }),
    );

    expect(wrong).to.deep.equal([]);
  });

  it("accepts a webhook as it was read: unchangeable fields are readOnly", () => {
    const changed = "url events filter headers rate_limit is_active description".split(" ");

    expect(keysIn(sample, "Webhook.create")).to.have.members([...keysIn(sample, "Webhook"), "secret"]);
    expect(keysIn(sample, "Webhook.create", false)).to.have.members([...changed, "resource", "secret"]);
    expect(keysIn(sample, "Webhook.update")).to.have.members(keysIn(sample, "Webhook"));
    expect(keysIn(sample, "Webhook.update", false)).to.have.members(changed);
  });

  it("has an id of its own for every operation", () => {
    const ids = Object.values(sample.paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId),
    );

    expect(new Set(ids).size).to.equal(ids.length);
  });

  it("names every error code", () => {
    const text = JSON.stringify([sample, things]);

    expect(Object.keys(errorStatus).filter((code) => !text.includes(code))).to.deep.equal([]);
  });

  it("has the request of each resource and trigger, with its headers", () => {
    const sent = Object.keys(
      signedHeaders({
        signing: { secrets: ["new", "old"], headers: {} },
        body: [],
        eventUuid: "e",
        uuid: "d",
        sentAt: new Date(),
      }),
    );
    const text = JSON.stringify(sample.webhooks);

    expect(Object.keys(sample.webhooks)).to.have.members([
      "customers.on_create",
      "customers.on_update",
      "customers.on_delete",
      "orders.on_create",
      "orders.on_update",
      "orders.on_delete",
      "tasks.on_create",
      "tasks.on_update",
      "service.webhook.failing",
      "service.webhook.disabled",
      "service.delivery.failed",
      "ping",
    ]);
    expect(sent.filter((name) => name !== "Content-Type" && !text.includes(`"${name}"`))).to.deep.equal([]);
  });

  it("has the old row only in the requests of updates where a mapping file keeps it", () => {
    const definitions = definitionsOf(
      definition({ name: "kept", fields: [], keepsPrevious: true }),
      definition({ name: "plain", fields: [] }),
    );

    const requests = Object.entries(deliveryRequests(definitions));

    const showing = requests.filter(([, request]) => JSON.stringify(request).includes('"previous"'));
    expect(showing.map(([name]) => name)).to.deep.equal(["kept.on_update"]);
    expect(JSON.stringify(showing)).not.to.match(/"required":\[[^\]]*"previous"/);
  });

  it("reveals nothing of base queries, filters of access, defaults, tables and look-ups", () => {
    expect(JSON.stringify(things)).not.to.match(/secret[-_](of|tag|default|table|lookup|column)/);
  });

  it("documents the place of a record's key, and the target of a reference", () => {
    const orders = sample.components.schemas["orders.create"]?.["properties"] as Readonly<
      Record<string, object>
    >;

    expect(sample.tags).to.deep.include({
      name: "orders",
      description: "Records of orders.",
      "x-key": ["id"],
    });
    expect(orders["customer_id"]).to.include({ "x-resource": "customers", "x-shown": "customer.id" });
    expect(orders["notes"]).not.to.have.any.keys("x-resource", "x-shown");
  });

  it("offers a search only where there are searchable columns", () => {
    expect(JSON.stringify(sample.paths["/resources/orders"])).to.include('"name":"search"');
    expect(JSON.stringify(things.paths["/resources/things"])).not.to.include('"name":"search"');
  });

  it("describes bodies as objects where the rules of a code module fail, and the rest as usual", async () => {
    const module = `
      export const createRules = () => { throw new Error("no"); };
      export const updateRules = () => ({ big: "nosuch" });`;

    const { components, paths } = await documentOf({
      "things.yaml": `${everyField}module: ./things.mjs\n`,
      "things.mjs": module,
    });

    const any = { type: "object", properties: {} };
    expect(components.schemas["things.create"]).to.deep.include(any);
    expect(components.schemas["things.update"]).to.deep.include(any);
    expect(Object.keys(paths)).to.deep.equal(Object.keys(things.paths));
  });

  it("derives bodies from the rules, with nested keys", () => {
    const body = things.components.schemas["things.create"];

    expect(body).to.deep.include({ type: "object", required: ["big"] });
    expect(body?.["properties"]).to.deep.include({
      big: {
        anyOf: [
          { type: "integer", minimum: 1, maximum: 10 },
          { type: "string", pattern: "^\\s*[+-]?(0|[1-9][0-9]*)\\s*$" },
        ],
      },
      kind: { type: ["string", "null"], enum: ["a", "b", null] },
      day: { type: ["string", "null"], format: "date" },
      due: { description: "Rules: date_format.", type: ["string", "null"], format: "date" },
      told: { description: "Rules: date_format.", type: ["string", "null"] },
      tags: { type: "array", items: { type: "string", maxLength: 65_536, pattern: "^[a-z]+$" }, minItems: 1 },
      meta: {
        type: ["object", "null"],
        required: ["plan"],
        properties: {
          plan: { type: "string", enum: ["free", "pro"] },
          seats: {
            type: "array",
            items: {
              type: "object",
              required: ["name"],
              properties: { name: { type: "string", minLength: 1, maxLength: 20 } },
            },
          },
        },
      },
    });
  });

  it("refuses a blank text where the rules refuse null, which it becomes", async () => {
    const { components } = await documentOf({
      "notes.yaml": `
name: notes
model: Note
fields:
  id: { type: Int, id: true }
  title: { type: String }
  text: { type: String, optional: true }
triggers: []
`,
    });

    expect(components.schemas["notes.update"]?.["properties"]).to.deep.equal({
      title: { type: "string", minLength: 1, maxLength: 65_536 },
      text: { type: ["string", "null"], maxLength: 65_536 },
    });
  });
});

/** Returns the keys of a schema; all, or only those that are or are not `readOnly`. */
function keysIn({ components }: TestDocument, name: string, isReadOnly?: boolean): readonly string[] {
  const properties = components.schemas[name]?.["properties"] as Readonly<Record<string, object>>;
  return Object.entries(properties)
    .filter(([, schema]) => isReadOnly === undefined || "readOnly" in schema === isReadOnly)
    .map(([key]) => key);
}

/** Returns the routes that need no token, without the files of the page. */
function openRoutes(): Readonly<Record<string, string>> {
  const openRouter = createRouter("");
  addOpenApiRoutes({ audience: "token", router: createRouter(""), openRouter, makeDocument: () => ({}) });
  const paths = openRouter.stack.map(({ path }) => String(path)).filter((path) => !path.startsWith("/docs/"));
  return Object.fromEntries(paths.map((path) => [`GET ${path}`, "none"]));
}

/** Returns a route of the document in the form of the table of scopes. */
function routeOf(method: string, path: string): string {
  const [, root = "", name, id] = path.split("/");
  if (root === "resources" && name !== undefined)
    return id === undefined ? "* /resources/:name" : "* /resources/:name/:id";
  return `${method} ${path.replaceAll(/\{(\w+)\}/g, ":$1")}`;
}
