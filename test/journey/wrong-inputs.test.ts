import { expect } from "chai";
import { startService, type TestService, type TestUser } from "../support/service.ts";
import { expectRefusal, sendAs, things, type Send } from "./things.ts";

/** The default, `1mb`. */
const bodyLimitBytes = 1024 * 1024;
const json = { "Content-Type": "application/json" };

/** Texts that are not a body of an object, and their status. */
const badBodies: readonly (readonly [what: string, body: string | Buffer, status: number])[] = [
  ["an empty body", "", 422],
  ["an empty object", "{}", 422],
  ["blanks only", " \n ", 400],
  ["half an object", '{"title": "x"', 400],
  ["single quotes", "{'title': 'x'}", 400],
  ["a trailing comma", '{"title": "x",}', 400],
  ["a comment", '{"title": "x"} // x', 400],
  ["two objects", '{"title": "x"}{"title": "y"}', 400],
  ["NaN", '{"title": "x", "size": NaN}', 400],
  ["a form", "title=x", 400],
  ["XML", "<title>x</title>", 400],
  ["an array", '[{"title": "x"}]', 400],
  ["a text", '"title"', 400],
  ["a number", "1", 400],
  ["true", "true", 400],
  ["null", "null", 400],
  ["a raw line break in a text", '{"title": "a\nb"}', 400],
  ["a wrong escape", '{"title": "\\x41"}', 400],
  ["Latin-1", Buffer.from('{"title": "caf\u00e9"}', "latin1"), 400],
  ["UTF-16", Buffer.from('{"title": "x"}', "utf16le"), 400],
  ["an overlong UTF-8 sequence", Buffer.from([0x7b, 0x22, 0xc0, 0xaf, 0x22, 0x3a, 0x31, 0x7d]), 400],
  ["arrays 100,000 levels deep", `{"title": "x", "meta": ${"[".repeat(100_000)}${"]".repeat(100_000)}}`, 400],
  [
    "objects 100,000 levels deep",
    `{"title": "x", "meta": ${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}}`,
    400,
  ],
];

/** Values that no field of `things` accepts; all answer 422 on the field. */
const badValues: readonly (readonly [field: string, json: string])[] = [
  ...["null", '""', '"   "', "1", "true", "[]", "{}", '["x"]', '"a\\u0000b"', '"\\ud800"', '"x\\udc00y"'].map(
    (value) => ["title", value] as const,
  ),
  ["title", JSON.stringify("x".repeat(41))],
  ["title", JSON.stringify("🐎".repeat(41))],
  ...["5", '"\\u0000"', '"\\udfff"', '{"toString": "x"}'].map((value) => ["body", value] as const),
  ...[
    "1.5",
    "1e400",
    "-1e400",
    "2147483648",
    "-2147483649",
    "1e21",
    '"5x"',
    '"0x10"',
    "true",
    "[1]",
    '"1e3"',
  ].map((value) => ["size", value] as const),
  ...[
    "9223372036854775808",
    '"9223372036854775808"',
    '"-9223372036854775809"',
    "9007199254740993",
    "1.5",
    '"x"',
  ].map((value) => ["big", value] as const),
  ["big", JSON.stringify("9".repeat(10_000))],
  ...["1e400", '"1e400"', '"x"', '"Infinity"', '"NaN"', "[]", "{}", "true"].map(
    (value) => ["ratio", value] as const,
  ),
  ...["1.234", "10000000000", "1e400", '"1e999999999"', '"-0.001"', '"1,5"', "{}"].map(
    (value) => ["price", value] as const,
  ),
  ["price", JSON.stringify(`1.${"0".repeat(5_000)}1`)],
  ...['"yes"', "2", "-1", "[]", "null"].map((value) => ["is_done", value] as const),
  ...[
    '"2026-02-30"',
    '"2026-13-01"',
    '"10000-01-01"',
    '"0000-01-01"',
    '"+275760-09-13T00:00:00Z"',
    '"-000001-01-01T00:00:00Z"',
    '"infinity"',
    '"now"',
    '"2026-03-28T25:00:00Z"',
    '"2026-03-28T10:00:00+99:99"',
    "1774708200",
    "{}",
    '"\\u0000"',
  ].map((value) => ["due_at", value] as const),
  ...['"a\\u0000b"', '{"a\\u0000": 1}', '["\\ud800"]', '{"a": {"b": [1e400]}}'].map(
    (value) => ["meta", value] as const,
  ),
  ...['"a"', '"a==="', '"@@@@"', "5", "[1, 2]"].map((value) => ["data", value] as const),
  ...['"x"', '"00000000-0000-0000-0000-00000000000"', '"{00000000-0000-4000-8000-000000000000}"', "5"].map(
    (value) => ["token", value] as const,
  ),
  ...['"closed"', '"OPEN"', "null", "1", '["open"]', '"constructor"', '"open\\u0000"'].map(
    (value) => ["state", value] as const,
  ),
  ...['"x"', "[1]", "[null]", '["a\\u0000"]', '[["a"]]', '["\\ud800"]', "null"].map(
    (value) => ["tags", value] as const,
  ),
  ...["999999", "2147483648", '"x"', "1.5", "[1]", '"\\u0000"'].map((value) => ["parent_id", value] as const),
];

