import { expect } from "chai";
import { mkdir } from "node:fs/promises";
import type { Locator, Page } from "playwright-core";
import type { HttpServer } from "../../src/http/server.ts";
import { startBrowser, type TestBrowser, type WatchedPage } from "../support/browser.ts";
import { call } from "../support/http.ts";
import { startService, type TestService, type TestUser } from "../support/service.ts";
import { documentOf } from "./documents.ts";
import { startOpenApiServer } from "./openapi-server.ts";

/** Pictures for the documentation are written only on request: `TEST_PICTURES=1`. */
async function picture(shown: Page | Locator, name: string): Promise<void> {
  if (process.env["TEST_PICTURES"] === undefined) return;
  await mkdir("docs/pictures", { recursive: true });
  await shown.screenshot({ path: `docs/pictures/${name}.png` });
}

/** Returns an operation on the list of customers. */
function operationOf(page: Page, method: string): Locator {
  return page.locator(`.opblock-${method}`, { has: page.locator('[data-path="/resources/customers"]') });
}

describe("GET /docs, in a browser", () => {
  let service: TestService;
  let browser: TestBrowser;
  let admin: TestUser;
  before(async () => {
    [service, browser] = await Promise.all([startService({ mode: "servers" }), startBrowser()]);
    admin = await service.createUser({ isAdmin: true });
    await admin.request("POST", "/resources/customers", { name: "Grace", email: "grace@example.com" });
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  const opened: WatchedPage[] = [];
  afterEach(async () => {
    for (const watched of opened.splice(0)) await watched.close();
  });

  async function openWith(token: string): Promise<WatchedPage> {
    const watched = await browser.open(new URL(service.baseUrl).origin);
    opened.push(watched);
    await watched.page.goto(`${service.baseUrl}/docs`);
    await watched.page.getByLabel("Token").fill(token);
    await watched.page.getByRole("button", { name: "Open" }).click();
    return watched;
  }

  function expectNoFaults({ faults, requests }: WatchedPage): void {
    const { origin } = new URL(service.baseUrl);
    expect(faults).to.deep.equal([]);
    expect(requests.filter((url) => !url.startsWith(`${origin}/`) && !url.startsWith("data:"))).to.deep.equal(
      [],
    );
  }

  it("refuses a token that is not valid, and shows nothing", async () => {
    const watched = await openWith("svc_wrong");

    await watched.page.getByText("The token is not valid.").waitFor();
    expect(await watched.page.locator(".swagger-ui").count()).to.equal(0);
    expectNoFaults(watched);
  });

  it("lists every resource, and the other parts of the service", async () => {
    const watched = await openWith(admin.token);
    const { page } = watched;

    await page.locator(".opblock-tag").first().waitFor();
    const tags = await page
      .locator(".opblock-tag")
      .evaluateAll((all) => all.map((one) => one.getAttribute("data-tag")));
    expect(tags).to.include.members([
      "customers",
      "orders",
      "tasks",
      "Webhooks",
      "Deliveries",
      "Tokens",
      "Users",
      "Service",
    ]);
    await picture(page, "openapi-resources");
    expectNoFaults(watched);
  });

  it("sends requests with the token, and shows a 422", async () => {
    const watched = await openWith(admin.token);
    const { page } = watched;
    await page.locator('.opblock-tag[data-tag="customers"]').click();

    const list = operationOf(page, "get");
    await list.locator(".opblock-summary-control").click();
    await list.getByRole("button", { name: "Try it out" }).click();
    await list.getByRole("button", { name: "Execute" }).click();
    await list.locator(".live-responses-table").getByText("grace@example.com").waitFor();
    await list.locator(".opblock-summary-control").click();

    const create = operationOf(page, "post");
    await create.locator(".opblock-summary-control").click();
    await create.getByRole("button", { name: "Try it out" }).click();
    await create.locator("textarea.body-param__text").fill('{ "name": "Ada" }');
    await create.getByRole("button", { name: "Execute" }).click();
    const answer = create.locator(".live-responses-table");
    await answer.getByText("The email field is required.").first().waitFor();
    expect(await answer.locator(".response .response-col_status").first().innerText()).to.match(/^422/);
    await picture(answer, "openapi-refusal");
    expectNoFaults(watched);
  });

  it("stores no token: a reload asks for it again", async () => {
    const { page } = await openWith(admin.token);
    await page.locator(".opblock-tag").first().waitFor();

    const kept = await page.evaluate(
      "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])",
    );
    await page.reload();

    expect(kept).to.equal('[{},{},""]');
    await page.getByLabel("Token").waitFor();
  });

  it("opens without a token when the document is public", async () => {
    const document = await documentOf();
    const server: HttpServer = await startOpenApiServer("public", () => document);
    try {
      const origin = `http://127.0.0.1:${server.port}`;
      const { page, faults } = await browser.open(origin);
      await page.goto(`${origin}/svc-api/docs`);

      await page.locator(".opblock-tag").first().waitFor();
      expect(faults).to.deep.equal([]);
    } finally {
      await server.close({ limitMs: 0 });
    }
  });
});

describe("GET /docs", () => {
  let server: HttpServer;
  before(async () => {
    server = await startOpenApiServer("token", () => ({}));
  });
  after(() => server?.close({ limitMs: 0 }));

  const get = (path: string, headers = {}, method = "GET"): ReturnType<typeof call> =>
    call(server.port, `/svc-api/docs${path}`, { headers, method });

  it("needs no token, and lets the page load its own files only", async () => {
    const { status, headers, text } = await get("");

    expect(status).to.equal(200);
    expect(headers["content-type"]).to.equal("text/html; charset=utf-8");
    expect(headers["content-security-policy"]).to.include(
      "default-src 'none'; script-src 'self'; style-src 'self';",
    );
    expect(headers["content-security-policy"]).not.to.match(/unsafe|http|\*/);
    expect([...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url]) => url)).to.deep.equal([
      "data:,",
      "docs/swagger-ui.css",
      "docs/page.css",
      "docs/swagger-ui-bundle.js",
      "docs/page.js",
    ]);
  });

  it("serves each file with an entity tag, and 304 to clients that have it", async () => {
    for (const file of ["", "/page.js", "/page.css", "/swagger-ui.css", "/swagger-ui-bundle.js"]) {
      const { status, headers } = await get(file, {}, "HEAD");
      const again = await get(file, { "If-None-Match": headers["etag"] as string });

      expect(status).to.equal(200);
      expect(headers["cache-control"]).to.equal("public, no-cache");
      expect(again).to.include({ status: 304, text: "" });
    }
  });

  it("leads to no other file", async () => {
    const token = { Authorization: "Bearer ada" };
    const paths = [
      "/LICENSE",
      "/page.html",
      "/..%2f..%2fbin%2fsvc.js",
      "/../../bin/svc.js",
      "/%2e%2e/svc.js",
      "/page.js%00",
    ];
    for (const path of paths) expect((await get(path, token)).status, path).to.equal(404);
    expect((await get("/page.html")).status).to.equal(401);
  });

  it("redirects a trailing slash to the page", async () => {
    const { status, headers } = await get("/");

    expect({ status, location: headers["location"] }).to.deep.equal({ status: 302, location: "../docs" });
  });
});
