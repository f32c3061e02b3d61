import { expect } from "chai";
import { readCheck } from "../../../src/mapping/import/checks.ts";
import type { TypedField } from "../../../src/mapping/import/column-type.ts";
import { importedDefault } from "../../../src/mapping/import/defaults.ts";
import { provedKeys } from "../../../src/mapping/import/view-key.ts";
import type { BaseTable } from "../../../src/mapping/import/view-sources.ts";

/**
 * Conditions as `pg_get_expr` writes them, and the column, rule and values that are read from each.
 */
const checks: readonly (readonly [condition: string, ...read: (readonly unknown[])[]])[] = [
  ["(price > (0)::numeric)", ["price", "gt", "0"]],
  ["(x >= '-5'::integer)", ["x", "min", "-5"]],
  ["((stars >= 1) AND (stars <= 5))", ["stars", "min", "1"], ["stars", "max", "5"]],
  ["((x > 0) AND ((x < 9) AND (y <= 1.5)))", ["x", "gt", "0"], ["x", "lt", "9"], ["y", "max", "1.5"]],
  ["(length((name)::text) >= 3)", ["name", "min", "3"]],
  ["(char_length(code) = 2)", ["code", "size", "2"]],
  ["(state = ANY (ARRAY['a'::text, 'b, c'::text, 'it''s'::text]))", ["state", "in", "a", "b, c", "it's"]],
  [
    "((state)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[]))",
    ["state", "in", "a", "b"],
  ],
  ["(level = ANY (ARRAY[1, 2, 3]))", ["level", "in", "1", "2", "3"]],
  ['("Größe in cm" > 0)', ["Größe in cm", "gt", "0"]],
  ["(VALUE >= 0)", ["VALUE", "min", "0"]],
  ["((x)::numeric > (0)::numeric)", ["x", "gt", "0"]],
];

const unread = [
  "(a < b)",
  "(x <> 0)",
  "((x IS NULL) OR (x > 0))",
  "(lower(code) = 'a'::text)",
  "((x % 2) = 0)",
  "(email ~ '@'::text)",
  "((x > 0) AND (a < b))",
  "(done_at > now())",
  "((a + 1) > 2)",
  "(state = ANY (ARRAY['a'::text, b]))",
  "(x > 5 AND note = ' AND '::text)",
  // Casts that round, or read a text.
  "((price)::integer <= 10)",
  "((price)::numeric(10,1) <= 10.0)",
  "(length((at)::date::text) > 3)",
  "((code)::integer = ANY (ARRAY[1, 2]))",
];

/** Types to which PostgreSQL itself casts an operand. */
const plainTypes = ["text", "character varying", "bpchar", "numeric", "double precision"];
const isPlain = (_column: string, casts: readonly string[]): boolean =>
  casts.every((type) => plainTypes.includes(type));

describe("readCheck", () => {
  for (const [condition, ...read] of checks)
    it(`reads ${condition}`, () => {
      const found = readCheck(condition, isPlain)?.map((one) =>
        one.kind === "values" ? [one.column, "in", ...one.values] : [one.column, one.rule, one.bound],
      );

      expect(found).to.deep.equal(read);
    });

  for (const condition of unread)
    it(`leaves ${condition} to the database`, () => {
      expect(readCheck(condition, isPlain)).to.equal(undefined);
    });
});

/** Returns the default of a column that has the time of the insert. */
function kindOf(column: string): unknown {
  return importedDefault("CURRENT_TIMESTAMP", { type: "DateTime" }, { column, isKey: false })?.kind;
}

