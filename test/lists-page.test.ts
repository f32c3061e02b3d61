import { expect } from "chai";
import { readFileSync } from "node:fs";
import { mostValues } from "../src/querying/filter-values.ts";
import { mostConditions } from "../src/querying/filters.ts";
import { operators } from "../src/querying/operators.ts";
import { mostParameters } from "../src/http/query-string.ts";
import { longestPath } from "../src/mapping/shown.ts";

const page = readFileSync(new URL("../docs/lists.md", import.meta.url), "utf8");
const section = (title: string): string => page.split(/^## /m).find((one) => one.startsWith(title)) ?? "";

describe("docs/lists.md", () => {
  it("has every operator, and no other", () => {
    const rows = section("Operators").match(/^\| `[^|]*/gm) ?? [];
    const named = rows.flatMap((row) => [...row.matchAll(/`(\w+)`/g)].map(([, name]) => name));

    expect(named).to.have.members([...operators]);
  });

  it("has the limits", () => {
    const limits = section("Refusals");

    for (const [what, limit] of [
      ["Parameters", mostParameters],
      ["Conditions", mostConditions],
      ["Values of a condition", mostValues],
      ["Characters of a path", longestPath],
    ] as const)
      expect(limits, what).to.match(new RegExp(`^\\| ${what} \\| ${limit.toLocaleString("en")}\\b`, "m"));
  });
});
