import { expect } from "chai";
import type { Page } from "playwright-core";
import { audience, startIssuer, type Issuer } from "../support/issuer.ts";
import { request, type TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";
import { testJwtSettings } from "../users/test-jwt-settings.ts";
import { expectSound, picture, startConsole, widths, type ConsoleScene } from "./console-scene.ts";
import { createOrder, shopResources } from "./console-shop.ts";

/** Signs in at the issuer's own pages, and consents when asked. */
async function signInAt(page: Page, login: string): Promise<void> {
  await page.locator("input[name=login]").fill(login);
  await page.locator("input[name=password]").fill("any");
  await page.locator("button[type=submit]").click();
  await page.locator("button[type=submit]", { hasText: "Continue" }).click();
}

function originOf({ service }: ConsoleScene): string {
  return new URL(service.baseUrl).origin;
}

/** Revokes the first token of the user. */
async function revoke(user: TestUser): Promise<void> {
  const { data } = (await user.request("GET", "/tokens")).body;
  expect((await user.request("DELETE", `/tokens/${data[0].id}`)).status).to.equal(204);
}

/** Returns the session as the tab has stored it. */
async function sessionIn(
  page: Page,
): Promise<{ readonly token: string; readonly refreshToken: string | null }> {
  return JSON.parse(String(await page.evaluate("sessionStorage.getItem('svc-console.session')")));
}

describe("signing in to the console", function () {
  this.timeout(240_000);
  let issuer: Issuer;
  let scene: ConsoleScene;
  let ada: TestUser;

  before(async () => {
    issuer = await startIssuer([]);
    scene = await startConsole({
      resources: shopResources,
      auth: {
        maxTokensPerUser: 100,
        jwt: testJwtSettings(issuer, {
          // The first is the audience that the console requests: a URI (RFC 8707).
          audience: [`urn:${audience}`, audience],
          clientId: "console",
        }),
      },
    });
    issuer.register({ id: "console", redirectUri: `${originOf(scene)}/console/signed-in` });
  });
  after(async () => {
    await scene?.stop();
    await issuer?.stop();
  });
  beforeEach(async () => {
    ada = await scene.service.createUser();
  });

  it("accepts a token, keeps it for the tab, and continues at the link", async () => {
    const order = await createOrder(ada);
    for (const width of widths) {
      const shown = await scene.open(null, `/resources/orders/${order.id}`, { width });
      await shown.page.getByLabel("Token").fill("svc_wrong");
      await shown.page.keyboard.press("Enter");
      await shown.page.getByText("The token is not valid here.").waitFor();
      await expectSound(shown);
      if (width === 1280) await picture(shown, "console-sign-in");
      await shown.page.getByLabel("Token").fill("svc_copied…");
      await shown.page.keyboard.press("Enter");
      await shown.page.getByText("That is no token.").waitFor();

      await shown.page.getByLabel("Token").fill(width === 1280 ? ada.token : `Bearer ${ada.token}`);
      await shown.page.keyboard.press("Enter");
      await shown.page.getByRole("heading", { name: order.reference }).waitFor();
      expect(await shown.page.evaluate("JSON.stringify({ ...localStorage }) + document.cookie")).to.equal(
        "{}",
      );
      await shown.page.reload();
      await shown.page.getByRole("heading", { name: order.reference }).waitFor();
      await expectSound(shown);
      await shown.close();
    }
  });

  it("opens again when the token is revoked, and keeps the input", async () => {
    const order = await createOrder(ada);
    const { body: other } = await ada.request("POST", "/tokens", { name: "second" });
    const shown = await scene.open(other.token, `/resources/orders/${order.id}`);
    const { page } = shown;
    await page.getByLabel("notes").fill("typed before");
    await ada.request("DELETE", `/tokens/${other.id}`);
    await page.getByRole("button", { name: "Save" }).click();

    const dialog = page.getByRole("dialog", { name: "Sign in again" });
    await dialog.getByText(/revoked/).waitFor();
    await expectSound(shown);
    await page.keyboard.press("Escape");
    await dialog.getByLabel("Token").fill(ada.token);
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "detached" });
    expect(await page.getByLabel("notes").inputValue()).to.equal("typed before");
    await page.getByText("You were signed out, so this was not done.").waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved.").waitFor();

    expect((await ada.request("GET", `/resources/orders/${order.id}`)).body.notes).to.equal("typed before");
    await shown.close();
  });

  it("shows another user none of the previous data", async () => {
    const order = await createOrder(ada);
    const bob = await scene.service.createUser({ name: "Bob" });
    const shown = await scene.open(ada.token, `/resources/orders/${order.id}`);
    const { page } = shown;
    await page.getByLabel("notes").fill("a secret of Ada's");
    await revoke(ada);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("dialog").getByLabel("Token").fill(bob.token);
    await page.keyboard.press("Enter");

    await page.getByRole("heading", { name: "Overview" }).waitFor();
    expect(await page.content()).not.to.contain("a secret of Ada's");
    await shown.close();
  });

  it("gives the token to no other tab", async () => {
    const shown = await scene.open(ada.token, "/resources");
    const { page } = shown;
    await page.getByRole("button", { name: /Ada/ }).click();
    const opened = page.context().waitForEvent("page");
    await page.getByRole("menuitem", { name: "API reference" }).click();
    const reference = await opened;
    await reference.waitForURL("**/docs");

    expect(await reference.evaluate("JSON.stringify({ ...sessionStorage })")).to.equal("{}");
    await shown.close();
  });

  it("signs out, and forgets the token", async () => {
    const shown = await scene.open(ada.token, "/resources");
    const { page } = shown;
    await page.getByRole("button", { name: /Ada/ }).click();
    await page.getByRole("menuitem", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in to svc" }).waitFor();

    expect(await page.evaluate("JSON.stringify({ ...sessionStorage })")).to.equal("{}");
    await until(() => page.evaluate("/^Sign in with/.test(document.activeElement.textContent)"), {
      what: "the focus is at the sign-in",
    });
    await expectSound(shown);
    await shown.close();
  });

  it("signs out over the page too, and clears the data", async () => {
    const { reference } = await createOrder(ada);
    const { body: other } = await ada.request("POST", "/tokens", { name: "second" });
    const shown = await scene.open(other.token, "/resources/orders");
    const { page } = shown;
    await page.getByText(reference).first().waitFor();
    await ada.request("DELETE", `/tokens/${other.id}`);
    await page.getByRole("button", { name: "amount", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in to svc" }).waitFor();

    await page.route("**/resources/orders?*", (route) => route.abort());
    await page.getByLabel("Token").fill(ada.token);
    await page.keyboard.press("Enter");
    await page.getByText("The service does not answer").first().waitFor();
    await page.goBack();
    await page.getByText("The service does not answer").first().waitFor();
    expect(await page.getByText(reference).count()).to.equal(0);
    await shown.close();
  });

  it("goes through the issuer by authorization code with PKCE, and comes back", async () => {
    const shown = await scene.open(null, "/resources/orders?sort=id");
    const { page } = shown;
    const asked: URL[] = [];
    page.on("request", (sent) => {
      if (sent.url().startsWith(`${issuer.url}/auth`)) asked.push(new URL(sent.url()));
    });
    await page.getByRole("button", { name: /^Sign in with 127/ }).click();
    await signInAt(page, `subject-${ada.id}`);
    await page.getByRole("heading", { name: "orders" }).waitFor();

    expect(page.url()).to.equal(`${originOf(scene)}/console/resources/orders?sort=id`);
    expect(asked[0]?.searchParams.get("code_challenge_method")).to.equal("S256");
    const stored = await sessionIn(page);
    expect(stored.token.split(".")).to.have.length(3);
    const who = await request({ url: `${scene.service.baseUrl}/whoami`, method: "GET", token: stored.token });
    expect(who.status).to.equal(200);
    expect(stored.refreshToken).to.be.a("string");

    // A token that the API refuses is renewed, without a message.
    await page.evaluate(
      `sessionStorage.setItem("svc-console.session", JSON.stringify({ ...${JSON.stringify(stored)}, token: "spent" }))`,
    );
    await page.reload();
    await page.getByText("There are no orders that you may see").waitFor();
    const renewed = await sessionIn(page);
    expect(renewed.token.split(".")).to.have.length(3);
    await shown.close();
  });

  it("renews a token repeatedly when the issuer gives its refresh token once", async () => {
    const shown = await scene.open(null, "/resources");
    const { page } = shown;
    await page.getByRole("button", { name: /^Sign in with 127/ }).click();
    await signInAt(page, `often-${ada.id}`);
    await page.getByRole("heading", { name: "Resources" }).waitFor();
    const stored = await sessionIn(page);
    await page.route(`${issuer.url}/token`, async (route) => {
      const response = await route.fetch();
      const { refresh_token: _kept, ...tokens } = (await response.json()) as Record<string, unknown>;
      await route.fulfill({ response, json: tokens });
    });
    await page.evaluate(
      `sessionStorage.setItem("svc-console.session", JSON.stringify({ ...${JSON.stringify(stored)}, token: "spent" }))`,
    );
    await page.reload();
    await until(async () => (await sessionIn(page)).token !== "spent", { what: "another token" });

    expect((await sessionIn(page)).refreshToken).to.equal(stored.refreshToken);
    await shown.close();
  });

  it("reports that the user is disabled, whose new token is refused too, without further requests to the issuer", async () => {
    const admin = await scene.service.createUser({ isAdmin: true });
    const subject = `disabled-${ada.id}`;
    expect((await admin.request("PUT", `/users/${ada.id}`, { subject })).status).to.equal(200);
    const shown = await scene.open(null, "/resources");
    const { page } = shown;
    await page.getByRole("button", { name: /^Sign in with 127/ }).click();
    await signInAt(page, subject);
    await page.getByRole("heading", { name: "Resources" }).waitFor();
    let renewals = 0;
    page.on("request", (sent) => {
      if (sent.url() === `${issuer.url}/token` && sent.method() === "POST") renewals += 1;
    });
    expect((await admin.request("PUT", `/users/${ada.id}`, { is_disabled: true })).status).to.equal(200);
    await page.getByRole("link", { name: "Webhooks" }).click();

    await page
      .getByRole("dialog", { name: "Sign in again" })
      .getByText(/Your user is disabled/)
      .waitFor();
    // Another request may have been sent with the new token before it was refused.
    expect(renewals).to.be.within(1, 2);
    await shown.close();
  });

  it("says why the API refuses the user whom the issuer sends back", async () => {
    const admin = await scene.service.createUser({ isAdmin: true });
    const subject = `refused-${ada.id}`;
    const changes = { subject, is_disabled: true };
    expect((await admin.request("PUT", `/users/${ada.id}`, changes)).status).to.equal(200);
    const shown = await scene.open(null, "/resources");
    const { page } = shown;
    await page.getByRole("button", { name: /^Sign in with 127/ }).click();
    await signInAt(page, subject);

    await page.getByRole("heading", { name: "The sign-in did not work" }).waitFor();
    await page.getByText("Your user is disabled. An admin can enable it.").waitFor();
    await shown.close();
  });

  it("reports that the issuer requires https, which browsers demand", async () => {
    const shown = await scene.open(null, "/");
    await shown.page.evaluate("Object.defineProperty(window, 'isSecureContext', { value: false })");

    await shown.page.getByRole("button", { name: /^Sign in with/ }).click();

    await shown.page.getByText("Open the console over https, or sign in with a token.").waitFor();
    expect(new URL(shown.page.url()).pathname).to.equal("/console/");
    await expectSound(shown);
    await shown.close();
  });

  it("reports an issuer without a discovery document, and requests it again", async () => {
    const shown = await scene.open(null, "/resources");
    const { page } = shown;
    const document = "**/.well-known/openid-configuration";
    const press = (): Promise<void> => page.getByRole("button", { name: /^Sign in with 127/ }).click();
    await page.route(document, (route) => route.fulfill({ status: 503, json: { error: "away" } }));
    await press();
    await page.getByText("The issuer answers with the status 503").waitFor();
    await page.unroute(document);
    await page.route(document, (route) => route.fulfill({ json: { issuer: issuer.url } }));
    await press();
    await page.getByText("The issuer names no").waitFor();
    await page.unroute(document);
    await press();
    await signInAt(page, `again-${ada.id}`);
    await page.getByRole("heading", { name: "Resources" }).waitFor();
    await shown.close();
  });

  it("uses a separate window for the issuer when input could be lost", async () => {
    const admin = await scene.service.createUser({ isAdmin: true });
    const subject = `window-${ada.id}`;
    expect((await admin.request("PUT", `/users/${ada.id}`, { subject })).status).to.equal(200);
    const order = await createOrder(ada);
    const shown = await scene.open(ada.token, `/resources/orders/${order.id}`);
    const { page } = shown;
    await page.getByLabel("notes").fill("typed before");
    await revoke(ada);
    await page.getByRole("button", { name: "Save" }).click();

    const openWindow = async (): Promise<Page> => {
      const opened = page.context().waitForEvent("page");
      await page.getByRole("button", { name: /^Sign in with 127/ }).click();
      return await opened;
    };
    // A window that is closed halfway does not block another.
    await (await openWindow()).close();
    const popup = await openWindow();
    expect(await page.getByRole("dialog").getByRole("alert").count()).to.equal(0);
    await signInAt(popup, subject);
    await until(() => popup.isClosed(), { what: "the window closes by itself" });
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await page.getByLabel("notes").inputValue()).to.equal("typed before");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved.").waitFor();
    await shown.close();
  });

  it("refuses a code that was not requested in this tab", async () => {
    const shown = await scene.open(null, "/signed-in?code=abc&state=of-somebody-else");
    await shown.page.getByText("This sign-in was not begun in this tab.").waitFor();
    await expectSound(shown);
    await shown.page.getByRole("button", { name: "Begin again" }).click();
    await shown.page.getByRole("heading", { name: "Sign in to svc" }).waitFor();
    await shown.close();
  });
});
