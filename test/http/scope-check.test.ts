import { readFileSync } from "node:fs";
import { expect } from "chai";
import { apiSections } from "../../src/config/contradictions.ts";
import { guardRoutes, scopeTable } from "../../src/http/scope-check.ts";
import { createRouter } from "../../src/http/state.ts";

/**
 * Returns the requests of the documentation's table with their scopes, `<name>:…` as `resource`.
 */
function documented(): Readonly<Record<string, string>> {
  const page = readFileSync("docs/authentication.md", "utf8");
  const [table = ""] = (page.split("<!-- scopes: held to")[1] ?? "").split("\n\n");
  const rows = [...table.matchAll(/^\| (.*?) \| (.*?) \|$/gm)].slice(1);
  return Object.fromEntries(
    rows.flatMap(([, requests = "", needs = ""]) => {
      let methods: readonly string[] = [];
      return [...requests.matchAll(/`(?:([A-Z]+) ?)?(\/svc-api\S*)?`/g)].flatMap(([, method, path]) => {
        if (method !== undefined) methods = [...methods, method];
        if (path === undefined) return [];
        const below = path.replace("/svc-api", "").replaceAll(/\{(\w+)\}/g, ":$1");
        const all = methods.map((one) => [`${one} ${below}`, needOf(needs)]);
        methods = [];
        return all;
      });
    }),
  );
}

function needOf(text: string): string {
  if (text.includes("<name>")) return "resource";
  const [, plain] = /^`(\w+)`/.exec(text) ?? [];
  // The route itself checks the scopes of a new token.
  return plain ?? "any";
}

describe("scopeTable", () => {
  it("is that of docs/authentication.md", () => {
    const code = Object.entries(scopeTable).map(([key, need]) => [key.replace("* ", "GET "), need]);

    expect(documented()).to.deep.equal(Object.fromEntries(code));
  });
});

describe("apiSections", () => {
  it("are the first parts of all paths, which the console must not use", () => {
    const parts = Object.keys(scopeTable).map((key) => key.split("/")[1]);

    expect(apiSections).to.have.members([...new Set([...parts, "docs"])]);
  });
});

describe("guardRoutes", () => {
  const options = { routePrefix: "/svc-api", isAdminSomewhere: () => false };

  it("refuses to start with a route that is not in the table", () => {
    const router = createRouter("/svc-api");
    router.get("/secrets", (ctx) => void (ctx.body = {}));

    expect(() => guardRoutes(router, options)).to.throw(
      "The route GET /secrets is not in the table of scopes.",
    );
  });

  it("refuses a method that is not in the table", () => {
    const router = createRouter("/svc-api");
    router.delete("/users/:id", (ctx) => void (ctx.body = {}));

    expect(() => guardRoutes(router, options)).to.throw("The route DELETE /users/:id");
  });
});
