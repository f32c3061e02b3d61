import { expect } from "chai";
import type { RuleSpec } from "../../src/validation/syntax.ts";
import { parseRules, ruleFaults } from "../../src/validation/syntax.ts";

describe("parseRules", () => {
  const cases: readonly [spec: RuleSpec, ...rules: readonly (readonly [string, ...string[]])[]][] = [
    ["required|string|max:40", ["required"], ["string"], ["max", "40"]],
    [" required | max: 40 ", ["required"], ["max", "40"]],
    [""],
    ["in:a, b,c", ["in", "a", "b", "c"]],
    ['in:"a,b","say ""hi""",c', ["in", "a,b", 'say "hi"', "c"]],
    ["in:a,", ["in", "a", ""]],
    ["regex:/^a,b:c$/", ["regex", "/^a,b:c$/"]],
    ["date_format:H:i", ["date_format", "H:i"]],
    [["nullable", "string", { max: 2000 }], ["nullable"], ["string"], ["max", "2000"]],
    [[{ in: ["a", "b|c", 1, true, null] }], ["in", "a", "b|c", "1", "true", "null"]],
    [["in:a|b"], ["in", "a|b"]],
    [[{ required: true }, { string: null }], ["required"], ["string"]],
    [[{ min: 1, max: 2 }], ["min", "1"], ["max", "2"]],
  ];
  for (const [spec, ...rules] of cases) {
    it(`reads ${JSON.stringify(spec)}`, () => {
      expect(parseRules(spec)).to.deep.equal(rules.map(([name, ...args]) => ({ name, args })));
    });
  }

  it("throws on a fault", () => {
    expect(() => parseRules("nonsense")).to.throw('there is no rule "nonsense"');
  });
});

describe("ruleFaults", () => {
  const cases: readonly [spec: unknown, ...messages: readonly string[]][] = [
    ["required|string|between:1,2|uuid:4|array:a,b|after:today|after:-1 day|after:starts_at|gt:other.*.x"],
    ["requird", 'there is no rule "requird"; did you mean "required"?'],
    [
      "toString|constructor|__proto__",
      'there is no rule "toString"; did you mean "string"?',
      'there is no rule "constructor"',
      'there is no rule "__proto__"',
    ],
    ["max", "max: needs 1 argument, 0 given"],
    ["in:", "in: needs 1 argument, 0 given"],
    ["between:1", "between: needs 2 arguments, 1 given"],
    ["between:1,2,3", "between: takes at most 2 arguments, 3 given"],
    ["required:yes", "required: takes no argument, 1 given"],
    ["max:many", 'max: "many" must be a number'],
    ["digits:1.5", 'digits: "1.5" must be a whole number'],
    ["multiple_of:0", 'multiple_of: "0" must be a number other than 0'],
    ["integer:loose", 'integer: "loose" must be one of strict'],
    ["email:dns", 'email: "dns" must be one of rfc, strict, filter, filter_unicode'],
    ["uuid:9", 'uuid: "9" must be one of 1, 2, 3, 4, 5, 6, 7, 8'],
    ["same:a b", 'same: "a b" must be the name of a field'],
    ["required_if:kind", "required_if: needs 2 arguments, 1 given"],
    ["exclude_if:a b,c", 'exclude_if: "a b" must be the name of a field'],
    ["after:2026-02-30", 'after: "2026-02-30" must be a date or the name of a field'],
    ["date_format:Q", 'date_format: "Q" must be a date format of known letters'],
    ["date_format:Y-Y", 'date_format: "Y-Y" must be a date format of known letters'],
    [[{ in: { a: 1 } }], "in: must be a value or a list of values"],
    [[5], "must be a rule, not 5"],
    [5, "must be a text of rules or a list of rules"],
    [
      "regex:/(/",
      'regex: "/(/" must be a regular expression (Invalid regular expression: /(/u: Unterminated group; one that contains | needs the list form)',
    ],
    [
      "regex:/^(?!x)/",
      'regex: "/^(?!x)/" must be a regular expression (invalid or unsupported Perl syntax: `(?!`; look-around, back references and repeats beyond 1000 cannot be matched in linear time; one that contains | needs the list form)',
    ],
    ["nonsense|max:x", 'there is no rule "nonsense"', 'max: "x" must be a number'],
  ];
  for (const [spec, ...messages] of cases) {
    it(`finds ${messages.length} in ${JSON.stringify(spec)}`, () => {
      expect(ruleFaults({ a: spec as RuleSpec })).to.deep.equal(
        messages.map((message) => ({ field: "a", message })),
      );
    });
  }

  it("requires keys to name a field, nested with dots", () => {
    const specs = {
      "a.b": "string",
      "tags.*": "string",
      "items.*.x": "string",
      "a b": "string",
      "*": "string",
      "a..b": "string",
    };

    expect(ruleFaults(specs).map(({ field }) => field)).to.deep.equal(["a b", "*", "a..b"]);
  });
});
