import { expect } from "chai";
import { request } from "../support/service.ts";
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

describe("the events of the console", function () {
  this.timeout(240_000);
  const scene = sceneOfSuite({ resources: shopResources });
  const ada = userOfTest(scene);

  /** Waits for the events of a user's orders: open transactions hold back the newest. */
  const untilEvents = (count: number): Promise<unknown> =>
    until(
      async () =>
        (await ada.request("GET", "/events?resource=orders&before=&per_page=100")).body.data.length >= count,
      { what: `${count} events`, timeoutMs: 60_000 },
    );

  it("show the next step while there are none", async () => {
    const shown = await scene.open(ada.token, "/events?resource=orders");
    await shown.page.getByText("Nothing matches").waitFor();
    await shown.page.getByText("live", { exact: true }).waitFor();
    await expectSound(shown);
  });

  it("are listed newest first, and appear live", async () => {
    await createOrder(ada, { notes: hostile[0] });
    const order = await createOrder(ada, { notes: hostile[1] });
    await untilEvents(2);
    const shown = await scene.open(ada.token, "/events?resource=orders", { width: 390 });
    const { page } = shown;
    const rows = page.getByRole("row");
    await page.getByText("live", { exact: true }).waitFor();
    await until(async () => (await rows.count()) === 3, { what: "two rows and their head" });
    expect(await rows.nth(1).innerText()).to.include(`orders ${order.id}`);

    await ada.request("PATCH", `/resources/orders/${order.id}`, { notes: hostile[2] });
    await until(async () => (await rows.count()) === 4, {
      what: "the event that happened",
      timeoutMs: 60_000,
    });
    expect(await rows.nth(1).innerText()).to.include("updated");
    await page.getByText("3 events, 1 of them since you came").waitFor();
    await expectSoundAtAnyWidth(shown);
    await picture(shown, "console-events");

    await page.getByLabel("Event", { exact: true }).selectOption({ label: "updated" });
    await until(async () => (await rows.count()) === 2, { what: "the one that updated" });
    await page.getByRole("button", { name: "Clear" }).click();
    await page.getByRole("button", { name: "Pause" }).click();
    await until(async () => (await page.getByText("live", { exact: true }).count()) === 0, {
      what: "a pause",
    });
  });

  it("miss nothing when the stream breaks", async () => {
    await createOrder(ada, { notes: "first" });
    await untilEvents(1);
    const [first] = (await ada.request("GET", "/events?resource=orders&before=")).body.data;
    const shown = await scene.open(ada.token, "/events?resource=orders");
    const { page } = shown;
    await page.getByText("live", { exact: true }).waitFor();
    const asked: (string | undefined)[] = [];
    // A stream that ends after one event, then none, then the real one.
    const event = {
      ...first,
      id: first.id + 1,
      uuid: "00000000-0000-4000-8000-000000000000",
      record_id: "from the stream",
    };
    const broken = `id: ${event.id}\ndata: ${JSON.stringify(event)}\n\nid: ${event.id}\ndata: {"broken`;
    await page.route("**/events/stream*", async (route) => {
      asked.push(route.request().headers()["last-event-id"]);
      if (asked.length === 1) await route.fulfill({ contentType: "text/event-stream", body: broken });
      else await route.abort("connectionrefused");
    });
    await page.reload();
    await page.getByText("from the stream").waitFor();
    await page.getByText("connecting again").waitFor();
    await createOrder(ada, { notes: "second" });
    await createOrder(ada, { notes: "meanwhile" });
    await page.unroute("**/events/stream*");

    await page.getByText('"meanwhile"').waitFor({ timeout: 60_000 });
    await page.getByText("live", { exact: true }).waitFor();
    expect(asked.slice(0, 2)).to.deep.equal([String(first.id), String(event.id)]);
  });

  it("continue without a gap beyond the shown ones", async () => {
    await createOrder(ada);
    await untilEvents(1);
    const [first] = (await ada.request("GET", "/events?resource=orders&before=")).body.data;
    const shown = await scene.open(null, "/events?resource=orders");
    const { page } = shown;
    const streamed = Array.from({ length: 510 }, (_, index) => ({
      ...first,
      id: first.id + 1 + index,
      uuid: `00000000-0000-4000-8000-${String(index).padStart(12, "0")}`,
      record_id: `streamed-${index}`,
    }));
    const body = streamed.map((event) => `id: ${event.id}\ndata: ${JSON.stringify(event)}\n\n`).join("");
    await page.route("**/events/stream*", async (route) => {
      const isFirst = route.request().headers()["last-event-id"] === String(first.id);
      await (isFirst
        ? route.fulfill({ contentType: "text/event-stream", body })
        : route.abort("connectionrefused"));
    });
    await page.getByLabel("Token").fill(ada.token);
    await page.keyboard.press("Enter");
    await page.getByText("streamed-509").waitFor();
    await page.getByText("500 events").waitFor();

    const last = page.getByRole("row").last();
    expect(await last.innerText()).to.include("streamed-10");
    await page.getByRole("button", { name: "Older" }).click();
    await until(() => new URL(page.url()).searchParams.get("before") === String(first.id + 11), {
      what: "the page behind the last that was shown",
    });
  });

  it("request another stream when one sends nothing any more, not even a comment", async () => {
    const shown = await scene.open(null, "/events?resource=orders");
    const { page } = shown;
    await page.clock.install();
    await page.addInitScript(`(() => {
      const real = window.fetch;
      window.streams = 0;
      window.fetch = (url, options) => {
        if (!String(url).includes("/events/stream") || ++window.streams > 1) return real(url, options);
        const body = new ReadableStream({
          start: (to) => options.signal.addEventListener("abort", () => to.error(options.signal.reason)),
        });
        return Promise.resolve(new Response(body, { status: 200 }));
      };
    })()`);
    await page.reload();
    await page.getByLabel("Token").fill(ada.token);
    await page.keyboard.press("Enter");
    await page.getByText("live", { exact: true }).waitFor();
    await page.clock.fastForward(50_000);
    await until(async () => (await page.evaluate("window.streams")) === 2, { what: "another stream" });
    await createOrder(ada, { notes: "heard again" });
    await page.getByText('"heard again"').waitFor({ timeout: 60_000 });
  });

  it("continue after another sign-in", async () => {
    const shown = await scene.open(ada.token, "/events?resource=orders");
    const { page } = shown;
    await page.getByText("live", { exact: true }).waitFor();
    let count = 0;
    await page.route("**/events/stream*", async (route) => {
      count += 1;
      if (count === 1) await route.fulfill({ status: 401, json: { message: "The token has ended." } });
      else await route.continue();
    });
    await page.reload();
    const dialog = page.getByRole("dialog", { name: "Sign in again" });
    await dialog.getByLabel("Token").fill(ada.token);
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "detached" });
    await page.getByText("live", { exact: true }).waitFor();
  });

  it("lead back page by page to the first", async () => {
    const { id } = await createOrder(ada);
    for (let amount = 1; amount <= 54; amount += 1)
      await ada.request("PATCH", `/resources/orders/${id}`, { amount });
    await untilEvents(55);
    const shown = await scene.open(ada.token, `/events?resource=orders&record_id=${id}`);
    const { page } = shown;
    const rows = page.getByRole("row");
    await until(async () => (await rows.count()) === 51, { what: "a page" });
    await page.getByRole("button", { name: "Older" }).click();
    await until(async () => (await rows.count()) === 6, { what: "the rest" });
    expect(await rows.last().innerText()).to.include("created");
    expect(await page.getByRole("button", { name: "Older" }).isDisabled()).to.equal(true);
    await page.getByRole("button", { name: "To the newest" }).click();
    await until(async () => (await rows.count()) === 51, { what: "the newest" });
  });

  it("are followed after the scanned ones, even when none of these is the caller's", async () => {
    const shown = await scene.open(null, "/events?resource=orders");
    const { page } = shown;
    // One page reads 5,000 events.
    const looked = { data: [], per_page: 50, next_cursor: "4711", prev_cursor: null };
    await page.route("**/events?*", (route) => route.fulfill({ json: looked }));
    const asked = page.waitForRequest("**/events/stream*");
    await page.getByLabel("Token").fill(ada.token);
    await page.keyboard.press("Enter");

    expect((await asked).headers()["last-event-id"]).to.equal("4711");
  });

  it("show the record at that time, and its deliveries", async () => {
    const webhook = await subscribeOrders(ada, `${scene.receiver.url}/orders`);
    await createOrder(ada, { notes: hostile.join(" ") });
    const delivery = await deliveryOf(ada, webhook.id, "delivered");
    const shown = await scene.open(ada.token, `/events/${delivery.event_uuid}`, { width: 390 });
    const { page } = shown;
    await page.getByText('"kind": "order"').waitFor();
    await page.getByRole("cell", { name: "delivered" }).waitFor();
    await expectSoundAtAnyWidth(shown);
    await picture(shown, "console-event");
    await page.getByRole("link", { name: /127\.0\.0\.1/ }).click();
    await page.getByRole("heading", { name: `Delivery ${delivery.id}` }).waitFor();
  });

  it("of others are not shown, and the missing scope of a token is named", async () => {
    await createOrder(ada);
    await untilEvents(1);
    const [event] = (await ada.request("GET", "/events?resource=orders&before=")).body.data;
    const eve = await scene.service.createUser();
    const shown = await scene.open(eve.token, `/events/${event.uuid}`);
    await shown.page.getByText("The event could not be found.").waitFor();
    await expectSound(shown);

    const { token } = await scene.service.api.tokens.issue({
      userId: eve.id,
      name: "n",
      scopes: ["webhooks"],
    });
    const answer = await request({ url: `${scene.service.baseUrl}/events?before=`, method: "GET", token });
    const narrow = await scene.open(token, "/events");
    await narrow.page.getByText(answer.body.message).first().waitFor();
    await expectSound(narrow);
  });
});