describe("importedDefault", () => {
  const cases: readonly (readonly [type: string, sql: string, expected: unknown])[] = [
    ["Int", "0", 0],
    ["Int", "'-1'::integer", -1],
    ["Int", "(1 + 1)", "database"],
    ["BigInt", "'9007199254740993'::bigint", "9007199254740993"],
    ["Decimal", "0.10", 0.1],
    ["Decimal", "(0)::numeric", 0],
    ["Boolean", "false", false],
    ["String", "'it''s ::text'::character varying", "it's ::text"],
    ["String", "''::text", ""],
    ["String", "'now'::text", "database"],
    ["String", "'uuid'::text", "database"],
    ["String", "upper('a'::text)", "database"],
    ["String", "CURRENT_USER", "database"],
    ["String", "NULL::character varying", undefined],
    ["String", "(('a'::text || 'b'::text))::character varying", "database"],
    ["Enum", "'open'::sales.state", "open"],
    ["Enum", "'gone'::sales.state", "database"],
    ["DateTime", "now()", "database"],
    ["DateTime", "'2020-01-01 00:00:00'::timestamp without time zone", "database"],
    ["DateTime", "(now() AT TIME ZONE 'utc'::text)", "database"],
    ["Uuid", "gen_random_uuid()", "uuid"],
    ["Uuid", "extensions.uuid_generate_v4()", "uuid"],
    ["Json", `'{"a": [1]}'::jsonb`, { a: [1] }],
    ["Json", "'null'::jsonb", "database"],
    ["String[]", "'{}'::text[]", []],
    ["String[]", "ARRAY['a'::text, 'b'::text]", ["a", "b"]],
    ["String[]", "ARRAY[]::text[]", []],
    ["String[]", `'{"a b",c}'::text[]`, "database"],
    ["Int[]", "'{1,2}'::integer[]", [1, 2]],
    ["Bytes", "'\\x00'::bytea", "database"],
  ];
  for (const [type, sql, expected] of cases)
    it(`reads ${sql} of a ${type}`, () => {
      const isList = type.endsWith("[]");
      const typed = {
        type: type.replace("[]", ""),
        ...(isList && { list: true }),
        ...(type === "Enum" && { values: ["open", "paid"] }),
      } as TypedField;

      const found = importedDefault(sql, typed, { column: "x", isKey: false });

      expect(found?.kind === "literal" ? found.value : found?.kind).to.deep.equal(expected);
    });

  it("marks the time of creation as one that no client sets, and no other time", () => {
    expect(["created_at", "createdAt", "inserted_at", "date_created"].map(kindOf)).to.deep.equal([
      "now",
      "now",
      "now",
      "now",
    ]);
    expect(["starts_at", "updated_at", "created_by_date"].map(kindOf)).to.deep.equal([
      "database",
      "database",
      "database",
    ]);
  });
});

