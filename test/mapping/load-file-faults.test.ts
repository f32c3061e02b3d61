import { itRefuses, type Case } from "./mapping-folder.ts";

const keys: readonly Case[] = [
  [
    "an unknown key",
    "serchableColumns: []",
    '8:1: serchableColumns: unknown key; did you mean "searchableColumns"?',
  ],
  ["a key given twice", "model: Again", "8:1: the key is there already; expected each key once"],
  ["a key of the object prototype", "__proto__: {}", '8:1: the key "__proto__" is not allowed'],
  ["text that is no YAML", "transform: {", "9:1: expected a }, for a { before this place is still open"],
  [
    "a list that is not closed",
    "searchableColumns: [title",
    "9:1: expected a ], for a [ before this place is still open",
  ],
  [
    "a field too far to the left, once for all lines below it",
    " a: { type: Int }\n b: { type: Int }\n c: { type: Int }",
    "8:1: expected the key in the column of the keys before it; blanks at the start of a line count",
  ],
  [
    "a field too far to the right",
    "  a: { type: Int }\n   b: { type: Int }\n  c: { type: Int }",
    "9:1: expected the key in the column of the keys before it; blanks at the start of a line count",
  ],
  [
    "two wrong lines apart from each other",
    "transform:\n  id: id\n   title: title\nbaseQuery:\n  take: 1\n skip: 2",
    "9:7: the line below starts further to the right; expected it in the column of this key",
    "13:1: expected the key in the column of the keys before it; blanks at the start of a line count",
  ],
  [
    "a key that belongs to the value above it, by its blanks",
    "table: orders\n managed: true",
    "8:8: the line below starts further to the right; expected it in the column of this key",
  ],
  ["a tab", "\ta: { type: Int }", "8:1: expected blanks at the start of the line, and no tabs"],
  ["a key without a colon", "managed true", "8:1: expected a colon and a blank behind the key"],
  [
    "a colon without a blank",
    "managed:true\nview: false",
    "8:1: expected a colon and a blank behind the key",
  ],
  [
    "a text without an end",
    'table: "orders\nmanaged: true',
    '10:1: expected a ", for a text that began with one has no end',
  ],
  ["a switch that is none", "supportsCreate: no", "8:17: supportsCreate: expected true or false"],
  [
    "no attempts",
    "webhookMaxAttempts: 0",
    "8:21: webhookMaxAttempts: expected a whole number from 1 to 1000",
  ],
  [
    "an empty backoff",
    "webhookBackoff: []",
    "8:17: webhookBackoff: expected a list of at least one wait, in seconds",
  ],
  [
    "a negative wait",
    "webhookBackoff: [1, -1]",
    "8:21: webhookBackoff[1]: expected seconds, from 0 to 31536000",
  ],
  [
    "an admin rule of another kind",
    "isAdmin: everybody",
    "8:10: isAdmin: expected flag, nobody or a list of e-mail addresses",
  ],
  [
    "an admin without an address",
    "isAdmin: [ann]",
    "8:10: isAdmin: expected flag, nobody or a list of e-mail addresses",
  ],
  [
    "a double quote in a table",
    `table: 'a"b'`,
    "8:8: table: expected the name of a table, or <schema>.<table>, without double quotes, further dots and control characters",
  ],
  [
    "a NUL in a table",
    'table: "a\\0b"',
    "8:8: table: expected the name of a table, or <schema>.<table>, without double quotes, further dots and control characters",
  ],
  [
    "a line break in a table",
    'table: "a\\nb"',
    "8:8: table: expected the name of a table, or <schema>.<table>, without double quotes, further dots and control characters",
  ],
  [
    "half a character in a table",
    'table: "a\\uD800b"',
    "8:8: table: expected the name of a table, or <schema>.<table>, without double quotes, further dots and control characters",
  ],
  [
    "an empty table",
    'table: ""',
    "8:8: table: expected the name of a table, or <schema>.<table>, without double quotes, further dots and control characters",
  ],
  ["a long table name", `table: ${"é".repeat(32)}`, "8:8: table: expected at most 63 bytes"],
];

