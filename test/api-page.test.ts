import { expect } from "chai";
import { readFileSync } from "node:fs";

const pageOf = (name: string): string => readFileSync(new URL(`../docs/${name}.md`, import.meta.url), "utf8");
const rowsOf = (page: string): readonly string[] => page.match(/^\| `[A-Z].*?\|/gm) ?? [];

describe("docs/api.md", () => {
  // The table of the page on access is compared with the routes of the service.
  it("has every request of the page on access", () => {
    const requests = rowsOf(pageOf("access")).map((row) => row.slice(3, row.lastIndexOf("`")));
    const named = rowsOf(pageOf("api")).flatMap((row) => {
      const methods = row.match(/\b[A-Z]{3,}\b/g) ?? [];
      const paths = row.match(/\/[\w{}/.-]+/g) ?? [];
      return paths.flatMap((path) => methods.map((method) => `${method} ${path}`));
    });

    expect(requests.length).to.be.greaterThan(40);
    expect(requests.filter((request) => !named.includes(request))).to.deep.equal([]);
  });
});
