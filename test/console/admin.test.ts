import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import type { TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";
import {
  expectSound,
  expectSoundAtAnyWidth,
  hostile,
  picture,
  sceneOfSuite,
  type ConsolePage,
} from "./console-scene.ts";
import { createOrder, shopResources, subscribeOrders } from "./console-shop.ts";

/** One attempt of each delivery. */
const resources = {
  ...shopResources,
  "orders.yaml":
    shopResources["orders.yaml"]?.replace("webhookMaxAttempts: 2", "webhookMaxAttempts: 1") ?? "",
  "marks.yaml": "{ name: marks, model: Mark, triggers: [], fields: { id: { type: Int, id: true } } }",
};

/** Whether the middle of the alert of a group is visible. */
const isAlertSeen = `(() => {
  const alert = document.querySelector("fieldset [role=alert]");
  const { left, top, width, height } = alert.getBoundingClientRect();
  return alert.contains(document.elementFromPoint(left + width / 2, top + height / 2));
})()`;

describe("the console's pages for admins", function () {
  this.timeout(180_000);
  const scene = sceneOfSuite({ resources });
  let admin: TestUser;
  let user: TestUser;
  const [script] = hostile;

  before(async () => {
    admin = await scene.service.createUser({ isAdmin: true, name: "Ada" });
    user = await scene.service.createUser({ name: script });
  });

  async function on(path: string, act: (shown: ConsolePage) => Promise<void>): Promise<void> {
    const shown = await scene.open(admin.token, path);
    await act(shown);
    await expectSound(shown);
  }

  it("are only for tokens for a user who is no admin", async () => {
    const shown = await scene.open(user.token, "/admin/users");
    await shown.page.getByText("This is for admins").waitFor();
    await expectSound(shown);
    await shown.page.getByRole("link", { name: "Your own tokens" }).click();
    await shown.page.getByRole("heading", { name: "Your tokens" }).waitFor();
    await shown.page.getByRole("button", { name: "Revoke test" }).waitFor();
    await expectSound(shown);
  });

  it("fit any window, with hostile texts in them", async () => {
    for (const [path, title] of [
      ["/admin", "Users"],
      [`/admin/users/${user.id}`, script],
      ["/admin/users/999999", "User"],
      ["/admin/tokens", "Your tokens"],
      ["/admin/audit", "Audit trail"],
      ["/admin/configuration", "Configuration"],
      ["/admin/configuration/orders", "orders"],
      ["/admin/configuration/none", "none"],
      ["/admin/dead-letters", "Dead letters"],
    ] as const) {
      const shown = await scene.open(admin.token, path);
      await shown.page.getByRole("heading", { name: title, exact: true, level: 1 }).waitFor();
      await shown.page.locator(".loading").waitFor({ state: "detached" });
      await expectSoundAtAnyWidth(shown);
      await shown.page.setViewportSize({ width: 390, height: 900 });
      const parts = shown.page.getByRole("navigation", { name: "Admin" });
      const { x = 0, width = 0 } = (await parts.locator("[aria-current]").boundingBox()) ?? {};
      expect(x + width).to.be.within(1, 390);
    }
  });

  it("show more than long names on a telephone", async () => {
    await scene.service.createUser({ name: "Ada ".repeat(60).trim() });
    const { page } = await scene.open(admin.token, "/admin/users", { width: 390 });
    const second = page.getByRole("columnheader", { name: "E-mail" });
    await second.waitFor();
    expect((await second.boundingBox())?.x).to.be.within(1, 300);
  });

  it("create a user, with the server's messages at their fields, and change, disable and enable one", async () => {
    await on("/admin/users", async ({ page }) => {
      await page.getByRole("button", { name: "New user" }).click();
      // The text beside it is longer than its line.
      expect((await page.getByRole("checkbox", { name: /^Admin/ }).boundingBox())?.width).to.equal(16);
      await page.getByLabel("Name", { exact: true }).fill("Grace");
      await page.getByLabel("E-mail", { exact: true }).fill(user.email);
      await page.getByRole("button", { name: "Create the user" }).click();
      await page.getByText("The email has already been taken.").waitFor();
      await page.getByLabel("E-mail", { exact: true }).fill("grace@example.com");
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "Grace", level: 1 }).waitFor();
      await page.getByText("Grace has nothing to call the API with.").waitFor();

      await page.getByRole("button", { name: "Change" }).click();
      await page.getByLabel("Name", { exact: true }).fill("Grace Hopper");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("heading", { name: "Grace Hopper", level: 1 }).waitFor();

      await page.getByRole("button", { name: "Disable", exact: true }).click();
      await page.getByText("Their tokens get 401 at once").waitFor();
      await page.getByRole("button", { name: "Disable the user" }).click();
      await page.getByText("disabled", { exact: true }).first().waitFor();
      await page.getByRole("button", { name: "Enable", exact: true }).click();
      await page.getByRole("button", { name: "Enable the user" }).click();
      await page.getByRole("button", { name: "Disable", exact: true }).waitFor();
    });
    const { body } = await admin.request("GET", "/users?per_page=100");
    const grace = body.data.find(({ email }: { email: string }) => email === "grace@example.com");
    expect(grace).to.include({ name: "Grace Hopper", is_disabled: false, is_admin: false });
  });

  it("do not restore a right that another admin has taken away meanwhile", async () => {
    const other = await scene.service.createUser({ isAdmin: true, name: "Eve" });
    await on(`/admin/users/${other.id}`, async ({ page }) => {
      await page.getByRole("button", { name: "Change" }).click();
      await page.getByLabel("Name", { exact: true }).fill("Eve Smith");
      expect((await admin.request("PUT", `/users/${other.id}`, { is_admin: false })).status).to.equal(200);
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("heading", { name: "Eve Smith", level: 1 }).waitFor();
    });
    const { body } = await admin.request("GET", `/users/${other.id}`);
    expect(body).to.include({ name: "Eve Smith", is_admin: false });
  });

  it("create a token that ends with the session's token, and announce it", async () => {
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    const { body } = await admin.request("POST", "/tokens", { name: "an hour", expires_at });
    const shown = await scene.open(body.token, "/admin/tokens");
    const { page } = shown;
    await page.getByRole("button", { name: "New token" }).first().click();
    await page.getByLabel("Name", { exact: true }).fill("as long");
    await page.getByLabel("Expires").selectOption("when your own token does");
    await page.getByRole("button", { name: "Create the token" }).click();
    await page.getByRole("button", { name: "I have stored it" }).click();
    await page.getByRole("button", { name: "Revoke as long" }).waitFor();
    const made = (await admin.request("GET", "/tokens")).body.data[0];
    expect(made).to.include({ name: "as long", expires_at: body.expires_at });
  });

  it("create a token with scopes, show it once, and revoke it", async () => {
    let token = "";
    await on(`/admin/users/${user.id}`, async (shown) => {
      const { page } = shown;
      await page.getByRole("button", { name: "New token" }).click();
      await page.getByRole("button", { name: "Create the token" }).click();
      await page.getByText("The name field is required.").waitFor();
      await page.getByLabel("Name", { exact: true }).fill("import");
      await page.getByLabel("Everything that your own token may do").uncheck();
      await page.getByRole("button", { name: "Create the token" }).click();
      await page.getByRole("group", { name: "Scopes", description: /scopes/ }).waitFor();
      // Not beyond the edge of the scopes, which scroll.
      expect(await page.evaluate(isAlertSeen)).to.equal(true);
      await page.getByRole("checkbox", { name: /^webhooks/ }).check();
      await page.getByLabel("orders:read").check();
      await page.getByLabel("Expires").selectOption("in 30 days");
      await expectSound(shown);
      await page.getByRole("button", { name: "Create the token" }).click();
      token = await page.getByRole("region", { name: "Token", exact: true }).innerText();
      const asks = page.waitForEvent("dialog");
      const back = page.evaluate("history.back()");
      await (await asks).dismiss();
      await back;
      await page.getByRole("button", { name: "I have stored it" }).click();
      await page.locator("button:focus", { hasText: "New token" }).waitFor();
      await page.getByText("orders:read").waitFor();
      expect(await page.content()).not.to.include(token);
    });
    const auth = { headers: { authorization: `Bearer ${token.trim()}` } };
    const ask = async (path: string): Promise<number> =>
      (await fetch(scene.service.baseUrl + path, auth)).status;
    expect([
      await ask("/resources/orders"),
      await ask("/webhooks"),
      await ask("/resources/customers"),
    ]).to.deep.equal([200, 200, 403]);

    await on(`/admin/users/${user.id}`, async ({ page }) => {
      await page.getByRole("button", { name: "Revoke import" }).click();
      await page.getByRole("button", { name: "Revoke the token" }).click();
      await page.getByText("revoked", { exact: true }).waitFor();
    });
    expect(await ask("/whoami")).to.equal(401);
  });

  it("show why no further token can be created, at no field", async () => {
    const busy = await scene.service.createUser({ name: "Busy" });
    for (let count = 1; count < 100; count += 1)
      expect((await busy.request("POST", "/tokens", { name: `number ${count}` })).status).to.equal(201);
    const shown = await scene.open(busy.token, "/admin/tokens");
    const { page } = shown;
    await page.getByRole("button", { name: "New token" }).first().click();
    await page.getByLabel("Name", { exact: true }).fill("one more");
    await page.getByRole("button", { name: "Create the token" }).click();

    await page.getByText("You have 100 tokens, and one user may have 100").waitFor();
    await expectSound(shown);
  });

  it("find changes in the audit trail by address, and show them", async () => {
    const other = await scene.service.createUser();
    await admin.request("PUT", `/users/${other.id}`, { name: "Renamed" });
    await on("/admin/audit?action=user", async (shown) => {
      const { page } = shown;
      await page.getByText("user.updated").first().waitFor();
      expect(await page.getByText("token.created").count()).to.equal(0);
      await page.getByLabel("Actor", { exact: true }).selectOption("user");
      const pagesSeen = (): Promise<unknown> => page.evaluate("history.length");
      const before = Number(await pagesSeen());
      await page.getByLabel("Actor id").pressSequentially(`${admin.id}`);
      await page.keyboard.press("Enter");
      await until(() => page.url().includes(`actor=user:${admin.id}`), { what: "the filter in the URL" });
      expect(await pagesSeen()).to.equal(before + 1);
      expect(await page.evaluate("document.activeElement.closest('form').textContent")).to.equal("Actor id");
      await page.getByText("Users, tokens, webhooks, keys, tables and configuration.").waitFor();
      await page
        .getByRole("button", { name: /^Details of entry/ })
        .first()
        .click();
      await page.getByRole("group", { name: "Changes" }).waitFor();
      await expectSound(shown);
      await picture(shown, "console-audit");
      await page.keyboard.press("Escape");
      await page.getByLabel("Actor id").fill("999999");
      await page.keyboard.press("Tab");
      await page.getByText("Nothing matches").waitFor();
      await page.getByLabel("Since").fill("2020-02-03T04:05");
      await page.getByLabel("Since").blur();
      await until(() => page.url().includes("since=2020-02-0"), { what: "the time in the URL" });
      await page.goBack();
      await until(async () => (await page.getByLabel("Since").inputValue()) === "", { what: "no time" });
      await page.getByRole("button", { name: "Show all" }).click();
      await page.getByText("token.created").first().waitFor();
    });
  });

  it("show the configuration in effect, without secrets, and a definition with its Prisma model", async () => {
    await on("/admin/configuration", async (shown) => {
      const { page } = shown;
      await page.getByRole("region", { name: "Settings", exact: true }).last().waitFor();
      await page.getByRole("row", { name: /^marks marks yes none / }).waitFor();
      await page.getByLabel("Search").fill("database");
      await page.getByText("webhooks.timeout").waitFor({ state: "detached" });
      await page.getByText("set, secret").waitFor();
      expect(await page.content()).not.to.include(
        new URL(scene.service.config.database.url ?? "x:").password || "postgresql://",
      );
      await picture(shown, "console-configuration");
      await page.getByRole("link", { name: "orders", exact: true }).click();
      await page.getByRole("tab", { name: "Prisma model" }).click();
      await page.getByText("model Order {").waitFor();
    });
  });

  it("show each fault of a reload in its file, and reload when there is none", async () => {
    const file = join(scene.service.config.configDir, "resources/orders.yaml");
    const text = readFileSync(file, "utf8");
    const [last = ""] = text.trimEnd().split("\n").slice(-1);
    writeFileSync(file, `${text.trimEnd()}\ncolour: "${script}"\n`);
    const line = text.trimEnd().split("\n").length + 1;

    await on("/admin/configuration", async (shown) => {
      const { page } = shown;
      const reload = page.getByRole("button", { name: "Check the files and reload" });
      await reload.click();
      await page.getByText("Not reloaded: 1 fault in the files").waitFor();
      await page.getByText(`config/resources/orders.yaml:${line}:1`).waitFor();
      await page.getByText("colour: unknown key").waitFor();
      const excerpt = page.getByRole("region", { name: /^Lines around/ });
      expect(await excerpt.locator(".here").innerText()).to.include(`colour: "${script}"`);
      expect(await excerpt.innerText()).to.include(last);
      await expectSound(shown);
      await picture(shown, "console-reload");
      writeFileSync(file, text);
      await reload.click();
      await page.getByText("The files have no fault.").waitFor();
    });
  });

  it("list dead letters, and retry one", async () => {
    scene.receiver.answer = { status: 500 };
    await subscribeOrders(user, scene.receiver.url, { events: ["on_create"] });
    for (const notes of ["one", "two"]) await createOrder(user, { notes });
    await until(
      async () =>
        (await admin.request("GET", "/dead-letters")).body.data.filter(
          (one: { dead_lettered_at: string | null }) => one.dead_lettered_at !== null,
        ).length === 2,
      { what: "two dead letters", timeoutMs: 60_000 },
    );
    scene.receiver.answer = { status: 200 };

    await on("/admin/dead-letters", async (shown) => {
      const { page } = shown;
      await page.getByText(/messages? in svc\.dead/).waitFor();
      await picture(shown, "console-dead-letters");
      const asked: string[] = [];
      await page.route("**/retry", async (route) => {
        asked.push(route.request().url());
        if (asked.length > 1) return route.continue();
        // The service does it, and its answer is lost.
        await route.fetch();
        return route.abort();
      });
      await page.getByRole("button", { name: "Retry this page" }).click();
      await page.getByRole("button", { name: "Retry them" }).click();
      await page.getByText("The service does not answer.").waitFor();
      // Neither the page nor this test requests a second retry.
      await page.getByRole("button", { name: /^Retry (it|them)$/ }).click();
      await page.getByText("A new delivery is on its way.").nth(1).waitFor();
      expect(asked).to.have.length(3);
      expect(asked[2]).to.equal(asked[0]);
      await page.getByRole("button", { name: "Retry this page" }).click();
      await page.getByText("Each of these was retried already.").waitFor();
      expect(asked).to.have.length(3);
    });
    const delivered = async (): Promise<number> =>
      (await user.request("GET", "/webhook-deliveries?status=delivered")).body.data.length;
    await until(async () => (await delivered()) === 2, { what: "two deliveries that arrive" });
    expect((await user.request("GET", "/webhook-deliveries")).body.data).to.have.length(4);
  });

  it("continue when the service is back, and show its absence meanwhile", async () => {
    const shown = await scene.open(admin.token, "/admin/users");
    await shown.page.getByRole("link", { name: "Ada", exact: true }).waitFor();
    await shown.page.route("**/svc-api/**", (route) => route.abort());
    await shown.page.getByRole("link", { name: "Dead letters" }).click();
    await shown.page.getByText("The service does not answer").first().waitFor();
    await shown.page.unroute("**/svc-api/**");
    await shown.page.getByText("The service does not answer").first().waitFor({ state: "detached" });
    await shown.page.getByRole("heading", { name: "Dead letters", level: 1 }).waitFor();
    await expectSound(shown);
  });
});
