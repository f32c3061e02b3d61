import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect } from "chai";
import type { Page } from "playwright-core";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { curlOf } from "../../src/console/pages/deliveries/curl.ts";
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

/** Presses the tab key until a link or a button with a text has the focus. */
async function tabTo(page: Page, text: string): Promise<void> {
  for (let pressed = 0; pressed < 60; pressed += 1) {
    await page.keyboard.press("Tab");
    const focused = page.locator("a:focus, button:focus", { hasText: text });
    if ((await focused.count()) > 0) return;
  }
  throw new Error(`Nothing with the text ${text} is reached by the tab key.`);
}

describe("the deliveries of the console", function () {
  this.timeout(240_000);
  const scene = sceneOfSuite({ resources: shopResources });
  const ada = userOfTest(scene);

  it("show the next step while there are none", async () => {
    const shown = await scene.open(ada.token, "/deliveries");
    await shown.page.getByText("No deliveries yet").waitFor();
    await expectSound(shown);
  });

  it("are found by filters, which the URL keeps", async () => {
    const webhook = await subscribeOrders(ada, `${scene.receiver.url}/orders`);
    const order = await createOrder(ada);
    await deliveryOf(ada, webhook.id, "delivered");
    scene.receiver.answer = { status: 503, body: "later" };
    await createOrder(ada);
    await deliveryOf(ada, webhook.id, "retrying");

    const shown = await scene.open(ada.token, "/deliveries", { width: 390 });
    const { page } = shown;
    await page.getByRole("cell", { name: "retrying" }).waitFor();
    await page.getByRole("cell", { name: "delivered" }).waitFor();
    await expectSoundAtAnyWidth(shown);
    await picture(shown, "console-deliveries");

    await page.getByRole("button", { name: "failed", exact: true }).click();
    await page.getByText("Nothing matches").waitFor();
    await page.getByRole("button", { name: "delivered", exact: true }).click();
    await page.getByRole("cell", { name: "delivered" }).waitFor();
    expect(page.url()).to.include("status=delivered,failed");
    await page.reload();
    await page.getByRole("cell", { name: "delivered" }).waitFor();
    expect(await page.getByRole("cell", { name: "retrying" }).count()).to.equal(0);

    await page.getByRole("button", { name: "More filters" }).click();
    await page.getByLabel("Record").fill(String(order.id + 1_000));
    await page.keyboard.press("Enter");
    await page.getByText("Nothing matches").waitFor();
    await page.getByRole("button", { name: "Clear" }).click();
    await page.getByRole("cell", { name: "retrying" }).waitFor();
    await page.getByLabel("Webhook").fill("two");
    await page.keyboard.press("Enter");
    await page.getByText("The webhook id field must be an integer.").waitFor();
    await expectSoundAtAnyWidth(shown);
  });

  it("are read again while their list is open", async () => {
    scene.receiver.answer = { status: 503, body: "later" };
    const webhook = await subscribeOrders(ada, `${scene.receiver.url}/orders`);
    await createOrder(ada);
    const { id } = await deliveryOf(ada, webhook.id, "retrying");
    const shown = await scene.open(ada.token, "/deliveries");
    await shown.page.getByRole("cell", { name: "retrying" }).waitFor();
    scene.receiver.answer = { status: 200, body: "thanks" };
    await ada.request("POST", `/webhook-deliveries/${id}/retry`);

    await shown.page.getByRole("cell", { name: "delivered" }).waitFor();
    await expectSound(shown);
  });

  it("come page by page", async () => {
    const webhook = await subscribeOrders(ada, `${scene.receiver.url}/orders`);
    const { id } = await createOrder(ada);
    for (let amount = 1; amount <= 27; amount += 1)
      await ada.request("PATCH", `/resources/orders/${id}`, { amount });
    await until(
      async () =>
        (await ada.request("GET", `/webhook-deliveries?webhook_id=${webhook.id}`)).body.total === 28,
      { what: "28 deliveries", timeoutMs: 60_000 },
    );
    const shown = await scene.open(ada.token, `/deliveries?webhook_id=${webhook.id}`);
    const rows = shown.page.getByRole("row");
    await until(async () => (await rows.count()) === 26, { what: "a page and its head" });
    await shown.page.getByRole("button", { name: "Next" }).click();
    await until(async () => (await rows.count()) === 4, { what: "the rest" });
    await shown.page.getByRole("button", { name: "Previous" }).click();
    await until(async () => (await rows.count()) === 26, { what: "the first page" });
  });

  it("are a time line of attempts, with the reason in a sentence, and can be sent again", async () => {
    scene.receiver.answer = { status: 503, body: hostile[0], headers: { "x-odd": hostile[1] } };
    const webhook = await subscribeOrders(ada, `${scene.receiver.url}/shop`);
    await createOrder(ada, { notes: hostile.join(" "), name: hostile[1] });
    const { id } = await deliveryOf(ada, webhook.id, "retrying");
    const shown = await scene.open(ada.token, `/deliveries/${id}`, { width: 390 });
    const { page } = shown;

    await page.getByText("One attempt failed; 1 more will be made.").waitFor();
    await page.getByText("Attempt 2 is due").waitFor();
    await page.getByText("Wait", { exact: true }).waitFor();
    await page.getByText(/^The answer of 127/).click();
    await page.getByText(hostile[0], { exact: true }).waitFor();
    await expectSoundAtAnyWidth(shown);

    await page.getByRole("button", { name: "Retry now" }).click();
    await page.getByText("It failed: all 2 attempts are spent.").waitFor();
    await page.getByText("by hand").waitFor();
    expect(await page.locator(".time-line > li", { has: page.locator(".attempt") }).count()).to.equal(2);
    await expectSoundAtAnyWidth(shown);

    scene.receiver.answer = { status: 200 };
    await page.getByRole("button", { name: "Retry", exact: true }).click();
    await page.getByText("It arrived at the first attempt.").waitFor();
    await page.getByText(`delivery ${id}`).waitFor();
    await page.getByRole("button", { name: "Resend" }).click();
    await page.getByRole("link", { name: `delivery ${id + 1}` }).waitFor();
  });

  it("are reached and sent again by the keyboard alone", async () => {
    const webhook = await subscribeOrders(ada, `${scene.receiver.url}/keys`);
    const order = await createOrder(ada);
    const { id } = await deliveryOf(ada, webhook.id, "delivered");
    const shown = await scene.open(ada.token, "/deliveries");
    const { page } = shown;
    await page.getByRole("cell", { name: "delivered" }).waitFor();
    await tabTo(page, `orders ${order.id}`);
    await page.keyboard.press("Enter");
    await page.getByText("It arrived at the first attempt.").waitFor();
    await tabTo(page, "Resend");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: `delivery ${id}`, exact: true }).waitFor();
    await expectSound(shown);
  });

  it("can be copied as curl, which sends them again, signed", async () => {
    const webhook = await subscribeOrders(ada, `${scene.receiver.url}/it's?a=$HOME&b[]={x,y}`);
    await createOrder(ada, { notes: 'it\'s $HOME `id` \\ "quoted" and two\nlines' });
    const { id } = await deliveryOf(ada, webhook.id, "delivered");
    const shown = await scene.open(ada.token, `/deliveries/${id}`);
    await shown.page.getByRole("button", { name: "Copy as curl" }).click();
    await shown.page.getByText("Copied").waitFor();
    const copied = (await shown.page.evaluate("navigator.clipboard.readText()")) as string;
    const delivery = (await ada.request("GET", `/webhook-deliveries/${id}`)).body;
    expect(copied).to.equal(curlOf(delivery));

    const before = scene.receiver.received.at(-1);
    const count = scene.receiver.received.length;
    const commands = copied.replace("'sec_…'", `'${webhook.secret}'`);
    await promisify(execFile)("sh", ["-euc", commands]);
    const sent = (await scene.receiver.waitFor(count + 1)).at(-1);
    expect(sent?.path).to.equal(before?.path);
    expect(sent?.rawBody.toString()).to.equal(before?.rawBody.toString());
    expect(sent?.headers["x-service-signature"]).to.equal(before?.headers["x-service-signature"]);
    const headers = sent?.headers as Record<string, string>;
    new StandardWebhook(webhook.standard_secret).verify(sent?.rawBody.toString() ?? "", headers);
  });

  it("are replayed, counted first, and the replay is paused, resumed and cancelled", async () => {
    const webhook = await subscribeOrders(ada, `${scene.receiver.url}/replayed`);
    await createOrder(ada);
    await deliveryOf(ada, webhook.id, "delivered");
    scene.receiver.answer = { status: 500 };
    await createOrder(ada);
    const { id } = await deliveryOf(ada, webhook.id, "retrying");
    await ada.request("POST", `/webhook-deliveries/${id}/retry`);
    await deliveryOf(ada, webhook.id, "failed");

    const shown = await scene.open(ada.token, `/deliveries/${id}`);
    const { page } = shown;
    await page.getByText("It failed: all 2 attempts are spent.").waitFor();
    await picture(shown, "console-delivery");
    await page.getByRole("link", { name: String(webhook.id), exact: true }).click();
    const choose = async (kind: RegExp): Promise<void> => {
      for (const box of await page
        .getByRole("checkbox", { name: /^(failed|never created|cancelled|delivered)/ })
        .all())
        await box.uncheck();
      await page.getByRole("checkbox", { name: kind }).check();
      await page.getByRole("button", { name: "Count them first" }).click();
    };
    await page.getByRole("link", { name: "Replay" }).click();
    await choose(/^cancelled/);
    await page.getByText("No event matches.").waitFor();
    await choose(/^failed/);
    await page.getByText("1 event would be delivered again.").waitFor();
    expect(await page.getByLabel("Of the resource").count()).to.equal(0);
    // An incomplete time reads as empty, which would mean "until now".
    await page.getByLabel("Until").focus();
    await page.keyboard.type("02");
    for (const name of ["Count them first", "Deliver 1 event again"]) {
      await page.getByRole("button", { name }).click();
      await page.getByText("Fill in the whole date and time, or clear it.").waitFor();
      await page.locator("input[type=datetime-local]:focus").waitFor();
    }
    await page.getByLabel("Until").fill("2099-01-01T00:00");
    await page.getByLabel("Until").fill("");
    await choose(/^failed/);
    await page.getByText("1 event would be delivered again.").waitFor();
    await expectSoundAtAnyWidth(shown);
    await picture(shown, "console-replay");
    await page.getByRole("button", { name: "Deliver 1 event again" }).click();
    await page.getByRole("heading", { name: /^Replay \d+$/ }).waitFor();
    await page.getByText("1 of 1 events").waitFor();
    await page.getByText("All deliveries are created.").waitFor();
    await expectSoundAtAnyWidth(shown);

    const { sql } = scene.service.infrastructure;
    await sql(`CREATE FUNCTION svc.test_stand() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF NEW.cursor <> OLD.cursor THEN RAISE EXCEPTION 'not yet'; END IF; RETURN NEW; END $$`);
    await sql(
      "CREATE TRIGGER test_stand BEFORE UPDATE ON svc.replays FOR EACH ROW EXECUTE FUNCTION svc.test_stand()",
    );
    const form = page.url().replace(/\/\d+$/, "");
    await page.goto(form);
    await choose(/^delivered/);
    await page.getByRole("button", { name: /^Deliver \d events? again$/ }).click();
    await page.getByText(/^0 of \d events?$/).waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Resume" }).waitFor();
    await expectSoundAtAnyWidth(shown);

    await page.goto(form);
    await choose(/^delivered/);
    await page.getByRole("button", { name: /^Deliver \d events? again$/ }).click();
    await page.getByRole("link", { name: /^To replay \d+$/ }).click();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Pause" }).waitFor();
    await page.getByRole("button", { name: "Cancel the replay" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel the replay" }).click();
    await page.getByText("What waited was cancelled.").waitFor();
    await sql("DROP FUNCTION svc.test_stand CASCADE");
  });

  it("show why they are not replayed after others have changed the webhook", async () => {
    const webhook = await subscribeOrders(ada, `${scene.receiver.url}/changed`);
    await createOrder(ada);
    await deliveryOf(ada, webhook.id, "delivered");
    const shown = await scene.open(ada.token, `/webhooks/${webhook.id}/replay`);
    const { page } = shown;
    await page.getByRole("checkbox", { name: /^delivered/ }).check();
    await page.getByRole("button", { name: "Count them first" }).click();
    await page.getByText("1 event would be delivered again.").waitFor();
    await ada.request("PATCH", `/webhooks/${webhook.id}`, { is_active: false });
    await page.getByRole("button", { name: "Deliver 1 event again" }).click();
    await page.getByText("The webhook is off: switch it on first").waitFor();

    await ada.request("PATCH", `/webhooks/${webhook.id}`, { is_active: true, events: ["on_create"] });
    await page.getByRole("button", { name: "Deliver 1 event again" }).click();
    await page.getByText("The events field must list some of on_create.").waitFor();
    await expectSoundAtAnyWidth(shown);
  });

  it("can be replayed for one resource of a webhook for all", async () => {
    const webhook = await subscribeOrders(ada, `${scene.receiver.url}/every`, { resource: "*" });
    await createOrder(ada);
    await until(
      async () =>
        (await ada.request("GET", `/webhook-deliveries?webhook_id=${webhook.id}&status=delivered`)).body.data
          .length === 2,
      { what: "the order and its customer", timeoutMs: 60_000 },
    );
    const shown = await scene.open(ada.token, `/webhooks/${webhook.id}/replay`);
    const { page } = shown;
    await page.getByRole("checkbox", { name: /^delivered/ }).check();
    await page.getByRole("button", { name: "Count them first" }).click();
    await page.getByText("2 events would be delivered again.").waitFor();
    await page.getByLabel("Of the resource").selectOption("customers");
    await page.getByRole("button", { name: "Count them first" }).click();
    await page.getByText("1 event would be delivered again.").waitFor();
    await expectSoundAtAnyWidth(shown);
    await page.getByRole("button", { name: "Deliver 1 event again" }).click();
    await page.getByRole("heading", { name: /^Replay \d+$/ }).waitFor();
    const { body } = await ada.request("GET", `/webhook-replays/${page.url().split("/").at(-1)}`);
    expect(body.resource).to.equal("customers");
  });

  it("stay while the service is down, and are updated afterwards", async () => {
    const webhook = await subscribeOrders(ada, `${scene.receiver.url}/away`);
    await createOrder(ada);
    const { id } = await deliveryOf(ada, webhook.id, "delivered");
    const shown = await scene.open(ada.token, "/deliveries");
    const { page } = shown;
    await page.getByRole("cell", { name: "delivered" }).waitFor();

    await page.route("**/svc-api/**", (route) => route.abort("connectionrefused"));
    await page.goto(`${new URL(scene.service.baseUrl).origin}/console/deliveries/${id}`);
    await page.getByText("The service does not answer").first().waitFor();
    await page.unroute("**/svc-api/**");
    await page.getByText("It arrived at the first attempt.").waitFor();

    await page.route("**/svc-api/**", async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      await route.continue();
    });
    await page.reload();
    await page.getByText("Loading").first().waitFor();
    await page.getByText("It arrived at the first attempt.").waitFor();
    await expectSound(shown);
  });

  it("report an invalid time, such as a year with too many digits", async () => {
    const shown = await scene.open(ada.token, "/deliveries?created_before=2026-01-01T00:00:00Z");
    const { page } = shown;
    await page.getByLabel("Created after").fill("20266-01-01T00:00");
    await page.getByLabel("Created after").blur();
    await page.getByText("The created after field must be a date").waitFor();
    await expectSound(shown);
    await page.getByRole("button", { name: "Show the list without that" }).click();
    await page.getByText("Nothing matches").waitFor();
  });

  it("of others are not shown", async () => {
    const webhook = await subscribeOrders(ada, `${scene.receiver.url}/hers`);
    await createOrder(ada);
    const { id } = await deliveryOf(ada, webhook.id, "delivered");
    const eve = await scene.service.createUser();
    const shown = await scene.open(eve.token, `/deliveries/${id}`);
    await shown.page.getByText("The webhook delivery could not be found.").waitFor();
    await expectSound(shown);
    await shown.page.goto(`${new URL(scene.service.baseUrl).origin}/console/webhooks/${webhook.id}/replay`);
    await shown.page.getByText("The webhook subscription could not be found.").waitFor();
  });
});
