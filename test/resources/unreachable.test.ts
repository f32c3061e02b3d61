import { expect } from "chai";
import type { Definition } from "../../src/mapping/definition.ts";
import { unreachableFields } from "../../src/resources/unreachable.ts";
import { definition, field, keyField } from "../support/definitions.ts";

const things = definition({
  name: "things",
  model: "Thing",
  fields: [
    keyField(),
    field("name", "String"),
    field("tags", "String", { isList: true }),
    field("kind", "String", { default: { kind: "literal", value: "a" } }),
    field("user_id", "Int"),
    field("made_at", "DateTime", { default: { kind: "now" } }),
    field("changed_at", "DateTime", { isUpdatedAt: true }),
  ],
  ownerColumn: "user_id",
});

const namesOf = (changes: Partial<Definition>): readonly string[] => {
  const names: string[] = [];
  const remark = (path: readonly (string | number)[], message: string): string => {
    names.push(String(path[1]));
    return message;
  };
  unreachableFields({ ...things, remark, ...changes });
  return names;
};

describe("unreachableFields", () => {
  for (const [what, changes, names] of [
    ["nothing with derived rules", {}, []],
    ["nothing that the rules of update reach", { createRules: { name: "required" } }, []],
    [
      "what a create needs and only the rules of update reach",
      { createRules: { tags: "array" }, updateRules: { name: "string", kind: "string", tags: "array" } },
      ["name"],
    ],
    [
      "no such field of a table of others, which may have a default",
      { createRules: { tags: "array", kind: "string" }, updateRules: { name: "string" }, isManaged: false },
      [],
    ],
    [
      "what neither reaches, and not what is filled in",
      { createRules: { name: "required" }, updateRules: { "tags.*": "string" } },
      ["kind"],
    ],
    [
      "what only the rules of an operation that is off reach",
      { createRules: { name: "required" }, supportsUpdate: false },
      ["tags", "kind"],
    ],
    [
      "nothing of a resource that takes no writes",
      { createRules: {}, updateRules: {}, supportsCreate: false, supportsUpdate: false },
      [],
    ],
    [
      "what the rules of a code module leave out",
      { code: { createRules: () => ({ name: "required", tags: "array" }), updateRules: () => ({}) } },
      ["kind"],
    ],
    [
      "nothing when a code module throws",
      {
        code: {
          createRules: () => {
            throw new Error("no");
          },
        },
      },
      [],
    ],
  ] as const) {
    it(`names ${what}`, () => {
      expect(namesOf(changes)).to.deep.equal(names);
    });
  }
});
