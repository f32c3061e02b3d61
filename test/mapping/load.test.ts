import { expect } from "chai";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkDefinitions, loadDefinitions } from "../../src/mapping/load.ts";
import { field, keyField, ownersOnly } from "../support/definitions.ts";
import {
  checkFiles,
  createMappingFolder,
  type DefinitionData,
  definitionOf,
  faultsOf,
} from "./mapping-folder.ts";

const least = "name: notes\nmodel: Note\ntriggers: []\nfields: { id: { type: Int, id: true } }\n";
const named = (name: string, added = ""): string =>
  `name: ${name}\nmodel: ${name.toUpperCase()}\ntriggers: []\nfields:\n  id: { type: Int, id: true }\n${added}`;

describe("checkDefinitions", () => {
  it("fills in every default", async () => {
    expect(await definitionOf("notes", { "n.yaml": least })).to.deep.equal({
      file: "resources/n.yaml",
      name: "notes",
      model: "Note",
      table: "notes",
      isManaged: true,
      isView: false,
      fields: [keyField()],
      key: keyField(),
      keys: [keyField()],
      uniques: [],
      indexes: [],
      relations: [],
      triggers: [],
      isAdmin: { kind: "flag" },
      searchableColumns: [],
      access: ownersOnly,
      includes: [],
      count: "exact",
      baseQuery: {},
      supportsCreate: true,
      supportsUpdate: true,
      supportsDelete: true,
      keepsPrevious: false,
      code: {},
    } satisfies DefinitionData);
  });

  it("leads from a definition back to the file", async () => {
    const { definitions } = await checkFiles({ "n.yaml": least });
    const remark = definitions?.get("notes")?.remark(["fields", "id"], "odd");
    expect(remark).to.match(/^\/.*\/resources\/n\.yaml:4:11: fields\.id: odd$/);
  });

  it("reads every key", async () => {
    const text = `
name: order-lines
model: OrderLine
table: public.Lines
managed: false
unique: [[price, seen]]
fields:
  line_id: { type: String, id: true, length: 8, column: LINE }
  state: { type: Enum, values: [on, off], default: on, index: true }
  price: { type: Decimal, precision: 5, scale: 2, optional: true, default: 1.5 }
  seen: { type: DateTime, default: now, unique: true }
  tags: { type: String, list: true, default: [a] }
  meta: { type: Json, default: { a: [1] } }
  token: { type: Uuid, default: uuid }
  changed: { type: DateTime, updatedAt: true }
  rest: { type: Int, optional: true, default: null }
triggers: [on_delete, on_update]
previous: true
transform: { id: line_id, kind: { value: { a: 1 } }, more: { price: price, none: {} } }
createRules: { price: 'required|numeric', tags: [array, { max: 3 }] }
updateRules: { tags.*: string }
ownerColumn: line_id
isAdmin: [Ann@example.com]
searchableColumns: [line_id]
filterable: [id, more.price]
sortable: [id]
includes: []
count: none
baseQuery: { orderBy: { price: { sort: desc, nulls: last } }, where: { state: { not: { in: [off] } } } }
supportsCreate: false
supportsUpdate: false
supportsDelete: false
webhookMaxAttempts: 3
webhookBackoff: [0.5, 10]
`;
    const key = field("line_id", "String", { isKey: true, length: 8, column: "LINE" });
    expect(await definitionOf("order-lines", { "lines.yml": text })).to.deep.equal({
      file: "resources/lines.yml",
      name: "order-lines",
      model: "OrderLine",
      table: "Lines",
      isManaged: false,
      isView: false,
      keys: [key],
      uniques: [["price", "seen"]],
      indexes: [],
      fields: [
        key,
        field("state", "Enum", {
          values: ["on", "off"],
          default: { kind: "literal", value: "on" },
          isIndexed: true,
        }),
        field("price", "Decimal", {
          precision: 5,
          scale: 2,
          isOptional: true,
          default: { kind: "literal", value: 1.5 },
        }),
        field("seen", "Instant", { default: { kind: "now" }, isUnique: true }),
        field("tags", "String", { isList: true, default: { kind: "literal", value: ["a"] } }),
        field("meta", "Json", { default: { kind: "literal", value: { a: [1] } } }),
        field("token", "Uuid", { default: { kind: "uuid" } }),
        field("changed", "DateTime", { isUpdatedAt: true }),
        field("rest", "Int", { isOptional: true }),
      ],
      key,
      relations: [],
      triggers: ["on_delete", "on_update"],
      transform: {
        kind: "object",
        entries: [
          ["id", { kind: "path", path: ["line_id"] }],
          ["kind", { kind: "value", value: { a: 1 } }],
          [
            "more",
            {
              kind: "object",
              entries: [
                ["price", { kind: "path", path: ["price"] }],
                ["none", { kind: "object", entries: [] }],
              ],
            },
          ],
        ],
      },
      createRules: { price: "required|numeric", tags: ["array", { max: 3 }] },
      updateRules: { "tags.*": "string" },
      ownerColumn: "line_id",
      isAdmin: { kind: "emails", emails: ["Ann@example.com"] },
      searchableColumns: ["line_id"],
      filterable: ["id", "more.price"],
      sortable: ["id"],
      access: { ...ownersOnly, reference: { kind: "owner" } },
      includes: [],
      count: "none",
      baseQuery: {
        orderBy: [{ price: { sort: "desc", nulls: "last" } }],
        where: { state: { not: { in: ["off"] } } },
      },
      supportsCreate: false,
      supportsUpdate: false,
      supportsDelete: false,
      webhookMaxAttempts: 3,
      webhookBackoff: [0.5, 10],
      keepsPrevious: true,
      code: {},
    } satisfies DefinitionData);
  });

  for (const [type, kind] of [
    ["Int", "autoincrement"],
    ["BigInt", "autoincrement"],
    ["Uuid", "uuid"],
    ["String", undefined],
  ] as const) {
    it(`gives a key of type ${type} the default ${kind ?? "of none"}`, async () => {
      const { key } = await definitionOf("notes", { "n.yaml": least.replace("type: Int", `type: ${type}`) });
      expect(key.default?.kind).to.equal(kind);
    });
  }

  it("gives both resources their end of a reference, and names further ones by their relation", async () => {
    const files = {
      "people.yaml": named(
        "people",
        "  boss_id: { type: Int, optional: true, references: people.id, onDelete: setNull }\n",
      ),
      "to-dos.yaml": named(
        "to-dos",
        "  author_id: { type: Int, references: people.id }\n  by: { type: Int, references: people.id, as: reader, onDelete: cascade }\n",
      ).replace("TO-DOS", "ToDo"),
    };
    const people = await definitionOf("people", files);
    const toDos = await definitionOf("to-dos", files);
    const at = { localField: "id" };
    expect(people.relations).to.deep.equal([
      {
        name: "boss",
        kind: "one",
        resource: "people",
        localField: "boss_id",
        foreignField: "id",
        relationName: "people.boss_id",
      },
      {
        ...at,
        name: "people",
        kind: "many",
        resource: "people",
        foreignField: "boss_id",
        relationName: "people.boss_id",
      },
      {
        ...at,
        name: "to_dos",
        kind: "many",
        resource: "to-dos",
        foreignField: "author_id",
        relationName: "to-dos.author_id",
      },
      {
        ...at,
        name: "to_dos_by_reader",
        kind: "many",
        resource: "to-dos",
        foreignField: "by",
        relationName: "to-dos.by",
      },
    ]);
    expect(toDos.relations.map(({ name, kind, localField }) => [name, kind, localField])).to.deep.equal([
      ["author", "one", "author_id"],
      ["reader", "one", "by"],
    ]);
    expect(toDos.fields.map(({ references }) => references)).to.deep.equal([
      undefined,
      { resource: "people", field: "id", as: "author", onDelete: "restrict" },
      { resource: "people", field: "id", as: "reader", onDelete: "cascade" },
    ]);
  });

  it("follows relations through `include`, and requires none of a module with a base query", async () => {
    const b = named("b", "  c_id: { type: Int, references: c.id }\n");
    const a = named("a", "  b_id: { type: Int, references: b.id }\ntransform: { deep: b.c.id }\n");
    const c = named("c");

    const included = "baseQuery: { include: { b: { include: { c: true } } } }\n";
    expect(await faultsOf({ "a.yaml": a + included, "b.yaml": b, "c.yaml": c })).to.deep.equal([]);
    const half = "baseQuery: { include: { b: true } }\n";
    expect(await faultsOf({ "a.yaml": a + half, "b.yaml": b, "c.yaml": c })).to.deep.equal([
      'a.yaml:7:20: transform.deep: "b.c" is not loaded; expected it in `include` of `baseQuery`',
    ]);
    const code = { "a.mjs": "export const baseQuery = () => ({});" };
    expect(
      await faultsOf({ "a.yaml": `${a}module: ./a.mjs\n`, "b.yaml": b, "c.yaml": c, ...code }),
    ).to.deep.equal([]);
  });

  it("loads the exports of a code module, and again when it has changed", async () => {
    const folder = createMappingFolder({ "n.yaml": `${least}module: code/n.mjs\n` });
    const path = join(folder.configDir, "resources/code/n.mjs");
    mkdirSync(join(folder.configDir, "resources/code"));
    const attempts = async (): Promise<number | undefined> =>
      (await loadDefinitions(folder.configDir)).get("notes")?.code.webhookMaxAttempts?.();

    writeFileSync(path, "export function webhookMaxAttempts() { return 3; }");
    expect(await attempts()).to.equal(3);
    rmSync(path);
    writeFileSync(path, "export const webhookMaxAttempts = () => 4;");
    expect(await attempts()).to.equal(4);
    folder.remove();
  });

  it("refuses a code module that a link leads out of the folder to", async () => {
    const outside = createMappingFolder({ "n.mjs": "export const transform = () => ({});" });
    const folder = createMappingFolder({ "n.yaml": `${least}module: ./n.mjs\n` });
    symlinkSync(join(outside.configDir, "resources/n.mjs"), join(folder.configDir, "resources/n.mjs"));

    const { faults } = await checkDefinitions(folder.configDir);

    expect(faults.map(({ message }) => message)).to.deep.equal([
      "there is no such file in the configuration folder; expected a path relative to this file",
    ]);
    folder.remove();
    outside.remove();
  });

  it("sorts the definitions by name, and reads only files that end in .yaml or .yml", async () => {
    const { definitions } = await checkFiles({
      "1.yaml": named("b"),
      "2.yml": named("a"),
      "3.json": "{",
      ".#4.yaml": "{",
      "readme.md": "# {",
    });

    expect([...(definitions?.keys() ?? [])]).to.deep.equal(["a", "b"]);
  });

  it("has no definitions for an empty folder, and a fault for a missing one", async () => {
    const { definitions } = await checkFiles({});
    expect(definitions?.size).to.equal(0);

    const { faults } = await checkDefinitions("/nonexistent");
    expect(faults.map(({ file, message }) => `${file}: ${message}`)).to.deep.equal([
      "resources: expected a folder with mapping files at /nonexistent/resources; it may be empty. SVC_CONFIG_DIR names the folder around it",
    ]);
  });

  it("refuses names, models and tables that two files have", async () => {
    const found = await faultsOf({
      "a.yaml": "name: a\nmodel: Same\ntable: t\ntriggers: []\nfields: { id: { type: Int, id: true } }",
      "b.yaml": "name: b\nmodel: same\ntable: t\ntriggers: []\nfields: { id: { type: Int, id: true } }",
      "c.yaml": "name: a\nmodel: Other\ntriggers: []\nfields: { id: { type: Int, id: true } }",
      "d.yaml": "name: t\nmodel: Delete\ntriggers: []\nfields: { id: { type: Int, id: true } }",
      "e.yaml": "name: e\nmodel: class\ntriggers: []\nfields: { id: { type: Int, id: true } }",
    });

    expect(found).to.deep.equal([
      "b.yaml:2:8: model: expected a model of its own; resources/a.yaml has the same",
      "b.yaml:3:8: table: expected a table of its own; resources/a.yaml has the same",
      "c.yaml:1:7: name: expected a name of its own; resources/a.yaml has the same",
      "d.yaml:1:7: name: expected a table of its own; resources/a.yaml has the same",
      'e.yaml:2:8: model: "class" is a reserved word; expected another name, such as classRecord',
    ]);
  });

  it("refuses a reference whose other end finds no free name", async () => {
    const found = await faultsOf({
      "a.yaml": named("a", "  b: { type: Int }\n  b_by_x: { type: Int }\n"),
      "b.yaml": named("b", "  x_id: { type: Int, references: a.id }\n"),
    });

    expect(found).to.deep.equal([
      "b.yaml:6:34: fields.x_id.references: a has fields or relations named b and b_by_x already, where its side of the relation goes; expected another name in `as`",
    ]);
  });

  for (const [fact, text, fault] of [
    ["an empty file", "", "1:1: expected the keys of a mapping file: name, model, fields, triggers"],
    ["a list", "- name: a", "1:1: expected the keys of a mapping file: name, model, fields, triggers"],
    ["a file that is too large", `# ${"x".repeat(300_000)}`, "1:1: expected at most 256 KiB"],
    ["a deep file", `a: ${"[".repeat(50_000)}`, "1:1: expected at most 32 levels of nesting"],
    [
      "a name in capitals",
      least.replace("notes", "Notes"),
      "1:7: name: expected a small letter, then small letters, digits, _ and -; at most 48",
    ],
    [
      "a model that is no identifier",
      least.replace("Note", "my note"),
      "2:8: model: expected a letter, then letters, digits and _; at most 63",
    ],
    [
      "an unknown trigger",
      least.replace("[]", "[on_created]"),
      '3:12: triggers[0]: expected one of on_create, on_update, on_delete; did you mean "on_create"?',
    ],
    [
      "a trigger given twice",
      least.replace("[]", "[on_create, on_create]"),
      '3:23: triggers[1]: "on_create" is in the list already',
    ],
    [
      "a file without a key field",
      least.replace("id: true", "unique: true"),
      "4:9: fields: expected `id: true` at the field that is the key, or at each one of its fields",
    ],
    [
      "a key of another type",
      least.replace("Int", "Bytes"),
      "4:23: fields.id.type: expected one of Int, BigInt, Decimal, String, Boolean, DateTime, Date, Time, Uuid, Enum for the key",
    ],
    ["a file without triggers", least.replace("triggers: []\n", ""), '1:1: expected the key "triggers"'],
  ] as const) {
    it(`refuses ${fact}`, async () => {
      expect(await faultsOf({ "n.yaml": text })).to.deep.equal([`n.yaml:${fault}`]);
    });
  }

  it("reports the faults of all files together, without those that only follow from another", async () => {
    const found = await faultsOf({
      "a.yaml": named(
        "a",
        "  b_id: { type: Itn, references: b.id }\nownerColumn: b_id\nsearchableColumns: [x]\ntransform: { b: b.id }\n",
      ),
      "b.yaml": named(
        "b",
        "  c_id: { type: Int, references: c.id }\nbaseQuery: { include: { a: true, c: true } }\n",
      ),
      "c.yaml":
        "name: C\nfields: { id: { type: Int, id: true } }\nmodel: 1\ntriggers: []\ncreateRules: { y: nope }\n",
      "d.yaml": "name: d: e",
    });

    expect(found).to.deep.equal([
      'a.yaml:6:17: fields.b_id.type: expected one of Int, BigInt, Float, Decimal, String, Boolean, DateTime, Date, Time, Interval, Json, Bytes, Uuid, Enum; did you mean "Int"?',
      'a.yaml:8:21: searchableColumns[0]: there is no field "x"; expected one of id, b_id',
      "c.yaml:1:7: name: expected a small letter, then small letters, digits, _ and -; at most 48",
      "c.yaml:3:8: model: expected a letter, then letters, digits and _; at most 63",
      'c.yaml:5:16: createRules.y: there is no field "y"; expected one of id',
      'c.yaml:5:19: createRules.y: there is no rule "nope"',
      'd.yaml:1:7: a second ": " in one line; a text that contains it goes into quotes',
    ]);
  });
});
