import { expect } from "chai";
import { isShownAsCaptured } from "../../src/events/event-presenter.ts";
import type { Definition, Field } from "../../src/mapping/definition.ts";

describe("isShownAsCaptured", () => {
  const text = { type: "String", isList: false } as Field;
  for (const [what, parts, isShown] of [
    ["of plain fields", {}, true],
    ["with a transform", { transform: { kind: "object", entries: [] } }, false],
    ["with a transform in code", { code: { transform: (row: unknown) => row } }, false],
    ["with JSON, of which the text may be shorter", { fields: [text, { ...text, type: "Json" }] }, false],
    ["with a list, likewise", { fields: [{ ...text, isList: true }] }, false],
  ] as const)
    it(`is ${isShown} of a resource ${what}`, () => {
      const definition = { code: {}, fields: [text], ...parts } as unknown as Definition;
      expect(isShownAsCaptured(definition)).to.equal(isShown);
    });
});