describe("provedKeys", () => {
  const tables: Readonly<Record<string, BaseTable & { readonly schema: string }>> = {
    orders: { schema: "public", columns: ["id", "number"], uniques: [["id"], ["number"]] },
    pairs: { schema: "public", columns: ["a", "b"], uniques: [["a", "b"]] },
    customers: { schema: "public", columns: ["id"], uniques: [["id"]] },
    t: { schema: "Weird ü", columns: ["Key no"], uniques: [["Key no"]] },
    "Order Lines": { schema: "sales", columns: ["ID"], uniques: [["ID"]] },
    readings: { schema: "public", columns: ["ts"], uniques: [["ts"]] },
    days: { schema: "public", columns: ["day"], uniques: [["day"]] },
  };
  const cases: readonly (readonly [view: string, ...keys: string[]])[] = [
    [" SELECT orders.id,\n    orders.note\n   FROM orders\n  WHERE orders.open;", "id"],
    [" SELECT id,\n    note\n   FROM orders;", "id"],
    [" SELECT o.number AS nr,\n    o.id AS key\n   FROM orders o\n  ORDER BY o.id;", "key", "nr"],
    [" SELECT o.id,\n    c.name\n   FROM orders o\n     JOIN customers c ON c.id = o.customer_id;", "id"],
    [
      " SELECT o.id,\n    c.name\n   FROM orders o\n     LEFT JOIN customers c ON o.customer_id = c.id\n     LEFT JOIN customers d ON d.id = c.id;",
      "id",
    ],
    [" SELECT c.id,\n    o.note\n   FROM customers c\n     JOIN orders o ON o.customer_id = c.id;"],
    [" SELECT o.id\n   FROM orders o,\n    customers c;"],
    [" SELECT o.id,\n    unnest(o.tags) AS tag\n   FROM orders o;"],
    [" SELECT orders.id\n   FROM orders\nUNION ALL\n SELECT customers.id\n   FROM customers;"],
    [" SELECT o.customer_id,\n    count(*) AS n\n   FROM orders o\n  GROUP BY o.customer_id;", "customer_id"],
    [" SELECT o.a,\n    o.b,\n    count(*) AS n\n   FROM orders o\n  GROUP BY o.a, o.b;", "a+b"],
    [" SELECT o.a,\n    count(*) AS n\n   FROM orders o\n  GROUP BY o.a, o.b;"],
    [
      " SELECT c.id,\n    c.name,\n    count(*) AS n\n   FROM customers c\n     JOIN orders o ON o.customer_id = c.id\n  GROUP BY c.id, c.name;",
      "id",
      "id+name",
    ],
    [
      " SELECT o.id,\n    c.name\n   FROM orders o\n     JOIN customers c USING (id)\n     JOIN customers d ON d.id = o.x AND d.open = 1;",
      "id",
    ],
    [" SELECT d.day\n   FROM days d\n     CROSS JOIN orders o\n     JOIN customers c USING (id);"],
    [
      " SELECT d.day,\n    c.id\n   FROM days d\n     JOIN orders o ON o.day = d.kind\n     JOIN customers c USING (id)\n  GROUP BY d.day, c.id;",
      "day+id",
    ],
    [
      " SELECT c.id\n   FROM days d\n     JOIN orders o ON o.day = d.day\n     JOIN customers c USING (id);",
      "id",
    ],
    [" SELECT o.id\n   FROM orders o\n     JOIN customers c ON c.id = c.other;"],
    [" SELECT o.id\n   FROM orders o\n     RIGHT JOIN customers c ON c.id = o.customer_id;"],
    [" SELECT p.a,\n    p.b\n   FROM pairs p;", "a+b"],
    [" SELECT p.a\n   FROM pairs p;"],
    [' SELECT l."ID" AS "Line, x",\n    upper(l.name) AS name\n   FROM sales."Order Lines" l;', "Line, x"],
    [" SELECT lower(orders.id) AS id\n   FROM orders;"],
    [" WITH x AS (\n         SELECT 1\n        )\n SELECT x.id\n   FROM x;"],
    // The row of the last named table decides, and the row of each table to which it refers.
    [
      " SELECT o.id,\n    c.name\n   FROM customers c\n     JOIN orders o ON c.id = o.customer_id\n  WHERE o.open = 0;",
      "id",
    ],
    [
      ' SELECT c.name,\n    o.id,\n    l.note\n   FROM customers c\n     JOIN (orders o\n     JOIN sales."Order Lines" l ON l."ID" = o.id) ON c.id = o.customer_id;',
      "id",
    ],
    // A column with the same value stands for that of the key.
    [" SELECT o.id AS pair,\n    p.b\n   FROM pairs p\n     JOIN orders o ON o.id = p.a;", "pair+b"],
    [" SELECT p.b\n   FROM pairs p\n  WHERE p.a = 1;"],
    [" SELECT o.id,\n    c.id AS cid\n   FROM orders o,\n    customers c;", "id+cid"],
    [" SELECT o.id\n   FROM orders o,\n    customers c\n  WHERE c.id = o.customer_id;", "id"],
    [" SELECT o.id\n   FROM orders o\n     LEFT JOIN customers c ON c.name = o.name;"],
    [" SELECT c.id\n   FROM orders o\n     LEFT JOIN customers c ON c.id = o.customer_id;"],
    [" SELECT o.id,\n    c.id AS cid\n   FROM orders o\n     FULL JOIN customers c ON c.id = o.customer_id;"],
    // Groups that other columns determine are not part of the key.
    [
      " SELECT c.id AS cid,\n    c.name AS label,\n    o.kind\n   FROM orders o\n     JOIN customers c ON c.id = o.customer_id\n  GROUP BY c.id, c.name, o.kind\n HAVING count(*) > 1\n  ORDER BY c.id;",
      "cid+kind",
      "cid+label+kind",
    ],
    // The condition of an outer join leaves NULL where it is false, for any columns.
    [
      " SELECT o.customer_id,\n    c.name\n   FROM orders o\n     LEFT JOIN customers c ON c.id = o.customer_id AND o.open = 1\n  GROUP BY o.customer_id, c.name;",
      "customer_id+name",
    ],
    [
      " SELECT o.region,\n    c.kind\n   FROM orders o\n     LEFT JOIN customers c ON c.id = o.customer_id AND c.kind = 'x'::text\n  GROUP BY o.region, c.kind;",
      "region+kind",
    ],
    [
      " SELECT o.id,\n    c.id AS cid\n   FROM orders o\n     FULL JOIN customers c USING (id)\n  GROUP BY o.id, c.id;",
      "id+cid",
    ],
    [
      " SELECT o.id,\n    c.id AS cid\n   FROM orders o\n     LEFT JOIN customers c USING (id)\n  GROUP BY o.id, c.id;",
      "id",
      "id+cid",
    ],
    [
      " SELECT o.id,\n    d.id AS did,\n    c.id AS cid\n   FROM orders o\n     LEFT JOIN customers d ON d.open = 1\n     LEFT JOIN customers c ON c.id = d.id AND d.x = 1\n  GROUP BY o.id, d.id, c.id;",
      "id+did+cid",
    ],
    [
      " SELECT c.id,\n    c.name,\n    count(o.id) AS n\n   FROM customers c\n     LEFT JOIN orders o ON o.customer_id = c.id\n  GROUP BY c.id, c.name;",
      "id",
      "id+name",
    ],
    [
      " SELECT o.id,\n    c.name\n   FROM orders o\n     LEFT JOIN customers c ON c.id = o.customer_id AND o.open = 1\n  GROUP BY o.id, c.name;",
      "id",
      "id+name",
    ],
    [
      " SELECT date_trunc('day'::text, o.at) AS day,\n    count(*) AS n\n   FROM orders o\n  GROUP BY (date_trunc('day'::text, o.at));",
      "day",
    ],
    [" SELECT DISTINCT o.kind,\n    o.color\n   FROM orders o;", "kind+color"],
    [" SELECT DISTINCT ON (o.kind) o.kind,\n    o.id\n   FROM orders o;", "id"],
    [
      " SELECT orders.id,\n    'a'::text AS kind\n   FROM orders\nUNION\n SELECT customers.id,\n    'b'::text\n   FROM customers;",
      "id+kind",
    ],
    [' SELECT "Key no"\n   FROM "Weird ü".t;', "Key no"],
    [" SELECT x.id\n   FROM ( SELECT o.id\n           FROM orders o) x;"],
    // A cast may merge values. PostgreSQL itself adds those to text.
    [" SELECT readings.ts::date AS day,\n    readings.ts\n   FROM readings;", "ts"],
    [
      " SELECT d.day,\n    r.ts,\n    r.value\n   FROM readings r\n     JOIN days d ON d.day = r.ts::date;",
      "ts",
    ],
    [
      " SELECT r.ts::date AS day,\n    r.kind,\n    count(*) AS n\n   FROM readings r\n  GROUP BY (r.ts::date), r.kind;",
      "day+kind",
    ],
    [
      " SELECT o.id,\n    c.name\n   FROM orders o\n     JOIN customers c ON c.id::text = o.code::text;",
      "id",
    ],
    [" SELECT o.id\n   FROM orders o\n LIMIT 3;", "id"],
  ];
  for (const [view, ...keys] of cases)
    it(`finds ${keys.join(", ") || "nothing"} in ${view.replaceAll(/\s+/g, " ").trim()}`, () => {
      const found = provedKeys(
        view,
        (schema, name) => {
          const table = tables[name];
          return table?.schema === (schema ?? "public") ? table : undefined;
        },
        view.includes("unnest("),
      );

      expect(found.map((names) => names.join("+"))).to.deep.equal(keys);
    });
});