const fields: readonly Case[] = [
  [
    "an unknown type",
    "  a: { type: Text }",
    "8:14: fields.a.type: expected one of Int, BigInt, Float, Decimal, String, Boolean, DateTime, Date, Time, Interval, Json, Bytes, Uuid, Enum",
  ],
  [
    "a mistyped type",
    "  a: { type: string }",
    '8:14: fields.a.type: expected one of Int, BigInt, Float, Decimal, String, Boolean, DateTime, Date, Time, Interval, Json, Bytes, Uuid, Enum; did you mean "String"?',
  ],
  ["a field without a type", "  a: {}", '8:6: fields.a: expected the key "type"'],
  [
    "an unknown key of a field",
    "  a: { type: Int, uniqe: true }",
    '8:19: fields.a.uniqe: unknown key; did you mean "unique"?',
  ],
  [
    "a field that is no object",
    "  a: Int",
    "8:6: fields.a: expected the keys of a field, such as { type: String }",
  ],
  [
    "a name that is no identifier",
    "  a-b: { type: Int }",
    "8:3: fields.a-b: expected a field name: a letter, then letters, digits and _; at most 63",
  ],
  [
    "a name that every object has",
    "  constructor: { type: Int }",
    "8:3: fields.constructor: the name is reserved; expected another, with `column: ` for the database's",
  ],
  [
    "a name that filters have",
    "  AND: { type: Int }",
    "8:3: fields.AND: the name is reserved; expected another, with `column: ` for the database's",
  ],
  [
    "a key of a type that has no text of its own",
    "  b: { type: Float, id: true }",
    "8:14: fields.b.type: expected one of Int, BigInt, Decimal, String, Boolean, DateTime, Date, Time, Uuid, Enum for the key",
  ],
  [
    "an optional key",
    "  id2: { type: Int, id: true, optional: true }",
    "8:41: fields.id2.optional: is for a field that is neither the key nor a list only",
  ],
  [
    "two fields of one column",
    "  a: { type: String, column: title }",
    '8:6: fields.a: the column "title" is that of the field "title"',
  ],
  ["a length beside a number", "  a: { type: Int, length: 3 }", "8:27: fields.a.length: is for String only"],
  ["a scale beside a text", "  a: { type: String, scale: 3 }", "8:29: fields.a.scale: is for Decimal only"],
  [
    "a scale beyond the precision",
    "  a: { type: Decimal, precision: 2, scale: 3 }",
    "8:44: fields.a.scale: expected at most the precision",
  ],
  ["an enum without values", "  a: { type: Enum }", '8:6: fields.a: expected the key "values"'],
  [
    "an enum with an empty value",
    "  a: { type: Enum, values: [''] }",
    "8:29: fields.a.values[0]: expected a text of 1 to 63 characters",
  ],
  [
    "an enum with a value twice",
    "  a: { type: Enum, values: [x, x] }",
    "8:28: fields.a.values: expected each value once",
  ],
  [
    "a value that no text can hold",
    '  a: { type: Enum, values: ["x\\0", y] }',
    "8:28: fields.a.values: expected values without NUL characters",
  ],
  ["values beside a text", "  a: { type: String, values: [x] }", "8:30: fields.a.values: is for Enum only"],
  [
    "updatedAt beside a number",
    "  a: { type: Int, updatedAt: true }",
    "8:30: fields.a.updatedAt: is for a DateTime only",
  ],
  [
    "a scale without a precision",
    "  a: { type: Decimal, scale: 2 }",
    "8:30: fields.a.scale: expected `precision` beside it",
  ],
  [
    "a default of a field that is set anyway",
    "  a: { type: DateTime, updatedAt: true, default: now }",
    "8:50: fields.a.default: a field with `updatedAt` is set anyway; expected no default",
  ],
  [
    "a double quote in a column",
    `  a: { type: Int, column: 'a"b' }`,
    "8:27: fields.a.column: expected the name of a column, without double quotes and control characters",
  ],
  [
    "a NUL in a column",
    '  a: { type: Int, column: "a\\0b" }',
    "8:27: fields.a.column: expected the name of a column, without double quotes and control characters",
  ],
  [
    "a line break in a column",
    '  a: { type: Int, column: "a\\u0085b" }',
    "8:27: fields.a.column: expected the name of a column, without double quotes and control characters",
  ],
  [
    "an index with the name of another one",
    `  a: { type: Int, index: true, column: ${"c".repeat(61)}1 }\n  b: { type: Int, index: true, column: ${"c".repeat(61)}2 }`,
    `9:3: fields.b: its index would have the name "orders_${"c".repeat(52)}_idx" (table and column, cut to 63 bytes), like the one of resources/orders.yaml: fields.a; expected another table or column name`,
  ],
  [
    "a column with a long name",
    "  a: { type: Int, column: éééééééééééééééééééééééééééééééé }",
    "8:27: fields.a.column: expected at most 63 bytes",
  ],
];

