import { expect } from "chai";
import { expectSound, picture, sceneOfSuite, userOfTest, widths } from "./console-scene.ts";
import { createOrder, shopResources } from "./console-shop.ts";

const sections = ["Overview", "Resources", "Webhooks", "Deliveries", "Events"];

describe("the shell of the console", function () {
  this.timeout(240_000);
  const scene = sceneOfSuite({ resources: shopResources });
  const ada = userOfTest(scene);

  it("leads from a list that the URL requests wrongly to the list without that", async () => {
    await createOrder(ada);
    for (const [path, faulty, row] of [
      ["/resources/orders", "sort=nope", "A-"],
      ["/deliveries", "status=nope", null],
      ["/events", "before=nope", "orders"],
    ] as const) {
      const shown = await scene.open(ada.token, `${path}?${faulty}`);
      const { page } = shown;
      await page.getByRole("alert").waitFor();
      await expectSound(shown);
      await page.getByRole("button", { name: "Show the list without that" }).click();
      await page.getByRole("alert").waitFor({ state: "detached" });
      if (row !== null) await page.getByRole("row", { name: row }).first().waitFor();
      expect(new URL(page.url()).search).to.equal("");
    }
  });

  it("leads to every section by the keyboard alone, at both widths", async () => {
    for (const width of widths) {
      const shown = await scene.open(ada.token, "/", { width });
      const { page } = shown;
      await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
      for (const section of sections) {
        const link = page.getByRole("navigation", { name: "Sections" }).getByRole("link", { name: section });
        await link.focus();
        await page.keyboard.press("Enter");
        await page.getByRole("heading", { level: 1, name: section }).waitFor();
        expect(await link.getAttribute("aria-current")).to.equal("page");
        expect(await page.title()).to.equal(`${section} · svc`);
        await expectSound(shown);
      }
    }
  });

  it("looks the same after any sections were opened", async () => {
    const admin = await scene.service.createUser({ isAdmin: true });
    const shown = await scene.open(admin.token, "/deliveries");
    const { page } = shown;
    const goTo = async (section: string, title = section): Promise<void> => {
      await page.getByRole("navigation", { name: "Sections" }).getByRole("link", { name: section }).click();
      await page.getByRole("heading", { level: 1, name: title }).waitFor();
    };
    const layout = async (): Promise<unknown> => {
      await page.locator(".filters").waitFor();
      return page.evaluate("getComputedStyle(document.querySelector('.filters')).display");
    };
    const first = await layout();
    await goTo("Admin", "Users");
    await goTo("Deliveries");
    expect(await layout()).to.equal(first);
  });

  it("keeps the content of a cell in one line, before webhooks were opened too", async () => {
    const admin = await scene.service.createUser({ isAdmin: true });
    const { page } = await scene.open(admin.token, "/admin/users");
    await page.locator(".table .row").first().waitFor();
    expect(await page.evaluate("getComputedStyle(document.querySelector('.table .row')).flexWrap")).to.equal(
      "nowrap",
    );
  });

  it("lets the keyboard skip the navigation", async () => {
    const shown = await scene.open(ada.token, "/resources");
    const { page } = shown;
    await page.getByRole("row", { name: /orders/ }).waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");

    await page.getByRole("heading", { level: 1, name: "customers" }).waitFor();
  });

  it("lets the keyboard skip to a list that was filtered, and leaves the filters", async () => {
    const shown = await scene.open(ada.token, "/deliveries");
    const { page } = shown;
    await page.getByRole("button", { name: "failed" }).click();
    await page.getByText("Nothing matches").waitFor();
    await page.evaluate("window.isTheSame = true");
    await page.locator(".skip").focus();
    await page.keyboard.press("Enter");

    await page.locator("#main:focus").waitFor();
    expect(page.url()).to.include("status=failed");
    expect(await page.evaluate("window.isTheSame")).to.equal(true);
  });

  it("leads every user to their tokens", async () => {
    const shown = await scene.open(ada.token, "/");
    const { page } = shown;
    await page.getByRole("button", { name: /Ada/ }).click();
    await page.getByRole("menuitem", { name: "Your tokens" }).click();
    await page.getByRole("heading", { level: 1, name: "Your tokens" }).waitFor();
  });

  it("has a page for unknown addresses", async () => {
    const shown = await scene.open(ada.token, "/nowhere/at/all");
    await shown.page.getByText("There is no page at this address").waitFor();
    await expectSound(shown);
    for (const path of ["resources/orders/1/2", "webhooks/1/2", "deliveries/1/2", "events/1/2"]) {
      await shown.page.goto(new URL(`/console/${path}`, shown.page.url()).href);
      await shown.page.getByText("There is no page at this address").waitFor();
    }
  });

  it("is light and dark, by the system and by its switch", async () => {
    await createOrder(ada);
    const shown = await scene.open(ada.token, "/resources/orders");
    const { page } = shown;
    const background = (): Promise<unknown> =>
      page.evaluate("getComputedStyle(document.body).backgroundColor");
    await page.getByText("1 record").waitFor();
    await page.emulateMedia({ colorScheme: "light" });
    const light = await background();
    await page.emulateMedia({ colorScheme: "dark" });
    const dark = await background();
    expect(dark).not.to.equal(light);
    await expectSound(shown);
    await picture(shown, "console-dark");

    await page.getByRole("button", { name: /Ada/ }).click();
    await page.getByRole("menuitem", { name: "Light" }).click();
    expect(await background()).to.equal(light);
    await page.getByRole("button", { name: /Ada/ }).click();
    await page.getByRole("menuitem", { name: "Light, chosen" }).waitFor();
    await page.keyboard.press("Escape");
    await page.reload();
    await page.getByText("1 record").waitFor();
    expect(await background()).to.equal(light);
    await expectSound(shown);
  });

  it("shows a slow load without an error", async () => {
    await createOrder(ada);
    const shown = await scene.open(ada.token, "/resources");
    const { page } = shown;
    await page.getByRole("link", { name: "orders" }).waitFor();
    await page.route("**/svc-api/**", async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      await route.continue();
    });
    await page.getByRole("link", { name: "orders" }).click();

    await page.getByRole("status").getByText("Loading").first().waitFor({ state: "attached" });
    await page.getByText("1 record").waitFor();
    expect(await page.getByRole("alert").count()).to.equal(0);
  });

  it("keeps its content while the API is down, and continues when it is back", async () => {
    const order = await createOrder(ada, { notes: "before" });
    const shown = await scene.open(ada.token, `/resources/orders/${order.id}`);
    const { page } = shown;
    await page.getByLabel("notes").fill("typed while it was away");
    await page.context().setOffline(true);
    await page.getByRole("button", { name: "Save" }).click();
    await page
      .locator("form")
      .getByText("The service does not answer: whether this was done is not known. Look, or try again.")
      .waitFor();
    expect(await page.getByLabel("notes").inputValue()).to.equal("typed while it was away");
    await page.getByText("What you see is from before").first().waitFor();
    await expectSound(shown);

    const asks = page.waitForEvent("dialog");
    const left = page.getByRole("link", { name: "Resources" }).first().click();
    await (await asks).accept();
    await left;
    await page.getByText("The service does not answer").first().waitFor();
    await page.context().setOffline(false);
    await page.getByRole("row", { name: /orders/ }).waitFor();
    expect(await page.getByText("The service does not answer").count()).to.equal(0);
  });

  it("reports a section that did not load, and missing figures of the part for admins", async () => {
    const admin = await scene.service.createUser({ isAdmin: true });
    const shown = await scene.open(admin.token, "/");
    const { page } = shown;
    await page.getByRole("link", { name: "Admin" }).waitFor();
    await page.route("**/assets/events-page*.js", (route) => route.abort());
    await page.getByRole("link", { name: "Events" }).click();
    await page.getByText("This page did not load").waitFor();
    await page.unroute("**/assets/events-page*.js");
    await page.getByRole("button", { name: "Load the page again" }).click();
    await page.getByRole("heading", { name: "Events" }).waitFor();

    await page.route("**/svc-api/stats", (route) => route.fulfill({ status: 500, body: "{}" }));
    await page.goto(new URL("/console/admin/users", page.url()).href);
    await page.getByText("The service had a fault").waitFor();
  });

  it("shows data within a second of having it", async () => {
    await createOrder(ada, { amount: 1 });
    await createOrder(ada, { amount: 2 });
    const shown = await scene.open(ada.token, "/resources/orders?sort=amount");
    const { page } = shown;
    await page.locator("tbody tr").first().getByText("1.00").waitFor();
    const answered = page.waitForResponse((response) => response.url().includes("sort=-amount"));
    await page.getByRole("button", { name: "amount", exact: true }).click();
    await (await answered).finished();
    const began = Date.now();
    await page.locator("tbody tr").first().getByText("2.00").waitFor();
    const shownAfter = Date.now() - began;
    // A frame of the same page, under the same load, is the unit of the time.
    const frame = Number(
      await page.evaluate(
        "new Promise((resolve) => { const began = performance.now(); requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - began))); })",
      ),
    );

    expect(shownAfter).to.be.below(1_000 + 20 * frame);
  });
});
