import { createConfig, lintFromString } from "@redocly/openapi-core";
import { Validator } from "@seriousme/openapi-schema-validator";
import { expect } from "chai";
import type { Definitions } from "../../src/mapping/definition.ts";
import { loadDefinitions } from "../../src/mapping/load.ts";
import { createMappingFolder } from "../mapping/mapping-folder.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { walkDocument } from "../support/document-walk.ts";
import { admin, mappingFiles, type AdminRun } from "../support/import.ts";
import { psql } from "../support/psql.ts";
import { request, startService, type Answer, type TestService, type TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";

const schemas = "public,billing,My Schema ü";

/** Values that the examples of the document cannot contain. */
const bodies: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  dated: { day: "2025-06-01" },
  deferred: { id: 2 },
  domains: { during: "[2026-01-01,)" },
  flags: { id: 2 },
  hosts: { ip: "192.0.2.7", mac: null },
  instant_notes: { at: "2024-01-01T00:00:00.000001+00:00" },
  lines: { order_no: 7, product: 1 },
  graded: { grade: "a" },
  kind_notes: { kind: 'a"b' },
  ports: { ip: "::1", port: 81 },
  prices: { sku: "b" },
};

const softened = (id: number): string => `/resources/softened/${id},2025-01-01`;

const invalid = "The given data was invalid";

function leftOut(verb: string): string {
  return `The database did not ${verb} the record: a trigger or a rule of skipping left it out.`;
}