const defaults: readonly Case[] = [
  [
    "a JSON key that Prisma would obey",
    "  a: { type: Json, default: { b: [{ __prismaRawParameters__: true }] } }",
    '8:29: fields.a.default: expected a value that does not contain the key "__prismaRawParameters__"',
  ],
  [
    "a text of more than 64 Ki characters",
    `  a: { type: String, default: ${"x".repeat(65_537)} }`,
    "8:31: fields.a.default: expected at most 65536 characters",
  ],
  [
    "a text for an Int",
    "  a: { type: Int, default: five }",
    "8:28: fields.a.default: expected a whole number of 32 bits",
  ],
  [
    "an Int of 33 bits",
    "  a: { type: Int, default: 2147483648 }",
    "8:28: fields.a.default: expected a whole number of 32 bits",
  ],
  [
    "a BigInt that has lost digits",
    "  a: { type: BigInt, default: 9007199254740993 }",
    "8:31: fields.a.default: expected a whole number of 64 bits, in quotes beyond 9007199254740991",
  ],
  [
    "a value that the enum lacks",
    "  a: { type: Enum, values: [x, y], default: z }",
    "8:45: fields.a.default: expected one of x, y",
  ],
  [
    "a decimal with too many digits",
    "  a: { type: Decimal, precision: 4, scale: 2, default: 100.5 }",
    "8:56: fields.a.default: expected at most 2 digits before the point and 2 after it",
  ],
  [
    "a text that is too long",
    "  a: { type: String, length: 2, default: abc }",
    "8:42: fields.a.default: expected at most 2 characters",
  ],
  [
    "a decimal that loses digits as a number",
    "  a: { type: Decimal, precision: 18, scale: 2, default: 90071992547409.93 }",
    "8:57: fields.a.default: expected a decimal number in quotes, beyond 15 digits",
  ],
  [
    "a text that cannot be stored",
    '  a: { type: String, default: "\\ud800" }',
    "8:31: fields.a.default: expected a text without half a surrogate pair",
  ],
  [
    "a word for a switch",
    "  a: { type: Boolean, default: yes }",
    "8:32: fields.a.default: expected true or false",
  ],
  [
    "no time",
    "  a: { type: DateTime, default: tomorrow }",
    "8:33: fields.a.default: expected now, or a time such as 2026-03-28T14:30:00Z",
  ],
  [
    "a time of a day that no month has",
    "  a: { type: DateTime, unique: true, default: 2026-02-30 }",
    "8:47: fields.a.default: expected now, or a time such as 2026-03-28T14:30:00Z",
  ],
  [
    "null for a field that may not be",
    "  a: { type: Json, default: null }",
    "8:29: fields.a.default: null is for a field with `optional: true`, which needs no default for it",
  ],
  ["no UUID", "  a: { type: Uuid, default: abc }", "8:29: fields.a.default: expected uuid, or a UUID"],
  ["no base64", "  a: { type: Bytes, default: a b }", "8:30: fields.a.default: expected base64"],
  [
    "base64 with bits beyond its bytes",
    "  a: { type: Bytes, default: QR== }",
    "8:30: fields.a.default: expected base64",
  ],
  [
    "a decimal that the column of one without `precision` cannot hold",
    `  a: { type: Decimal, default: "${"9".repeat(36)}" }`,
    "8:32: fields.a.default: expected at most 35 digits before the point and 30 after it",
  ],
  [
    "one value for a list",
    "  a: { type: Int, list: true, default: 1 }",
    "8:40: fields.a.default: expected a list of values",
  ],
  [
    "now for a text",
    "  a: { type: String, default: now }",
    '8:31: fields.a.default: "now" is for a DateTime, Date or Time',
  ],
  [
    "uuid for a number",
    "  a: { type: Int, default: uuid }",
    '8:28: fields.a.default: "uuid" is for a String or Uuid',
  ],
  [
    "autoincrement for what is no key",
    "  a: { type: Int, default: autoincrement }",
    '8:28: fields.a.default: "autoincrement" is for a key of type Int or BigInt',
  ],
];

