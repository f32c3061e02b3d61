import { expect } from "chai";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { createLog } from "../../src/telemetry/log.ts";
import { applyMigration } from "../../src/app/apply-migration.ts";
import { planMigration } from "../../src/app/plan-migration.ts";
import type { Definitions } from "../../src/mapping/definition.ts";
import { checkFiles } from "../mapping/mapping-folder.ts";
import { openNewEmbedded } from "../support/embedded.ts";
import { changeValueSettings, createTestDatabase } from "../support/database.ts";

const log = createLog({ level: "silent" });

/** Every type, with its possible defaults, as a mapping file writes them. */
const defaults: Readonly<Record<string, readonly string[]>> = {
  "type: Int": ["0", "-7", "2147483647", "-2147483648"],
  "type: BigInt": ["5", "-5", '"9223372036854775807"', '"-9223372036854775808"', '"007"'],
  "type: Float": ["0", "1.5", "-2.25", "1e21", "1e-7", "-0", "100"],
  "type: Decimal": ["1.5", '"0.10"', "-3", '"007.50"', '"123456789012345678901234567890.5"'],
  "type: Decimal, precision: 12, scale: 2": ["1", "1.5", '"10.00"', "0", "-0.05"],
  "type: String": ["uuid", '""', "plain", `"it's"`, '"a\\nb\\t\\\\"', '"null"', '"now()"', '"é 😀 % _"'],
  "type: String, length: 36": ["uuid", "open", `"it's"`],
  "type: Boolean": ["true", "false"],
  "type: DateTime": [
    "now",
    '"2026-03-28"',
    '"2026-03-28T14:30:00Z"',
    '"2026-03-28T14:30:00.12Z"',
    '"2026-03-28T14:30:00.123456Z"',
    '"2026-03-28T14:30:00+02:00"',
    '"2026-03-28T14:30Z"',
    '"1815-12-10T00:00:00Z"',
  ],
  "type: Json": ["{ a: [1, null], b: it's }", "[]", "{}", '"text"', "1.5", "true", "uuid"],
  "type: Bytes": ['""', '"AAEC/w=="', '"eA=="'],
  "type: Uuid": ["uuid", '"018f3c5e-7b1a-7000-8000-0123456789ab"', '"018F3C5E-7B1A-7000-8000-0123456789AB"'],
  'type: Enum, values: [open, "it\'s", now, uuid]': ["open", `"it's"`, "now", "uuid"],
  "type: Int, list: true": ["[]", "[1, -2]"],
  "type: BigInt, list: true": ["[]", '[1, "9223372036854775807", -2, "007"]'],
  "type: Float, list: true": [
    "[]",
    "[1.5, -2, 100, -0, 0.0001, 0.00001, 1e14, 1e15, 12345678901234567, 1e21, 1e-7, 1e-300]",
  ],
  "type: Decimal, list: true": ["[]", '[1.5, "0.10", "007.50", -3, "-0"]'],
  "type: Decimal, precision: 12, scale: 2, list: true": ["[]", "[1.5, -3]"],
  "type: String, list: true": ["[]", `[a, "it's", "b,c", 'd"e', "", "{}"]`],
  "type: String, length: 9, list: true": ["[]", "[a, b]"],
  "type: Boolean, list: true": ["[]", "[true, false]"],
  "type: DateTime, list: true": ["[]", '["2026-03-28", "2026-03-28T14:30:00.12+02:00"]'],
  "type: Json, list: true": ["[]", "[{ a: 1 }, [2], text]"],
  "type: Bytes, list: true": ["[]", '["AAEC/w==", ""]'],
  "type: Uuid, list: true": ["[]", '["018F3C5E-7B1A-7000-8000-0123456789AB"]'],
  "type: Enum, values: [a, b], list: true": ["[]", "[a, b]"],
};

/** Loads a mapping file with a field for each default, and one without for each type. */
async function load(): Promise<Definitions> {
  return loadFields(
    Object.entries(defaults).flatMap(([type, literals]) => [
      `{ ${type} }`,
      ...literals.map((literal) => `{ ${type}, default: ${literal} }`),
      ...(type.includes("list")
        ? []
        : literals.map((literal) => `{ ${type}, optional: true, default: ${literal} }`)),
    ]),
  );
}

async function loadFields(fields: readonly string[]): Promise<Definitions> {
  const { definitions, faults } = await checkFiles({
    "things.yaml": [
      "name: things",
      "model: Thing",
      "triggers: []",
      "fields:",
      "  id: { type: Uuid, id: true }",
      "  changed_at: { type: DateTime, updatedAt: true }",
      ...fields.map((field, index) => `  f${index}: ${field}`),
    ].join("\n"),
  });
  expect(faults).to.deep.equal([]);
  return definitions as Definitions;
}

async function expectRest(url: string): Promise<void> {
  const definitions = await load();
  await applyMigration({ url, definitions, allowDestructive: false, log });

  const second = await planMigration({ url, definitions });

  expect(second.steps.flatMap(({ sql }) => sql.split("\n"))).to.deep.equal([]);
}

describe("applyMigration, with every default of every type", () => {
  it("makes no change the second time on PostgreSQL", async () => {
    const database = await createTestDatabase();
    try {
      await expectRest(database.url);
    } finally {
      await database.drop();
    }
  });

  it("makes no change the second time on a database with its own settings", async () => {
    const database = await createTestDatabase();
    try {
      await changeValueSettings(database.url);

      await expectRest(database.url);
    } finally {
      await database.drop();
    }
  });

  it("gives a new row the defaults of the mapping file", async () => {
    const database = await createTestDatabase();
    const client = new Client({ connectionString: database.url });
    await client.connect();
    try {
      const definitions = await loadFields([
        '{ type: Uuid, default: "018F3C5E-7B1A-7000-8000-0123456789AB" }',
        '{ type: BigInt, list: true, default: [1, "9223372036854775807", "007"] }',
        "{ type: Float, list: true, default: [1e21, -2.5] }",
        '{ type: Decimal, precision: 12, scale: 2, list: true, default: [1.5, "-0.10"] }',
        "{ type: Json, list: true, default: [{ a: [1] }, text] }",
        '{ type: DateTime, list: true, default: ["2026-03-28", "2026-03-28T14:30:00.12+02:00"] }',
        "{ type: Float, default: 1e-7 }",
      ]);
      await applyMigration({ url: database.url, definitions, allowDestructive: false, log });

      const { rows } = await client.query<Record<string, unknown>>(
        "INSERT INTO things (changed_at) VALUES (now()) RETURNING f0, f1, f2, f3, f4, f5, f6",
      );

      expect(rows).to.deep.equal([
        {
          f0: "018f3c5e-7b1a-7000-8000-0123456789ab",
          f1: ["1", "9223372036854775807", "7"],
          f2: [1e21, -2.5],
          f3: ["1.50", "-0.10"].map(Number),
          f4: [{ a: [1] }, "text"],
          f5: [new Date("2026-03-28T00:00:00Z"), new Date("2026-03-28T12:30:00.120Z")],
          f6: 1e-7,
        },
      ]);
    } finally {
      await client.end();
      await database.drop();
    }
  });

  it("makes no change the second time on the embedded database", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "svc-defaults-"));
    const embedded = await openNewEmbedded(dataDir);
    try {
      await expectRest(embedded.url);
    } finally {
      await embedded.close();
      await rm(dataDir, { recursive: true, force: true });
    }
  });
});
