import { expect } from "chai";
import { Webhook as StandardWebhook } from "standardwebhooks";
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

describe("the webhooks of the console", function () {
  this.timeout(240_000);
  const scene = sceneOfSuite({ resources: shopResources });
  const ada = userOfTest(scene);

  it("show the next step while there are none", async () => {
    const shown = await scene.open(ada.token, "/webhooks");
    await shown.page.getByText("No webhooks yet").waitFor();
    await expectSoundAtAnyWidth(shown);

    await shown.page.getByRole("link", { name: "New webhook" }).last().click();
    await shown.page.getByRole("heading", { name: "New webhook" }).waitFor();
  });

  it("are created in three steps, by the keyboard alone", async () => {
    await createOrder(ada, { amount: 40 });
    await createOrder(ada, { amount: 400 });
    const shown = await scene.open(ada.token, "/webhooks/new");
    const { page } = shown;

    await page.getByLabel("Resource").focus();
    await page.keyboard.type("orders");
    await page.keyboard.press("Tab");
    await page.getByText("2 of the last 2 would be sent.").waitFor();
    await page.getByLabel("Filter").focus();
    await page.keyboard.type('{"amount": {"gte": 100}}');
    await page.getByText("1 of the last 2 would be sent.").waitFor();
    await expectSoundAtAnyWidth(shown);
    await picture(shown, "console-webhook-what");
    await page.getByRole("button", { name: "Next: where" }).focus();
    await page.keyboard.press("Enter");

    await page.getByLabel("URL").and(page.locator(":focus")).waitFor();
    await page.keyboard.type(`${scene.receiver.url}/hook`);
    await page.keyboard.press("Tab");
    await page.keyboard.type("Orders of the shop");
    await page.getByRole("button", { name: "Add a header" }).focus();
    await page.keyboard.press("Enter");
    await page.getByLabel("Name of header 1").focus();
    await page.keyboard.type("Authorization");
    await page.keyboard.press("Tab");
    await page.keyboard.type("Bearer abc");
    await page.getByLabel("Attempts a second at most").focus();
    await page.keyboard.type("5");
    await expectSoundAtAnyWidth(shown);
    await picture(shown, "console-webhook-where");
    await page.keyboard.press("Enter");

    await page.getByText("This is shown once.").waitFor();
    await page.getByRole("list", { name: "Steps" }).and(page.locator(":focus")).waitFor();
    const [webhook] = (await ada.request("GET", "/webhooks")).body.data;
    expect(webhook).to.deep.include({
      url: `${scene.receiver.url}/hook`,
      description: "Orders of the shop",
      filter: { amount: { gte: 100 } },
      rate_limit: 5,
      headers: { Authorization: "****" },
    });
    const secret = await page.getByRole("region", { name: "Secret", exact: true }).innerText();
    expect(secret.slice(-4)).to.equal(webhook.masked_secret.slice(-4));
    for (const [language, sign] of [
      ["JavaScript", "export function isGenuine"],
      ["Python", "def is_genuine"],
      ["Go", "func IsGenuine"],
      ["PHP", "function is_genuine"],
      ["Ruby", "def genuine?"],
    ] as const) {
      await page.getByRole("tab", { name: language }).click();
      await page.getByLabel(`Code for ${language}`).getByText(sign).waitFor();
    }
    await page.getByRole("tab", { name: "Python" }).click();

    const count = scene.receiver.received.length;
    await page.getByRole("button", { name: "Send a ping" }).click();
    await page.getByText("The receiver took it with 200").waitFor();
    const ping = (await scene.receiver.waitFor(count + 1)).at(-1);
    expect(ping?.headers["authorization"]).to.equal("Bearer abc");
    await expectSoundAtAnyWidth(shown);
    await picture(shown, "console-webhook-secret");

    await page.getByRole("button", { name: "I have stored it" }).first().click();
    await page.getByRole("heading", { name: `Webhook ${webhook.id}` }).waitFor();
    await page.getByText("Orders of the shop").waitFor();
    const kept = (await page.evaluate(
      "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href]) + document.documentElement.outerHTML",
    )) as string;
    expect(kept).not.to.include(secret);
  });

  it("ask before a secret is left that was not stored", async () => {
    const shown = await scene.open(ada.token, "/webhooks");
    const { page } = shown;
    const asked: string[] = [];
    page.on("dialog", (dialog) => {
      asked.push(dialog.type());
      void dialog.dismiss();
    });
    const stays = async (...types: readonly string[]): Promise<void> => {
      await until(() => asked.length >= types.length, { what: "a question" });
      await page.getByText("This is shown once.").waitFor();
      expect(asked.splice(0)).to.deep.equal(types);
    };
    await page.getByRole("link", { name: "New webhook" }).first().click();
    await page.getByLabel("Resource").selectOption("orders");
    await page.getByRole("button", { name: "Next: where" }).click();
    await page.getByLabel("URL").fill(`${scene.receiver.url}/asked`);
    await page.getByLabel("Attempts a second at most").pressSequentially("2e");
    await page.getByRole("button", { name: "Create the webhook" }).click();
    await page.getByText("This is not a number.").waitFor();
    await page.getByLabel("Attempts a second at most").pressSequentially("0");
    await page.getByRole("button", { name: "Create the webhook" }).click();
    await page.getByText("This is shown once.").waitFor();

    await page.getByRole("link", { name: "Deliveries" }).click();
    await stays("confirm");
    await page.evaluate("history.back()");
    await stays("confirm");
    expect(page.url()).to.match(/\/webhooks\/new$/);
    await page.close({ runBeforeUnload: true });
    await stays("beforeunload");
    await page.getByRole("button", { name: "I have stored it" }).click();
    await page.getByRole("heading", { name: /^Webhook \d/ }).waitFor();

    await page.getByRole("button", { name: "More actions" }).click();
    await page.getByRole("menuitem", { name: "Rotate the secret" }).click();
    await page.getByRole("button", { name: "Rotate" }).click();
    await page.getByText("This is shown once.").waitFor();
    await page.evaluate("history.back()");
    await stays("confirm");
    await page.getByRole("button", { name: "I have stored it" }).click();
    await page.getByRole("link", { name: "Deliveries" }).click();
    await page.getByRole("heading", { name: "Deliveries", level: 1 }).waitFor();
    expect(asked).to.deep.equal([]);
  });

  it("show the messages of the server at their fields, on the step that has them", async () => {
    const shown = await scene.open(ada.token, "/webhooks/new");
    const { page } = shown;
    await page.getByLabel("Resource").selectOption("orders");
    await page.getByLabel("Filter").fill('{"amuont": 1}');
    await page.getByText("amuont: There is no field amuont; did you mean amount?").waitFor();
    await page.getByLabel("Filter").fill('{"amount": ');
    await page.getByText("This is no JSON yet").waitFor();
    expect(await page.getByRole("button", { name: "Next: where" }).isDisabled()).to.equal(true);
    await page.getByLabel("Filter").fill("");
    await page.getByRole("button", { name: "Next: where" }).click();

    await page.getByLabel("URL").fill("http://10.0.0.1/hook");
    await page.getByLabel("Secret of your own").fill("short");
    await page.getByRole("button", { name: "Create the webhook" }).click();

    await page.getByText("The secret field must be at least 24 characters.").first().waitFor();
    expect(await page.getByLabel("URL").getAttribute("aria-invalid")).to.equal("true");
    await expectSoundAtAnyWidth(shown);
    expect((await ada.request("GET", "/webhooks")).body.data).to.deep.equal([]);
  });

  it("are changed, and keep the other values, including changes of others", async () => {
    const { id } = await subscribeOrders(ada, `${scene.receiver.url}/old`, {
      headers: { "X-Key": "abc" },
      rate_limit: 5,
    });
    const shown = await scene.open(ada.token, `/webhooks/${id}`);
    const { page } = shown;
    await page.getByRole("button", { name: "Edit" }).click();
    expect(await page.getByLabel("Resource").isDisabled()).to.equal(true);

    await page.getByLabel("URL").fill(`${scene.receiver.url}/new`);
    await page.getByLabel("Filter").fill('{"status": "paid"}');
    await page.getByRole("checkbox", { name: /updated/ }).uncheck();
    // An incomplete number reads as empty, and would remove the limit.
    const limit = page.getByLabel("Attempts a second at most");
    await limit.fill("");
    await limit.pressSequentially("2e");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("This is not a number.").waitFor();
    expect(await limit.getAttribute("aria-invalid")).to.equal("true");
    await expectSoundAtAnyWidth(shown);
    await limit.pressSequentially("0");
    await ada.request("PATCH", `/webhooks/${id}`, { description: "Of a colleague" });
    await page.getByRole("button", { name: "Save" }).click();

    await page.getByText("The webhook is changed.").waitFor();
    await page.getByRole("button", { name: "Edit" }).and(page.locator(":focus")).waitFor();
    const changed = (await ada.request("GET", `/webhooks/${id}`)).body;
    expect(changed).to.deep.include({
      url: `${scene.receiver.url}/new`,
      filter: { status: "paid" },
      events: ["on_create"],
      headers: { "X-Key": "****" },
      description: "Of a colleague",
      rate_limit: 2,
    });
  });

  it("are paused and resumed, and held deliveries go out or are discarded", async () => {
    const { id } = await subscribeOrders(ada, `${scene.receiver.url}/held`);
    const shown = await scene.open(ada.token, `/webhooks/${id}`);
    const { page } = shown;
    const pause = async (): Promise<void> => {
      await page.getByRole("button", { name: "Pause" }).click();
      await page.getByRole("dialog").getByText("Its deliveries are held").waitFor();
      await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
      await page.getByText("Paused, with its deliveries held,").waitFor();
    };
    await pause();
    await createOrder(ada);
    await page.getByRole("cell", { name: "held" }).first().waitFor();
    await expectSoundAtAnyWidth(shown);
    const count = scene.receiver.received.length;
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByText("The webhook is active.").waitFor();
    await scene.receiver.waitFor(count + 1, { timeoutMs: 60_000 });

    await pause();
    await createOrder(ada);
    await deliveryOf(ada, id, "held");
    await page.getByRole("button", { name: "More actions" }).click();
    await page.getByRole("menuitem", { name: "Discard held deliveries" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Discard" }).click();
    await page.getByText("1 delivery will be cancelled in a moment.").waitFor();
    await deliveryOf(ada, id, "cancelled");
  });

  it("get a new secret, beside which the old one signs for a while", async () => {
    const old = await subscribeOrders(ada, `${scene.receiver.url}/rotated`);
    const shown = await scene.open(ada.token, `/webhooks/${old.id}`);
    const { page } = shown;
    await page.getByRole("button", { name: "More actions" }).click();
    await page.getByRole("menuitem", { name: "Rotate the secret" }).click();
    await page.getByLabel("Grace period").selectOption({ label: "an hour" });
    await page.getByRole("button", { name: "Rotate" }).click();
    await page.getByText("The old one signs beside it until").waitFor();
    await page.setViewportSize({ width: 390, height: 900 });
    const isWhole =
      "[...document.querySelectorAll('.dialog pre')].every((one) => one.scrollWidth <= one.clientWidth)";
    expect(await page.evaluate(isWhole)).to.equal(true);
    await expectSoundAtAnyWidth(shown);
    const standard = await page.getByRole("region", { name: /^Secret for libraries/ }).innerText();
    await page.getByRole("button", { name: "I have stored it" }).click();
    await page.locator("button[aria-label='More actions']:focus").waitFor();
    await page.getByText("signs too, until").waitFor();

    const count = scene.receiver.received.length;
    await createOrder(ada);
    const request = (await scene.receiver.waitFor(count + 1, { timeoutMs: 60_000 })).at(-1);
    for (const secret of [standard, old.standard_secret])
      new StandardWebhook(secret).verify(
        request?.rawBody.toString() ?? "",
        request?.headers as Record<string, string>,
      );
  });

  it("are deleted after a description of the effect", async () => {
    const { id } = await subscribeOrders(ada, `${scene.receiver.url}/deleted`);
    const shown = await scene.open(ada.token, `/webhooks/${id}`);
    const { page } = shown;
    await page.getByRole("button", { name: "More actions" }).click();
    await page.getByRole("menuitem", { name: "Delete the webhook" }).click();
    await page.getByText("This cannot be undone").waitFor();
    await page.keyboard.press("Escape");
    expect((await ada.request("GET", `/webhooks/${id}`)).status).to.equal(200);

    await page.getByRole("button", { name: "More actions" }).click();
    await page.getByRole("menuitem", { name: "Delete the webhook" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete the webhook" }).click();
    await page.getByText("No webhooks yet").waitFor();
    expect((await ada.request("GET", `/webhooks/${id}`)).status).to.equal(404);
  });

  it("show the answer of a receiver that fails, with the reason in a sentence", async () => {
    scene.receiver.answer = { status: 404, body: hostile[1], headers: { "x-odd": hostile[0] } };
    const { id } = await subscribeOrders(ada, `${scene.receiver.url}/wrong`);
    const shown = await scene.open(ada.token, `/webhooks/${id}`);
    await shown.page.getByRole("button", { name: "Send a ping" }).click();

    await shown.page.getByText("The receiver answered 404 Not Found. Check the path of the URL.").waitFor();
    await shown.page.getByText(/^The answer of 127/).click();
    await shown.page.getByText(hostile[1]).waitFor();
    await shown.page.getByText("Wait", { exact: true }).waitFor();
    await expectSoundAtAnyWidth(shown);
  });

  it("show their health at a glance, and hostile texts as texts", async () => {
    const { sql } = scene.service.infrastructure;
    const made: number[] = [];
    for (const [index, text] of hostile.entries()) {
      const url = `${scene.receiver.url}/${index}?q=${encodeURIComponent(text)}`;
      made.push((await subscribeOrders(ada, url, { description: text })).id);
    }
    const [well, failing, paused, gone] = made;
    await sql("UPDATE svc.subscription_state SET last_success_at = now() WHERE subscription_id = $1", [well]);
    await sql(
      "UPDATE svc.subscription_state SET failing_since = now() - interval '3 hours' WHERE subscription_id = $1",
      [failing],
    );
    await ada.request("PATCH", `/webhooks/${paused}`, { is_active: false });
    await sql(
      "UPDATE svc.subscriptions SET is_active = false, disabled_at = now(), disabled_reason = 'gone' WHERE id = $1",
      [gone],
    );
    const shown = await scene.open(ada.token, "/webhooks", { width: 390 });
    const { page } = shown;
    for (const word of ["healthy", "failing", "paused", "gone"])
      await page.getByRole("cell", { name: new RegExp(`^${word}`) }).waitFor();
    for (const text of hostile) await page.getByText(text, { exact: true }).first().waitFor();
    await expectSoundAtAnyWidth(shown);
    await picture(shown, "console-webhooks");

    await page.getByLabel("State").selectOption({ label: "off" });
    await until(async () => (await page.getByRole("row").count()) === 3, {
      what: "two rows and their head",
    });
    expect(page.url()).to.include("filter[is_active]=false");
    await page.reload();
    await page.getByRole("cell", { name: /^gone/ }).waitFor();
    await page.getByLabel("Resource").selectOption("every resource");
    await page.getByText("Nothing matches").waitFor();
    await page.getByLabel("Resource").selectOption("orders");
    await page.getByRole("cell", { name: /^gone/ }).waitFor();

    await page.goto(`${new URL(scene.service.baseUrl).origin}/console/webhooks/${failing}`);
    await page.getByText("Every attempt has failed, the first").waitFor();
    await expectSoundAtAnyWidth(shown);
    await picture(shown, "console-webhook");
  });

  it("of others are visible to an admin, and to no other user", async () => {
    const admin = await scene.service.createUser({ isAdmin: true });
    const { id } = await subscribeOrders(ada, `${scene.receiver.url}/hers`);
    const other = await scene.service.createUser();

    const refused = await scene.open(other.token, `/webhooks/${id}`);
    await refused.page.getByText("The webhook subscription could not be found.").waitFor();
    await expectSound(refused);

    const shown = await scene.open(admin.token, `/admin/users/${ada.id}`);
    await shown.page.getByRole("main").getByRole("link", { name: "Webhooks" }).click();
    await shown.page.getByRole("link", { name: /\/hers/ }).click();
    await shown.page.getByText(`This webhook belongs to user ${ada.id}`).waitFor();
    expect(await shown.page.getByRole("button", { name: "Send a ping" }).count()).to.equal(0);
    await expectSound(shown);
    await shown.page.getByRole("link", { name: `user ${ada.id}` }).click();
    await shown.page.getByText(ada.email).waitFor();
  });

  it("say which scope is missing", async () => {
    const narrow = await scene.service.api.tokens.issue({
      userId: ada.id,
      name: "n",
      scopes: ["orders:read"],
    });
    for (const path of ["/webhooks", "/deliveries", "/webhooks/new"]) {
      const shown = await scene.open(narrow.token, path);
      const { page } = shown;
      await page.getByText("This token lacks the scope webhooks.").waitFor();
      await page.getByRole("link", { name: "New webhook" }).waitFor({ state: "detached" });
      await page.getByRole("button", { name: "Next: where" }).waitFor({ state: "detached" });
      await expectSound(shown);
    }
  });

  it("try a filter on nothing while no event is selected", async () => {
    await createOrder(ada);
    const shown = await scene.open(ada.token, "/webhooks/new");
    const { page } = shown;
    await page.getByLabel("Resource").selectOption("orders");
    await page.getByText("of the last 1 would be sent").waitFor();
    for (const box of await page.getByRole("checkbox").all()) await box.uncheck();
    await page.getByText("Choose an event first.").waitFor();

    expect(await page.getByText(/would be sent|Nothing of the kind/).count()).to.equal(0);
  });
});