describe("svc-admin import of the tables of others", function () {
  this.timeout(240_000);
  let database: TestDatabase;
  let folder: ReturnType<typeof createMappingFolder>;
  let first: AdminRun;
  let report: {
    readonly tables: readonly { readonly table: string; readonly remarks: readonly string[] }[];
    readonly leftOut: readonly { readonly table: string; readonly column?: string }[];
  };
  let definitions: Definitions;
  let service: TestService;
  let user: TestUser;

  const remarksOf = (name: string): string =>
    report.tables.find(({ table }) => table === `public.${name}`)?.remarks.join(" ") ?? "";
  const run = (...args: readonly string[]): Promise<AdminRun> =>
    admin({ url: database.url, configDir: folder.configDir }, ...args);

  const send = (
    method: string,
    path: string,
    body: unknown,
    headers: Readonly<Record<string, string>>,
  ): Promise<Answer> => request({ url: service.baseUrl + path, method, token: user.token, body, headers });

  before(async () => {
    database = await createTestDatabase();
    await psql(database.url, { file: "test/fixtures/other-tables.sql" });
    folder = createMappingFolder({});
    first = await run("import", "--schema", schemas, "--json");
    report = JSON.parse(first.stdout);
    definitions = await loadDefinitions(folder.configDir);
    service = await startService({
      mode: "servers",
      resources: await mappingFiles(folder.configDir),
      env: { DATABASE_URL: database.url },
    });
    user = await service.createUser({ isAdmin: true });
  });
  after(async () => {
    await service?.stop();
    await database.drop();
    folder.remove();
  });

  it("leaves out no table, and changes nothing a second time", async () => {
    expect(first.status, first.stderr).to.equal(0);
    expect(report.leftOut.map(({ table, column }) => [table, column])).to.deep.equal([
      ["public.searched", "words"],
    ]);
    const before = await mappingFiles(folder.configDir);
    const second = await run("import", "--schema", schemas, "--update", "--json");
    expect(second.status, second.stderr).to.equal(0);
    const after = await mappingFiles(folder.configDir);
    for (const [file, text] of Object.entries(after)) expect(text, file).to.equal(before[file]);
    expect(Object.keys(after)).to.deep.equal(Object.keys(before));
  });

  it("reports the special cases of a table", () => {
    expect(remarksOf("ruled")).to.contain("replaces DELETE");
    expect(remarksOf("searched")).to.contain("a trigger of the table has to fill it");
    expect(remarksOf("graded")).to.contain("grade: an enum with an empty value");
    expect(remarksOf("unpopulated")).to.contain("503 until its first REFRESH");
  });

  it("has a document that is valid by two validators", async () => {
    const { body: document } = await user.request("GET", "/openapi.json");
    const { errors = [] } = await new Validator().validate(structuredClone(document));
    const config = await createConfig({ extends: ["recommended-strict"] });
    const problems = await lintFromString({ source: JSON.stringify(document), config });

    expect(errors).to.deep.equal([]);
    const lines = problems.map(
      ({ ruleId, message, location: [at] }) => `${ruleId}: ${message} ${at?.pointer ?? ""}`,
    );
    expect(lines).to.deep.equal([]);
  });

  it("is served whole: each parameter of each list, each record by its id, each example", async () => {
    await psql(database.url, { sql: "REFRESH MATERIALIZED VIEW unpopulated" });
    const { faults, created } = await walkDocument(user, definitions, bodies);

    // Arrays of arrays, and NaN, are shown unchanged; the document has lists of one level.
    const known = /\/(?:grid|sums)\/|must match a schema in anyOf|(?:required|additional) propert/;
    expect(faults.filter((fault) => !known.test(fault))).to.deep.equal([]);
    const writable = [...definitions.values()].filter(({ isView }) => !isView);
    expect(created).to.have.members(writable.map(({ name }) => name));
  });

  it("refuses with a reason a write that a trigger, a check, a type or a rule of the table refuses", async () => {
    const refusals: readonly (readonly [string, object, string])[] = [
      ["raising", { v: "bad" }, "The database refused the record: no bad values, please"],
      ["skipping", { v: "bad" }, leftOut("keep")],
      ["checked", { a: 2, b: 1 }, `${invalid}: it breaks the constraint a_before_b of the table.`],
      [
        "stays",
        { during: "[13,15)" },
        "The during conflicts with another record, by the constraint one_stay_at_a_time of the table.",
      ],
      ["stays", { during: "nope" }, "The during field must be a valid int4range."],
      ["stays", { during: "[a,b)" }, "The during field must be a valid int4range."],
      ["dated", { day: "2024-12-31" }, `${invalid}: no partition of the table takes the record.`],
      ["nets", { net: "10.0.0.1/8", ip: "::1" }, "The net field must be a valid cidr."],
      ["nets", { at: "25:00", ip: "::1" }, "The at field must be a valid timetz."],
      ["nets", { ratio: 1e300 }, "The ratio field has a value that its column cannot hold."],
      ["graded", { grade: "c" }, "The grade field must be a valid grade."],
      ["hosts", { ip: "x" }, "The ip field must be a valid inet."],
      ["domains", { role: "x" }, "The selected role is invalid."],
    ];
    for (const [name, body, message] of refusals) {
      const answer = await user.request("POST", `/resources/${name}`, body);
      expect([answer.status, answer.body.message]).to.deep.equal([422, message]);
    }

    expect(await user.request("DELETE", "/resources/ruled/1")).to.include({ status: 405 });
  });

  it("gives the message of a RAISE of any code, unless the code asks for a retry", async () => {
    const answers = await Promise.all(
      ["P9001", "23514", "55000", "22023", "0A000", "23503", "23505", "40001"].map(async (code) => {
        const { status, body } = await user.request("POST", "/resources/raising", { v: `code ${code}` });
        return [code, status, body.message];
      }),
    );

    const told = [422, "The database refused the record: not with a code"];
    expect(answers).to.deep.equal([
      ["P9001", ...told],
      ["23514", ...told],
      ["55000", ...told],
      ["22023", ...told],
      ["0A000", ...told],
      ["23503", ...told],
      ["23505", ...told],
      ["40001", 503, "Server Error"],
    ]);
  });

  it("refuses a change and a delete that a trigger suppresses: the record exists", async () => {
    const { body } = await user.request("POST", "/resources/skipping", { v: "kept" });
    const path = `/resources/skipping/${String(body.id)}`;
    const { headers } = await user.request("GET", path);
    const answers = [
      await user.request("PATCH", path, { v: "bad" }),
      await send("PATCH", path, { v: "bad" }, { "If-Match": headers.get("etag") ?? "" }),
      await user.request("DELETE", path),
    ].map(({ status, body: { message } }) => [status, message]);

    expect(answers).to.deep.equal([
      [422, leftOut("change")],
      [422, leftOut("change")],
      [422, leftOut("delete")],
    ]);
    expect(await user.request("GET", path)).to.include({ status: 200 });
  });

  it("deletes where a trigger changes the record instead, and undoes what it writes with a refusal", async () => {
    const pool = service.infrastructure.database.pool;
    await pool.query(
      "INSERT INTO softened (id, v) VALUES (11, 'a'), (12, 'kept'), (13, 'a'), (14, 'a'), (15, 'kept'), (16, 'guarded')",
    );
    await pool.query("DELETE FROM refusals");
    const batch = (...operations: readonly object[]): Promise<Answer> =>
      user.request("POST", "/resources/softened/batch", { operations });
    const { headers } = await user.request("GET", softened(14));
    const tag = { "If-Match": headers.get("etag") ?? "" };

    const answers = [
      await user.request("DELETE", softened(11)),
      await user.request("DELETE", softened(11)),
      await user.request("DELETE", softened(16)),
      await send("DELETE", softened(14), undefined, tag),
      await send("DELETE", softened(14), undefined, tag),
      await batch({ method: "delete", id: "13,2025-01-01" }),
      await user.request("DELETE", softened(12)),
      await user.request("PATCH", softened(12), { v: "bad" }),
      await user.request("POST", "/resources/softened", { id: 19, v: "bad" }),
      await batch(
        { method: "update", id: "15,2025-01-01", data: { v: "kept" } },
        { method: "delete", id: "15,2025-01-01" },
      ),
    ].map(({ status }) => status);

    expect(answers).to.deep.equal([204, 204, 204, 204, 412, 200, 422, 422, 422, 422]);
    const { rows } = await pool.query(
      "SELECT id FROM softened WHERE id > 10 AND deleted_at IS NOT NULL ORDER BY id",
    );
    expect(rows.map(({ id }) => id)).to.deep.equal([11, 13, 14, 16]);
    const kept = await pool.query("SELECT what FROM refusals ORDER BY id");
    // A soft delete is a DELETE and an UPDATE.
    expect(kept.rows.map(({ what }) => what)).to.deep.equal(
      [1, 1, 6, 4, 3].flatMap(() => ["DELETE", "UPDATE"]),
    );
    const events = await user.request(
      "GET",
      "/events?resource=softened&event=on_update&record_id=11,2025-01-01",
    );
    expect(events.body.data).to.have.length(2);
  });

  it("refuses a write that breaks a deferred constraint at the commit, in each kind of transaction", async () => {
    const data = { v: "bad" };
    const batch = { operations: [{ method: "create", data }] };
    const answers = [
      await user.request("POST", "/resources/waiting", data),
      await send("POST", "/resources/waiting", data, { "Idempotency-Key": "one" }),
      await user.request("POST", "/resources/waiting/batch", batch),
      await send("POST", "/resources/waiting/batch", batch, { "Idempotency-Key": "two" }),
    ].map(({ status, body: { message } }) => [status, message]);

    const told = [422, "The database refused the record: no bad values, please"];
    expect(answers).to.deep.equal([told, told, told, told]);
  });

  it("keeps microseconds, infinite days and plain texts of the keys in the ids of events", async () => {
    const ids = async (name: string): Promise<readonly string[]> => {
      const { body } = await user.request("GET", `/resources/${name}?per_page=100`);
      const keys = definitions.get(name)?.keys ?? [];
      const textOf = (record: Readonly<Record<string, unknown>>): readonly string[] =>
        keys.map((key) => String(record[key.name]));
      return (body.data as Readonly<Record<string, unknown>>[]).map((record) => {
        const texts = textOf(record);
        return texts.length === 1 ? (texts[0] ?? "") : texts.map(encodeURIComponent).join(",");
      });
    };
    const captured = [...definitions.values()].filter(({ triggers }) => triggers.length > 0);
    const shown = new Map<string, readonly string[]>();
    for (const { name } of captured) shown.set(name, (await ids(name)).toSorted());
    const tables = captured.map(({ table }) =>
      table
        .split(".")
        .map((part) => `"${part}"`)
        .join("."),
    );
    const last = await psql(database.url, { sql: "SELECT max(id) FROM svc.events" });
    await psql(database.url, { sql: `TRUNCATE ${tables.join(", ")}` });

    const { rows } = await service.infrastructure.database.pool.query<{ resource: string; ids: string[] }>(
      `SELECT resource, array_agg(record_id ORDER BY record_id COLLATE "C") AS ids FROM svc.events
       WHERE trigger = 'on_delete' AND id > $1 GROUP BY 1`,
      [last],
    );
    const told = new Map(rows.map((row) => [row.resource, row.ids.toSorted()]));
    for (const [name, expected] of shown) expect(told.get(name) ?? [], name).to.deep.equal(expected);
    expect(shown.get("conditions")).to.include("2023-12-31T22%3A00%3A00.123456%2B00%3A00,1");
    await until(async () => (await psql(database.url, { sql: "SELECT count(*) FROM svc.outbox" })) === "0", {
      what: "every event is presented and published",
      timeoutMs: 60_000,
    });
  });
});
