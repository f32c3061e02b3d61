import { expect } from "chai";
import { until } from "../support/wait.ts";
import {
  expectSound,
  expectSoundAtAnyWidth,
  hostile,
  picture,
  sceneOfSuite,
  userOfTest,
  widths,
} from "./console-scene.ts";
import { createOrder, shopResources } from "./console-shop.ts";

/** A module in place of `transform`: its records have no schema. */
const noteResources = {
  "notes.yaml": `
name: notes
model: Note
triggers: []
fields: { id: { type: Int, id: true }, text: { type: String }, meta: { type: Json, optional: true }, user_id: { type: Int } }
createRules: { text: required|string, meta: nullable }
updateRules: { text: sometimes|required|string, meta: nullable }
ownerColumn: user_id`,
};

describe("the resources of the console", function () {
  this.timeout(240_000);
  const scene = sceneOfSuite({ resources: { ...shopResources, ...noteResources } });
  const ada = userOfTest(scene);

  it("are listed, with their webhook triggers", async () => {
    const shown = await scene.open(ada.token, "/resources");
    await shown.page.getByRole("row", { name: /orders Order created updated deleted/ }).waitFor();
    await expectSoundAtAnyWidth(shown);
  });

  it("show the next step while they are empty", async () => {
    const shown = await scene.open(ada.token, "/resources/orders");
    const { page } = shown;
    await page.getByText("There are no orders that you may see").waitFor();
    await expectSound(shown);

    await page.getByRole("link", { name: "New record" }).last().click();
    await page.getByRole("heading", { name: "New record of orders" }).waitFor();
  });

  it("are a table whose filters, order, search, columns and page are in the URL", async () => {
    for (const amount of [10, 20, 30]) await createOrder(ada, { amount, notes: `about ${amount}` });
    const shown = await scene.open(ada.token, "/resources/orders");
    const { page } = shown;
    await page.getByText("3 records").waitFor();

    await page.getByRole("button", { name: "Filter" }).click();
    await page.getByLabel("Field").selectOption("amount");
    await page.getByLabel("Condition").selectOption("gte");
    await page.getByLabel("Value").fill("20");
    await page.getByRole("button", { name: "Add the filter" }).click();
    await page.getByText("2 records").waitFor();
    await page.getByRole("button", { name: "amount", exact: true }).click();
    await page
      .getByRole("columnheader", { name: "amount" })
      .and(page.locator("[aria-sort=ascending]"))
      .waitFor();
    await page.getByRole("button", { name: "amount", exact: true }).click();
    await page.locator("[aria-sort=descending]").waitFor();
    await page.getByRole("button", { name: "Columns" }).click();
    await page.getByLabel("notes").uncheck();
    await page.keyboard.press("Escape");
    await expectSound(shown);
    const url = new URL(page.url());
    expect(Object.fromEntries(url.searchParams)).to.include({ "filter[amount][gte]": "20", sort: "-amount" });
    expect(url.searchParams.get("columns")).not.to.contain("notes");

    await page.reload();
    await page.getByText("2 records").waitFor();
    const amounts = await page.locator("tbody tr td:nth-child(4)").allInnerTexts();
    expect(amounts).to.deep.equal(["30.00", "20.00"]);
    await page.getByRole("searchbox").fill("about 30");
    await page.getByText("1 record", { exact: true }).waitFor();
    await page.getByRole("button", { name: /Remove the filter amount/ }).click();
    await until(() => !page.url().includes("filter"), { what: "the filter is gone from the URL" });
    await page.goBack();
    await page.getByRole("button", { name: /Remove the filter amount/ }).waitFor();
  });

  it("are searched without the same list twice in the history", async () => {
    await createOrder(ada);
    const { page } = await scene.open(ada.token, "/resources");
    await page.getByRole("link", { name: "orders", exact: true }).first().click();
    await page.getByText("1 record").waitFor();
    const box = page.getByRole("searchbox");
    for (const text of ["nothing", ""]) {
      await box.fill(text);
      await until(() => page.url().includes("search") === (text !== ""), { what: `"${text}" is searched` });
    }
    await page.getByText("1 record").waitFor();
    await page.locator("input[type=search]:focus").waitFor();
    await page.goBack();
    await page.waitForURL("**/console/resources");
  });

  it("turn keyset pages, forward and back", async () => {
    const names = ["Northwind Traders", "Contoso", "Fabrikam", "Globex", "Initech"];
    for (let count = 0; count < 27; count += 1) {
      const order = await createOrder(ada, {
        amount: 20 + ((count * 37) % 90),
        name: names[count % 5] ?? "",
      });
      if (count % 3 > 0)
        await ada.request("PATCH", `/resources/orders/${order.id}`, {
          status: count % 3 === 1 ? "paid" : "shipped",
        });
    }
    const shown = await scene.open(ada.token, "/resources/orders?sort=id");
    const { page } = shown;
    await page.getByText("27 records").waitFor();
    await picture(shown, "console-resources");
    const first = await page.locator("tbody tr").first().innerText();

    await page.getByRole("button", { name: "Next" }).click();
    await until(async () => (await page.locator("tbody tr").count()) === 2, { what: "the second page" });
    expect(page.url()).to.contain("cursor=");
    await page.getByRole("button", { name: "Previous" }).click();
    await until(async () => (await page.locator("tbody tr").count()) === 25, { what: "the first page" });

    expect(await page.locator("tbody tr").first().innerText()).to.equal(first);
  });

  it("are shown from their first row again when a page is turned at their foot", async () => {
    for (let count = 0; count < 16; count += 1) await createOrder(ada);
    for (const width of widths) {
      const shown = await scene.open(ada.token, "/resources/orders?per_page=8", { width });
      const { page } = shown;
      await page.setViewportSize({ width, height: 400 });
      await page.getByRole("button", { name: "Next" }).click();
      await page.getByRole("button", { name: "Previous" }).and(page.locator(":enabled")).waitFor();
      // On a telephone, the head of the console is above the scrolled part.
      const isFromHead = `(() => {
        const { bottom } = document.querySelector("header.side").getBoundingClientRect();
        const { top } = document.querySelector(".toolbar").getBoundingClientRect();
        return top >= (innerWidth < 820 ? bottom : 0) && top < 200;
      })()`;
      await until(() => page.evaluate(isFromHead), { what: `the head of the list at ${width} pixels` });
      await page.keyboard.press("Tab");
      await page.locator("th button:focus, a.row-link:focus").waitFor();
      await expectSound(shown);
    }
  });

  it("have the focus at the opened row again after Back", async () => {
    for (let count = 0; count < 3; count += 1) await createOrder(ada);
    const shown = await scene.open(ada.token, "/resources/orders?sort=id");
    const { page } = shown;
    const row = page.locator("tbody tr").nth(1).getByRole("link");
    const id = await row.innerText();
    await row.press("Enter");
    await page.getByRole("heading", { level: 1, name: /^A-/ }).waitFor();
    await page.locator("main:focus").waitFor();
    await page.goBack();

    await page.locator("a.row-link:focus", { hasText: id }).waitFor();
    await expectSound(shown);
  });

  it("are filtered by a time in the time zone of the browser", async () => {
    const { created_at } = await createOrder(ada);
    const shown = await scene.open(ada.token, "/resources/orders");
    const { page } = shown;
    const devtools = await page.context().newCDPSession(page);
    await devtools.send("Emulation.setTimezoneOverride", { timezoneId: "America/New_York" });
    await page.reload();
    await page.getByText("1 record").waitFor();
    await page.getByRole("button", { name: "Filter", exact: true }).click();
    await page.getByLabel("Field").selectOption("created_at");
    const conditions = await page.getByLabel("Condition").locator("option").allInnerTexts();
    expect(conditions).to.include("is").and.not.include("is not");
    await page.getByLabel("Condition").selectOption("gte");
    await page.getByLabel("Value").fill("2026-01-01T22:30");
    await page.getByRole("button", { name: "Add the filter" }).click();
    await page.getByRole("button", { name: /^Remove the filter created_at ≥ Jan 1, 2026, 10:30/ }).waitFor();

    const { searchParams } = new URL(page.url());
    expect(searchParams.get("filter[created_at][gte]")).to.equal("2026-01-02T03:30:00.000Z");
    await page.getByText("1 record").waitFor();
    await expectSound(shown);

    await page.getByRole("button", { name: "Filter", exact: true }).click();
    await page.getByLabel("Field").selectOption("created_at");
    await page.getByLabel("Condition").selectOption("eq");
    const minute = new Date(created_at).toLocaleString("sv", { timeZone: "America/New_York" }).slice(0, 16);
    await page.getByLabel("Value").fill(minute.replace(" ", "T"));
    await page.getByRole("button", { name: "Add the filter" }).click();
    await page.getByRole("button", { name: /created_at is between \w+ \d+, .* and \w+ \d+, / }).waitFor();
    await page.getByText("1 record").waitFor();
  });

  it("show the start of a long text that is written from right to left", async () => {
    await createOrder(ada, { notes: "שלום ".repeat(100) });
    const { page } = await scene.open(ada.token, "/resources/orders", { width: 1600 });
    await page.locator("td > bdi", { hasText: "שלום" }).waitFor();

    const isStartSeen = await page.evaluate(`(() => {
      const text = [...document.querySelectorAll("td > bdi")].find((one) => one.textContent.startsWith("ש"));
      const range = document.createRange();
      range.setStart(text.firstChild, 0);
      range.setEnd(text.firstChild, 1);
      return range.getBoundingClientRect().right <= text.closest("td").getBoundingClientRect().right;
    })()`);

    expect(isStartSeen).to.equal(true);
  });

  it("show the number of a page, also for a size in the URL", async () => {
    for (let count = 0; count < 3; count += 1) await createOrder(ada);
    for (const [asked, size] of [
      ["2", "2"],
      ["100", "100"],
      ["1000", "100"],
    ] as const) {
      const shown = await scene.open(ada.token, `/resources/orders?per_page=${asked}`);
      const { page } = shown;
      await page.getByText("3 records").waitFor();
      expect(await page.getByLabel("per page").inputValue()).to.equal(size);
      await page.getByLabel("per page").selectOption("50");
      await until(() => page.url().endsWith("per_page=50"), { what: "another number" });
    }
  });

  it("report an invalid list in the URL, with a link out of it", async () => {
    const shown = await scene.open(ada.token, "/resources/orders?filter[amuont]=1");
    await shown.page.getByText("There is no field amuont; did you mean amount?").waitFor();
    await shown.page.getByRole("button", { name: "Remove the filter amuont is 1" }).click();
    await shown.page.getByText("There are no orders that you may see").waitFor();
  });

  it("lead to their first page from another user's link", async () => {
    for (let count = 0; count < 2; count += 1) await createOrder(ada);
    const { body } = await ada.request("GET", "/resources/orders?cursor=&per_page=1");
    const bob = await scene.service.createUser();
    const order = await createOrder(bob);
    const path = `/resources/orders?per_page=1&cursor=${encodeURIComponent(body.next_cursor)}`;
    const shown = await scene.open(bob.token, path);
    await shown.page.getByText("The cursor is not one of this list").waitFor();
    await expectSound(shown);
    await shown.page.getByRole("button", { name: "To the first page" }).click();
    await shown.page.getByRole("row", { name: order.reference }).waitFor();
    expect(new URL(shown.page.url()).search).to.equal("?per_page=1");
  });

  it("lead to their first page from one whose rows are gone", async () => {
    for (let count = 0; count < 3; count += 1) await createOrder(ada);
    const first = (await ada.request("GET", "/resources/orders?cursor=&per_page=2")).body;
    const second = `per_page=2&cursor=${encodeURIComponent(first.next_cursor)}`;
    const { data } = (await ada.request("GET", `/resources/orders?${second}`)).body;
    await ada.request("DELETE", `/resources/orders/${data[0].id}`);
    const shown = await scene.open(ada.token, `/resources/orders?${second}`);
    const { page } = shown;
    await page.getByText("There is nothing on this page").waitFor();
    await expectSound(shown);
    await page.getByRole("button", { name: "To the first page" }).click();
    await page.getByRole("row", { name: first.data[0].reference }).waitFor();
    expect(new URL(page.url()).search).to.equal("?per_page=2");
  });

  it("report a missing resource", async () => {
    const shown = await scene.open(ada.token, "/resources/odrers");
    await shown.page.getByText("There is no resource odrers").waitFor();
    await expectSound(shown);
  });

  it("show hostile texts as texts, in every place", async () => {
    const mallory = await scene.service.createUser({ name: hostile[0] });
    for (const notes of hostile) await createOrder(mallory, { notes, name: notes.slice(0, 100) });
    const shown = await scene.open(mallory.token, "/resources/orders", { width: 390 });
    const { page } = shown;
    await page.getByText("4 records").waitFor();
    await page.getByText(hostile[0], { exact: true }).first().waitFor();
    await expectSoundAtAnyWidth(shown);

    await page.locator("a.row-link").first().click();
    await page.getByLabel("notes").waitFor();
    await expectSoundAtAnyWidth(shown);

    const search = `/console/resources/orders?search=${encodeURIComponent(hostile[1].slice(0, 90))}`;
    await page.goto(new URL(search, page.url()).href);
    await page.getByRole("searchbox").waitFor();
    await expectSound(shown);
  });

  it("name the scope that a token lacks", async () => {
    const { body } = await ada.request("POST", "/tokens", { name: "narrow", scopes: ["customers:read"] });
    const shown = await scene.open(body.token, "/resources/orders");

    await shown.page.getByText("Your token may not see this").waitFor();
    await shown.page.getByText("orders:read").waitFor();
    expect(await shown.page.getByRole("link", { name: "New record" }).count()).to.equal(0);
    await expectSound(shown);
    await shown.page.goto(new URL("/console/resources/orders/-/new", shown.page.url()).href);
    await shown.page.getByText("This token lacks the scope orders:write.").waitFor();
    expect(await shown.page.getByRole("textbox").count()).to.equal(0);
    await expectSound(shown);
  });

  it("can be made as JSON", async () => {
    const shown = await scene.open(ada.token, "/resources/notes/-/new");
    const { page } = shown;
    await page.getByLabel("text").fill("Hello");
    await page.getByRole("radio", { name: "JSON" }).click();
    const body = page.getByLabel("Body");
    expect(JSON.parse(await body.inputValue())).to.deep.equal({ text: "Hello" });

    await body.fill('{ "text": "Hello", ');
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByText("This is no JSON").waitFor();
    await body.fill('{ "text": "Hello", "meta": { "plan": ["pro", 1] } }');
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByText("Created notes").waitFor();

    const { data } = (await ada.request("GET", "/resources/notes")).body;
    expect(data[0]).to.deep.include({ text: "Hello", meta: { plan: ["pro", 1] } });
    await expectSound(shown);
  });

  it("searches a text that is typed with a pause between its words, and keeps later choices", async () => {
    await createOrder(ada);
    const shown = await scene.open(ada.token, "/resources/customers");
    const { page } = shown;
    const box = page.getByRole("searchbox", { name: "Search customers" });
    await box.pressSequentially("Grace ");
    await page.waitForURL("**/customers?search=Grace");
    await box.pressSequentially("Hopper");
    await page.waitForURL("**/customers?search=Grace+Hopper");
    // One search is one step back, however often its typing paused.
    await page.goBack();
    await page.waitForURL("**/customers");
    await page.goForward();
    await page.waitForURL("**/customers?search=Grace+Hopper");

    // The search waits for a pause in typing. The test chooses the order before that.
    await page
      .getByRole("row", { name: /Grace Hopper/ })
      .first()
      .waitFor();
    await page.evaluate(`(() => {
      const box = document.querySelector("input[type=search]");
      Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(box, "Gr");
      box.dispatchEvent(new InputEvent("input", { bubbles: true }));
      [...document.querySelectorAll("th button")].find((one) => one.textContent === "name").click();
    })()`);
    await page.waitForURL(/search=Gr(&|$)/);
    expect(new URL(page.url()).searchParams.get("sort")).to.equal("name");
  });
});