const modules: readonly Case[] = [
  [
    "a file that is missing",
    "module: ./none.mjs",
    "8:9: module: there is no such file in the configuration folder; expected a path relative to this file",
  ],
  [
    "a file outside of the folder",
    "module: ../../../../../../../../../../../../etc/hosts.mjs",
    "8:9: module: there is no such file in the configuration folder; expected a path relative to this file",
  ],
  [
    "a file that is no code",
    "module: ./orders.yaml",
    "8:9: module: expected the path of a .mjs or .js file, such as ./orders.mjs",
  ],
  [
    "an unknown export",
    "module: ./unknown.mjs",
    '8:9: module: unknown export "transfrom"; did you mean "transform"?',
  ],
  [
    "a default export",
    "module: ./default.mjs",
    '8:9: module: unknown export "default"; expected one of transform, createRules, updateRules, isAdmin, applySearch, baseQuery, webhookMaxAttempts, webhookBackoff',
  ],
  [
    "an export that is no function",
    "module: ./number.mjs",
    '8:9: module: expected the export "webhookMaxAttempts" to be a function',
  ],
  [
    "an async export",
    "module: ./async.mjs",
    '8:9: module: expected the export "transform" to be a plain function, neither async nor a generator',
  ],
  ["code that throws", "module: ./throwing.mjs", "8:9: module: the code cannot be loaded: no such luck"],
  [
    "code that is no JavaScript",
    "module: ./broken.mjs",
    "8:9: module: the code cannot be loaded: Unexpected token '}'; `node --check` shows the line",
  ],
];

const code = {
  "unknown.mjs": "export const transfrom = () => ({});",
  "default.mjs": "export default () => ({});",
  "number.mjs": "export const webhookMaxAttempts = 3;",
  "async.mjs": "export async function transform() {}",
  "throwing.mjs": "throw new Error('no such luck');",
  "broken.mjs": "export function transform() {\n}}\n",
};

const toView: Case = [
  "a foreign key to a view",
  "  a_id: { type: Int, references: totals.id }",
  "8:34: fields.a_id.references: totals is a view, to which no foreign key leads; expected the table beneath it",
];
const view =
  "name: totals\nmodel: T\nmanaged: false\nview: true\ntriggers: []\nfields: { id: { type: Int, id: true } }";

describe("checkDefinitions, of a file that is wrong in itself", () => {
  describe("keys", () => itRefuses(keys));
  describe("fields", () => itRefuses(fields));
  describe("references", () => itRefuses([toView], { "totals.yaml": view }));
  describe("defaults", () => itRefuses(defaults));
  describe("module", () => itRefuses(modules, code));
});
