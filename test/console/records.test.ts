import { expect } from "chai";
import type { Locator, Page } from "playwright-core";
import { until } from "../support/wait.ts";
import {
  expectSound,
  expectSoundAtAnyWidth,
  hostile,
  picture,
  sceneOfSuite,
  userOfTest,
} from "./console-scene.ts";
import { createOrder, deliveryOf, shopResources, subscribeOrders } from "./console-shop.ts";

async function save(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Save" }).click();
}

describe("a record in the console", function () {
  this.timeout(240_000);
  const scene = sceneOfSuite({ resources: shopResources });
  const ada = userOfTest(scene);

  it("is created by the keyboard alone, with its relation found by name, and the server's messages at their fields", async () => {
    const name = "Katherine Johnson";
    const { body: customer } = await ada.request("POST", "/resources/customers", {
      name,
      email: `k${ada.id}@example.com`,
    });
    const shown = await scene.open(ada.token, "/resources/orders/-/new");
    const { page } = shown;
    const { keyboard } = page;

    await page.getByLabel("reference").focus();
    await keyboard.press("Enter");
    await page.getByText("The reference field is required.").waitFor();
    await page.getByText("The customer id field is required.").waitFor();
    await until(() => page.evaluate("document.activeElement.getAttribute('aria-invalid') === 'true'"), {
      what: "focus is at the first wrong field",
    });
    await expectSound(shown);
    await picture(shown, "console-record-messages");

    await keyboard.type(`K-${ada.id}`);
    await keyboard.press("Tab");
    await keyboard.type("-5");
    await keyboard.press("Enter");
    await page.getByText("The amount field must be at least 0.").waitFor();
    await page.getByLabel("amount").fill("12.50");
    await keyboard.press("Tab");
    await keyboard.press("Tab");
    await keyboard.type("Katherine");
    await page.getByRole("option", { name: `${name} (${customer.id})` }).waitFor();
    await keyboard.press("ArrowDown");
    await keyboard.press("Enter");
    await until(async () => (await page.getByLabel("customer_id").inputValue()).startsWith(name), {
      what: "the customer is chosen",
    });
    await page.getByRole("button", { name: "Create" }).focus();
    await keyboard.press("Enter");
    await page.getByRole("heading", { name: `K-${ada.id}` }).waitFor();

    const { data } = (await ada.request("GET", "/resources/orders")).body;
    expect(data[0]).to.deep.include({
      reference: `K-${ada.id}`,
      amount: "12.50",
      customer: { id: customer.id, name },
    });
    await expectSound(shown);
  });

  it("has texts from the right to the left in their own direction", async () => {
    const { customer } = await createOrder(ada, { name: "עדה" });
    const order = { reference: "הזמנה 1", amount: 1, notes: "שלום (world) 1, 2", customer_id: customer.id };
    const { body } = await ada.request("POST", "/resources/orders", order);
    const shown = await scene.open(ada.token, `/resources/orders/${body.id}`);
    const { page } = shown;
    const isBackward = (locator: Locator): Promise<void> => locator.and(page.locator(":dir(rtl)")).waitFor();
    await isBackward(page.getByLabel("notes"));
    await isBackward(page.getByRole("heading", { level: 1 }).getByText("הזמנה 1"));
    await page.getByLabel("notes").fill("hello");
    await page.getByLabel("notes").and(page.locator(":dir(ltr)")).waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved.").waitFor();
    await page.goto(new URL("/console/resources/orders?columns=reference,notes", page.url()).href);
    await isBackward(page.getByRole("cell", { name: "הזמנה 1" }).getByText("הזמנה 1"));
    await page.getByRole("searchbox").fill("עדה");
    await isBackward(page.getByRole("searchbox"));
    await page.goto(new URL("/console/resources/orders/-/new", page.url()).href);
    await page.getByLabel("reference").fill("הזמנה 2");
    await isBackward(page.getByLabel("reference"));
    await page.getByLabel("customer_id").focus();
    await page.keyboard.type("עדה");
    await isBackward(page.getByLabel("customer_id"));
    await isBackward(page.getByRole("option").getByText("עדה"));
  });

  it("shows its history, and the notified webhooks", async () => {
    const webhook = await subscribeOrders(ada, `${scene.receiver.url}/hook`);
    const order = await createOrder(ada, { notes: "first" });
    await ada.request("PATCH", `/resources/orders/${order.id}`, { status: "paid" });
    await deliveryOf(ada, webhook.id, "delivered");
    const shown = await scene.open(ada.token, `/resources/orders/${order.id}`);
    const { page } = shown;
    const story = page.getByRole("region", { name: "What happened" });
    await story.getByText("updated").waitFor();
    await story.getByText("created").waitFor();
    await until(async () => (await story.getByText("delivered").count()) === 2, {
      what: "both are delivered",
    });
    expect(await story.locator(".changes").innerText()).to.equal("status: open → paid");
    await expectSoundAtAnyWidth(shown);
    await picture(shown, "console-record");
    expect(await story.locator(".tellings a").first().getAttribute("href")).to.match(
      /\/console\/deliveries\/\d+$/,
    );
  });

  it("reports omitted deliveries, and possible other receivers", async () => {
    const order = await createOrder(ada);
    const path = `/resources/orders/${order.id}`;
    const shown = await scene.open(ada.token, path);
    const { page } = shown;
    await page.getByText("No webhook that you may see was notified.").waitFor();
    const webhook = await subscribeOrders(ada, `${scene.receiver.url}/hook`);
    await ada.request("PATCH", path, { status: "paid" });
    const { event_uuid: uuid } = await deliveryOf(ada, webhook.id, "delivered");
    // Makes the page full.
    await page.route("**/webhook-deliveries?*", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), next_cursor: "more" } });
    });
    await page.reload();
    const chapters = page.getByRole("region", { name: "What happened" }).locator(".time-line > li");
    await chapters.nth(1).getByText("Older deliveries are not shown.").waitFor();
    expect(await chapters.nth(0).getByText("Older deliveries are not shown.").count()).to.equal(1);
    expect(await page.getByText("No webhook that").count()).to.equal(0);

    await page.goto(new URL(`/console/events/${uuid}`, page.url()).href);
    await page.getByText("Only the newest 1 are shown.").waitFor();
    await page.unroute("**/webhook-deliveries?*");
    await page.getByRole("link", { name: "All of them" }).click();
    await page.getByRole("heading", { name: "Deliveries" }).waitFor();
    await page.getByRole("cell", { name: "delivered" }).waitFor();
    await expectSound(shown);
  });

  it("sends only what was changed", async () => {
    const order = await createOrder(ada, { notes: "keep me" });
    const etag = (await ada.request("GET", `/resources/orders/${order.id}`)).headers.get("etag");
    const shown = await scene.open(ada.token, `/resources/orders/${order.id}`);
    const { page } = shown;
    const sent: unknown[] = [];
    page.on("request", (request) => {
      if (request.method() === "PATCH") sent.push([request.postDataJSON(), request.headers()["if-match"]]);
    });
    await page.getByLabel("amount").fill("99");
    await save(page);
    await page.getByText("Saved.").waitFor();

    expect(sent).to.have.length(1);
    expect(sent[0]).to.deep.equal([{ amount: 99 }, etag]);
    expect((await ada.request("GET", `/resources/orders/${order.id}`)).body).to.include({
      amount: "99.00",
      notes: "keep me",
    });
  });

  it("keeps the focus in the form when its changes are discarded", async () => {
    const { id } = await createOrder(ada);
    const { page } = await scene.open(ada.token, `/resources/orders/${id}`);
    await page.getByLabel("amount").fill("99.50");
    await page.getByRole("button", { name: "Discard" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Discard" }).waitFor({ state: "detached" });

    expect(await page.evaluate("document.activeElement.textContent")).to.equal("Save");
    expect(await page.getByLabel("amount").inputValue()).not.to.equal("99.50");
  });

  it("shows a conflict as a difference, and keeps theirs or overwrites", async () => {
    const order = await createOrder(ada, { amount: 1 });
    const shown = await scene.open(ada.token, `/resources/orders/${order.id}`);
    const { page } = shown;
    const path = `/resources/orders/${order.id}`;
    await page.getByLabel("amount").fill("3");
    await ada.request("PATCH", path, { amount: 2, notes: hostile[1] });
    await save(page);

    const dialog = page.getByRole("dialog");
    await dialog.getByRole("row", { name: "amount 1.00 2.00 3" }).waitFor();
    await dialog
      .getByRole("row", { name: /^notes/ })
      .getByText(hostile[1])
      .waitFor();
    await expectSound(shown);
    expect((await ada.request("GET", path)).body.amount).to.equal("2.00");

    await dialog.getByRole("button", { name: "Take theirs" }).click();
    await until(async () => (await page.getByLabel("amount").inputValue()) === "2.00", {
      what: "theirs is shown",
    });
    expect(await page.getByLabel("notes").inputValue()).to.equal(hostile[1]);

    await page.getByLabel("amount").fill("5");
    await ada.request("PATCH", path, { status: "paid" });
    await save(page);
    await dialog.getByRole("row", { name: "status open paid unchanged" }).waitFor();
    await picture(shown, "console-conflict");
    await dialog.getByRole("button", { name: "Overwrite with mine" }).click();
    await page.getByText("Saved.").waitFor();
    expect((await ada.request("GET", path)).body).to.include({ amount: "5.00", status: "paid" });
  });

  it("leads to the records that it references, and has exact times", async () => {
    const order = await createOrder(ada);
    const shown = await scene.open(ada.token, `/resources/orders/${order.id}`);
    const { page } = shown;
    const year = new Date().getFullYear();
    await page
      .locator(".record-facts time", { hasText: String(year) })
      .first()
      .waitFor();
    await page
      .locator(".record-facts")
      .getByRole("link", { name: String(order.customer.id) })
      .click();
    await page.getByRole("heading", { level: 1, name: "Grace Hopper" }).waitFor();
    expect(page.url()).to.match(new RegExp(`/resources/customers/${order.customer.id}$`));
    await expectSound(shown);
  });

  it("describes a delete before it happens", async () => {
    await subscribeOrders(ada, `${scene.receiver.url}/hook`, { events: ["on_delete"] });
    const order = await createOrder(ada);
    const shown = await scene.open(ada.token, `/resources/orders/${order.id}`);
    const { page } = shown;
    const read: string[] = [];
    page.on("request", (request) => /\/webhooks\b/.test(request.url()) && read.push(request.url()));
    await page.getByRole("button", { name: "Delete" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("This cannot be undone").waitFor();
    await dialog.getByText("one of your own among them").waitFor();
    // A user may have a million webhooks.
    expect(read).to.have.length(1);
    expect(new URL(read[0] ?? "").searchParams.get("per_page")).to.equal("1");
    await expectSound(shown);

    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    expect((await ada.request("GET", `/resources/orders/${order.id}`)).status).to.equal(200);
    await page.getByRole("button", { name: "Delete" }).click();
    await dialog.getByRole("button", { name: "Delete the record" }).click();
    await page.getByText(`Deleted orders ${order.id}.`).waitFor();
    expect((await ada.request("GET", `/resources/orders/${order.id}`)).status).to.equal(404);

    await page.goto(new URL(`/console/resources/orders/${order.id}`, page.url()).href);
    await page.getByText("There is nothing here").waitFor();
    await page.getByRole("region", { name: "What happened" }).getByText("deleted").waitFor();
  });

  it("is not deleted before its changes by others are shown", async () => {
    const order = await createOrder(ada, { notes: "first" });
    const path = `/resources/orders/${order.id}`;
    const shown = await scene.open(ada.token, path);
    const { page } = shown;
    await page.getByLabel("notes").waitFor();
    await ada.request("PATCH", path, { notes: "second" });
    await page.getByRole("button", { name: "Delete" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Delete the record" }).click();
    await dialog.getByText("Somebody changed the record in the meantime").waitFor();
    await dialog.getByText('"notes": "second"').waitFor();
    expect((await ada.request("GET", path)).status).to.equal(200);
    await expectSound(shown);

    await dialog.getByRole("button", { name: "Delete the record" }).click();
    await page.getByText(`Deleted orders ${order.id}.`).waitFor();
    expect((await ada.request("GET", path)).status).to.equal(404);
  });

  it("leads to the list after somebody deleted it, and keeps the input", async () => {
    const order = await createOrder(ada, { notes: "first" });
    const shown = await scene.open(ada.token, `/resources/orders/${order.id}`);
    const { page } = shown;
    await page.getByLabel("notes").fill("second");
    await ada.request("DELETE", `/resources/orders/${order.id}`);
    await save(page);
    await page.getByText("This record is no longer there").waitFor();
    expect(await page.getByLabel("notes").inputValue()).to.equal("second");
    await expectSound(shown);
    page.on("dialog", (question) => void question.accept());
    await page.getByRole("link", { name: "To the list of orders" }).click();
    await page.getByText("There are no orders that you may see").waitFor();
  });

  it("is reported as gone after somebody else deleted it, and the list is shown", async () => {
    const order = await createOrder(ada);
    const shown = await scene.open(ada.token, `/resources/orders/${order.id}`);
    const { page } = shown;
    await page.getByRole("button", { name: "Delete" }).click();
    await ada.request("DELETE", `/resources/orders/${order.id}`);
    await page.getByRole("button", { name: "Delete the record" }).click();
    await page.getByText(`orders ${order.id} is no longer there.`).waitFor();
    await page.getByText("There are no orders that you may see").waitFor();
  });

  it("is shown in its current state when it is opened again", async () => {
    const order = await createOrder(ada, { notes: "first" });
    const path = `/resources/orders/${order.id}`;
    const shown = await scene.open(ada.token, "/resources/orders");
    const { page } = shown;
    const open = (): Promise<void> => page.locator("a.row-link").first().click();
    await open();
    await page.getByLabel("notes").waitFor();
    await page.goBack();
    await ada.request("PATCH", path, { notes: "second" });
    await open();
    await page.getByLabel("notes").waitFor();
    await until(async () => (await page.getByLabel("notes").inputValue()) === "second", {
      what: "the form has the newest",
    });
    await page.getByLabel("notes").fill("third");
    await save(page);
    await page.getByText("Saved.").waitFor();
  });

  it("says why a delete is refused", async () => {
    const admin = await scene.service.createUser({ isAdmin: true });
    const order = await createOrder(admin);
    const shown = await scene.open(admin.token, `/resources/customers/${order.customer.id}`);
    await shown.page.getByRole("button", { name: "Delete" }).click();
    await shown.page.getByRole("button", { name: "Delete the record" }).click();

    await shown.page.getByRole("dialog").getByRole("alert").waitFor();
    await expectSound(shown);
  });

  it("is refused with a sentence when it belongs to another user", async () => {
    const other = await scene.service.createUser();
    const order = await createOrder(other);
    const shown = await scene.open(ada.token, `/resources/orders/${order.id}`);

    await shown.page.getByText("You may not see this").waitFor();
    expect(await shown.page.getByText(order.reference).count()).to.equal(0);
    await expectSound(shown);
  });

  it("reports that it is read-only, and keeps the input", async () => {
    const { body: customer } = await ada.request("POST", "/resources/customers", {
      name: "Mary",
      email: `m${ada.id}@example.com`,
    });
    const shown = await scene.open(ada.token, `/resources/customers/${customer.id}`);
    await shown.page.getByLabel("name").fill("Mary Jackson");
    await save(shown.page);

    await shown.page.locator("form").getByRole("alert").waitFor();
    expect(await shown.page.getByLabel("name").inputValue()).to.equal("Mary Jackson");
  });

  it("shows a conflict of long texts to their end", async () => {
    const start = "long ".repeat(200);
    const order = await createOrder(ada, { notes: start });
    const shown = await scene.open(ada.token, `/resources/orders/${order.id}`);
    const { page } = shown;
    await page.getByLabel("notes").fill(`${start}mine`);
    await ada.request("PATCH", `/resources/orders/${order.id}`, { notes: `${start}theirs` });
    await page.getByRole("button", { name: "Save" }).click();

    await page.getByRole("cell", { name: /mine$/ }).waitFor();
    await page.getByRole("cell", { name: /theirs$/ }).waitFor();
    await expectSound(shown);
  });
});
