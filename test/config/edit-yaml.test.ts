import { expect } from "chai";
import { parse } from "yaml";
import { editYaml } from "../../src/config/edit-yaml.ts";
import { replaceComment } from "../../src/config/replace-comment.ts";
import { inOneLine } from "../../src/config/yaml-lines.ts";

type Data = Readonly<Record<string, unknown>>;

const text = `# head
name: orders   # by hand
fields:
    # the key
    id:    { type: Int,   id: true }   # always
    title: {type: String, length: 40}
    long:
        type: Enum   # why
        values: [ open ,  paid ]
        # end of long

triggers:
  - on_create   # first
  - on_update
includes: ["a"]
# tail`;

/** Edits the text so that its data becomes the result of `change`. */
function edited(
  change: (data: Record<string, never>) => void,
  comments: Record<string, string[]> = {},
): string {
  const before = parse(text) as Data;
  const after = structuredClone(before);
  change(after as Record<string, never>);
  const result = editYaml({ text, before, after, comments });
  expect(parse(result)).to.deep.equal(after);
  return result;
}

/** Returns the added and the removed lines. */
function difference(result: string): readonly string[] {
  const [before, after] = [text.split("\n"), result.split("\n")];
  return [
    ...before.filter((line) => !after.includes(line)).map((line) => `-${line}`),
    ...after.filter((line) => !before.includes(line)).map((line) => `+${line}`),
  ];
}

const without = (comment: string): string =>
  edited((data) => delete (data["fields"] as unknown as Record<string, unknown>)["id"], {
    "fields.id": [comment],
  });

describe("editYaml", () => {
  // oxlint-disable-next-line typescript/no-explicit-any -- The data has many shapes.
  const cases: readonly (readonly [string, (data: any) => void, ...string[]])[] = [
    ["nothing", () => undefined],
    [
      "a value in braces, and leaves the spaces around it",
      ({ fields }) => (fields.id.type = "BigInt"),
      "-    id:    { type: Int,   id: true }   # always",
      "+    id:    { type: BigInt,   id: true }   # always",
    ],
    [
      "a key into braces, at its place",
      ({ fields }) => (fields.title = { type: "String", column: "a, b", length: 40, optional: true }),
      "-    title: {type: String, length: 40}",
      '+    title: {type: String, column: "a, b", length: 40, optional: true}',
    ],
    [
      "a key out of braces",
      ({ fields }) => delete fields.title.length,
      "-    title: {type: String, length: 40}",
      "+    title: {type: String}",
    ],
    [
      "the first key out of braces",
      ({ fields }) => delete fields.title.type,
      "-    title: {type: String, length: 40}",
      "+    title: {length: 40}",
    ],
    [
      "items of a list in brackets",
      ({ fields }) => (fields.long.values = ["paid", "x"]),
      "-        values: [ open ,  paid ]",
      "+        values: [ paid, x ]",
    ],
    [
      "items of a list of lines",
      (data) => (data.triggers = ["on_create", "on_delete"]),
      "-  - on_update",
      "+  - on_delete",
    ],
    [
      "a text at the top",
      (data) => (data.name = "null"),
      "-name: orders   # by hand",
      '+name: "null"   # by hand',
    ],
    [
      "a field with its lines",
      ({ fields }) => delete fields.long,
      "-    long:",
      "-        type: Enum   # why",
      "-        values: [ open ,  paid ]",
    ],
  ];
  for (const [fact, change, ...expected] of cases)
    it(`changes ${fact}`, () => {
      expect(difference(edited(change))).to.deep.equal(expected);
    });

  it("puts new fields after their neighbours, in their order, with their comments", () => {
    const result = edited(
      (data) => {
        const { id, ...rest } = (data as unknown as { fields: Record<string, unknown> }).fields;
        (data as unknown as { fields: unknown }).fields = {
          id,
          a: { type: "Int" },
          b: { type: "Int" },
          ...rest,
        };
      },
      { "fields.a": ["of a", "", "more"] },
    );

    expect(result.split("\n").slice(5, 10)).to.deep.equal([
      "    # of a",
      "    #",
      "    # more",
      "    a: { type: Int }",
      "    b: { type: Int }",
    ]);
  });

  it("puts a new key at the end, after a last line without a break", () => {
    const result = edited((data) => Object.assign(data, { ownerColumn: "user_id" }));

    expect(result).to.equal(text.replace(`includes: ["a"]\n`, `includes: ["a"]\nownerColumn: user_id\n`));
  });

  it("takes the comment of the import away with its field, and no other comment", () => {
    expect(without("the key")).not.to.contain("# the key");
    expect(without("another")).to.contain("# the key");
  });
});

describe("replaceComment", () => {
  it("replaces the comment that the import wrote, and no other", () => {
    const changed = replaceComment(text, "fields.id", { before: ["the key"], after: ["one", "two"] });
    const kept = replaceComment(text, "fields.id", { before: ["something"], after: ["one"] });
    const head = replaceComment(text, undefined, { before: ["head"], after: ["head", "more"] });

    expect(changed).to.contain("\n    # one\n    # two\n    id:    {");
    expect(changed).not.to.contain("the key");
    expect(kept).to.equal(text);
    expect(head).to.equal(text.replace("# head\n", "# head\n# more\n"));
  });
});

describe("editYaml, of a text with an alias", () => {
  it("writes the value of an alias when its anchor is removed", () => {
    const given = "fields:\n  a: &time { type: DateTime }\n  b: *time\n";
    const after = { fields: { b: { type: "DateTime" } } };

    const result = editYaml({ text: given, before: parse(given) as Data, after, comments: {} });

    expect(result).to.equal("fields:\n  b: { type: DateTime }\n");
  });
});

describe("inOneLine", () => {
  const texts = [
    ..."a|a, b|it's|null|1|1.0|| x |a: b|#x|a #b|]|{|-|- a|?|*a|&b|!t|%|@|`|~|0x1F|1e3|.inf|true|a:|:a|>|2020-01-01|größe 😀".split(
      "|",
    ),
    "two\nlines",
    '\\n"q"',
    "\u0085\u2028",
    "\t",
    `${"long ".repeat(100)}end`,
  ];
  for (const value of texts)
    it(`keeps ${JSON.stringify(value).slice(0, 30)} as a key, a value and an item`, () => {
      const line = inOneLine({ k: value, [`_${value}`]: 1, list: [value] });

      expect(line).not.to.contain("\n");
      expect(parse(line)).to.deep.equal({ k: value, [`_${value}`]: 1, list: [value] });
    });
});