/** Segments that are no id. */
const badIds = [
  "0",
  "-1",
  "1.5",
  "abc",
  "1e3",
  "0x1",
  "01",
  "+1",
  "%201",
  "2147483648",
  "9223372036854775807",
  "9223372036854775808",
  "1".repeat(2_000),
  "%00",
  "1%00",
  "%",
  "%zz",
  "%ff",
  "%ED%A0%80",
  "%E2%80%AE",
  "null",
  "undefined",
  "NaN",
  "[object%20Object]",
  "__proto__",
  "1;DROP%20TABLE%20things",
  "1'--",
  "1%2F2",
  "..%2f1",
];

/**
 * On one of the two databases: the code in front of it gives these answers.
 * `wrong-requests.test.ts` sends random ones of all kinds to both.
 */
describe("wrong inputs", () => {
  let service: TestService;
  let ada: TestUser;
  let thingId: number;
  let webhookId: number;
  let send: Send;

  before(async () => {
    service = await startService({ mode: "servers", resources: { "things.yaml": things } });
    ada = await service.createUser();
    send = sendAs(service, ada);
    const body = { url: "https://example.com/hook", resource: "things", events: ["on_delete"] };
    webhookId = (await ada.request("POST", "/webhooks", body)).body.id;
    thingId = (await ada.request("POST", "/resources/things", { title: "it's 100% _ \\" })).body.id;
  });
  afterEach("the service still answers, and nothing was written", async () => {
    expect((await ada.request("GET", "/resources/things")).body.total).to.equal(1);
    expect(Reflect.ownKeys(Object.prototype)).to.deep.equal(prototypeKeys);
  });
  after("no webhook was written either", async () => {
    const { data } = (await ada.request("GET", "/webhooks")).body;
    await service.stop();
    expect(data).to.have.length(1);
  });
  const prototypeKeys = Reflect.ownKeys(Object.prototype);

  /** Every place that reads a body; the first two create, the others change. */
  const bodyPlaces = (): readonly (readonly [string, string])[] => [
    ["POST", "/resources/things"],
    ["POST", "/webhooks"],
    ["PUT", `/resources/things/${thingId}`],
    ["PUT", `/webhooks/${webhookId}`],
  ];

  it("in the query of a write, such as a filter, are refused, and nothing is written", async () => {
    const body = JSON.stringify({ description: "changed" });
    for (const answer of [
      await send("PATCH", `/webhooks/${webhookId}?filter[is_active]=false`, { body }),
      await send("DELETE", `/webhooks/${webhookId}?filter[is_active]=false`),
    ]) {
      expectRefusal(answer, 422);
      expect(answer.json).to.have.property("errors").that.has.key("filter[is_active]");
    }
    const { status, body: webhook } = await ada.request("GET", `/webhooks/${webhookId}`);
    expect([status, webhook.description]).to.deep.equal([200, null]);
  });

  describe("bodies", () => {
    for (const [what, body, status] of badBodies) {
      it(`are refused with ${status} for ${what}`, async () => {
        for (const [method, path] of bodyPlaces()) {
          const answer = await send(method, path, { body });
          // An empty change is valid.
          if (status === 422 && method === "PUT") expect(answer.status).to.equal(200);
          else expectRefusal(answer, status);
        }
      });
    }

    for (const [what, headers, status] of [
      ["over the limit", json, 413],
      ["over the limit in chunks", { ...json, "Transfer-Encoding": "chunked" }, 413],
      ["a form", { "Content-Type": "application/x-www-form-urlencoded" }, 415],
      ["multipart", { "Content-Type": "multipart/form-data; boundary=x" }, 415],
      ["text", { "Content-Type": "text/plain" }, 415],
      ["a broken content type", { "Content-Type": "json" }, 415],
      ["gzip", { ...json, "Content-Encoding": "gzip" }, 415],
      ["an unknown encoding", { ...json, "Content-Encoding": "x" }, 415],
    ] as const) {
      it(`are refused with ${status} for ${what}`, async () => {
        const body =
          status === 413 ? JSON.stringify({ title: "x".repeat(bodyLimitBytes) }) : '{"title": "new"}';
        for (const [method, path] of bodyPlaces())
          expectRefusal(await send(method, path, { headers, body }), status);
      });
    }

    it("are read up to the last byte of the limit", async () => {
      const padding = "x".repeat(bodyLimitBytes - '{"unknown": ""}'.length);
      const at = await send("PUT", `/resources/things/${thingId}`, { body: `{"unknown": "${padding}"}` });
      const over = await send("PUT", `/resources/things/${thingId}`, {
        body: `{"unknown": "${padding}x"}`,
      });

      expect(at.status).to.equal(200);
      expectRefusal(over, 413);
    });

    for (const body of [
      '{"__proto__": {"polluted": true, "is_admin": true}}',
      '{"constructor": {"prototype": {"polluted": true}}}',
      '{"meta": {"__proto__": {"polluted": true}}, "title": 1}',
      '{"a": {"constructor": {"prototype": {"polluted": true}}}}',
      '{"title": {"__proto__": {"polluted": true}}}',
      '{"hasOwnProperty": 1, "toString": null, "valueOf": {}}',
      '{"__defineGetter__": "x", "__proto__": null}',
    ]) {
      it(`pollute nothing with ${body}`, async () => {
        for (const [method, path] of bodyPlaces()) {
          const answer = await send(method, path, { body });
          expect(answer.status, answer.text).to.be.oneOf(method === "PUT" ? [200, 400, 422] : [400, 422]);
        }
        expect(({} as Record<string, unknown>)["polluted"]).to.equal(undefined);
        const kept = (await ada.request("GET", `/resources/things/${thingId}`)).body;
        expect(kept).to.include({ title: "it's 100% _ \\", meta: null });
      });
    }

    it("may have 100,000 keys, of which only the known are read", async () => {
      const keys = Array.from({ length: 100_000 }, (_, index) => [`_${index.toString(36)}`, 1]);
      const body = JSON.stringify(Object.fromEntries(keys));
      for (const [method, path] of bodyPlaces()) {
        const answer = await send(method, path, { body });
        if (method === "PUT" && path.startsWith("/resources")) expect(answer.status).to.equal(200);
        else expectRefusal(answer, 422);
      }
    });
  });

  describe("values", () => {
    const valid = { title: "new" };
    for (const [field, text] of badValues) {
      it(`are refused on ${field} for ${text.length > 60 ? `${text.slice(0, 60)}...` : text}`, async () => {
        const { [field as "title"]: _, ...rest } = valid;
        const others = JSON.stringify(rest).slice(1, -1);
        const created = `{${others}${others === "" ? "" : ", "}${JSON.stringify(field)}: ${text}}`;
        for (const answer of [
          await send("POST", "/resources/things", { body: created }),
          await send("PUT", `/resources/things/${thingId}`, {
            body: `{${JSON.stringify(field)}: ${text}}`,
          }),
        ]) {
          expectRefusal(answer, 422);
          const { errors } = answer.json as { errors: Record<string, unknown> };
          expect(Object.keys(errors).filter((name) => name.split(".")[0] !== field)).to.deep.equal([]);
        }
      });
    }
  });

  describe("ids", () => {
    for (const id of badIds) {
      it(`are not found for ${id.length > 60 ? `${id.slice(0, 60)}...` : id}`, async () => {
        for (const [method, path] of [
          ["GET", "/resources/things/ID"],
          ["PUT", "/resources/things/ID"],
          ["DELETE", "/resources/things/ID"],
          ["GET", "/webhooks/ID"],
          ["PUT", "/webhooks/ID"],
          ["DELETE", "/webhooks/ID"],
          ["GET", "/webhook-deliveries/ID"],
          ["POST", "/webhook-deliveries/ID/retry"],
          ["GET", "/resources/ID"],
          ["POST", "/resources/ID"],
        ] as const) {
          const body = method === "PUT" || path === "/resources/ID" ? '{"title": "new"}' : undefined;
          const answer = await send(method, path.replace("ID", id), body === undefined ? {} : { body });
          expectRefusal(answer, 404);
        }
      });
    }
  });
});
