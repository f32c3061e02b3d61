import { expect } from "chai";
import type { Page } from "playwright-core";
import { until } from "../support/wait.ts";
import { sceneOfSuite, userOfTest } from "./console-scene.ts";
import { createOrder, deliveryOf, shopResources, subscribeOrders } from "./console-shop.ts";

/** Requests of one kind that are held back. */
interface Held {
  readonly count: () => number;
  /** Resolves when the first of them has arrived. */
  readonly came: () => Promise<unknown>;
  readonly letGo: () => void;
}

/** Returns a promise, and the function that resolves it. */
function gate(): { readonly opens: Promise<void>; readonly open: () => void } {
  const waiting: (() => void)[] = [];
  const opens = new Promise<void>((resolve) => waiting.push(resolve));
  return { opens, open: () => waiting.forEach((resolve) => resolve()) };
}

async function hold(page: Page, url: string, method: string): Promise<Held> {
  let count = 0;
  const way = gate();
  await page.route(url, async (route) => {
    if (route.request().method() !== method) return route.fallback();
    count += 1;
    await way.opens;
    return route.continue();
  });
  return {
    count: () => count,
    came: () => until(() => count > 0, { what: `a ${method} of ${url}` }),
    letGo: () => way.open(),
  };
}

/** Presses twice in one turn of the page, like a double click on a busy page. */
async function pressTwice(page: Page, name: string): Promise<void> {
  await page.evaluate(`(() => {
    const button = [...document.querySelectorAll("button")].findLast((one) => one.textContent === ${JSON.stringify(name)});
    button.click();
    button.click();
  })()`);
}

/**
 * Drops the first answer to a POST of each matching address, after the service has given it.
 * Returns the ids in these answers, by address.
 */
async function loseAnswers(page: Page, url: RegExp): Promise<ReadonlyMap<string, unknown>> {
  const lost = new Map<string, unknown>();
  await page.route(url, async (route) => {
    const request = route.request();
    const body = request.postDataJSON() as { readonly dry_run?: boolean } | null;
    if (request.method() !== "POST" || body?.dry_run === true || lost.has(request.url()))
      return route.fallback();
    lost.set(request.url(), undefined);
    const { id } = (await (await route.fetch()).json()) as { readonly id: unknown };
    lost.set(request.url(), id);
    return route.fulfill({ status: 504, json: {} });
  });
  return lost;
}

/** Presses a button until its answer arrives, which is the second time. */
async function pressUntilMade(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name, exact: true }).click();
  await page.getByText("whether this was done is not known").waitFor();
  await page.getByRole("button", { name, exact: true }).click();
}

describe("the console while an answer is slow", function () {
  this.timeout(240_000);
  const scene = sceneOfSuite({ resources: shopResources });
  const ada = userOfTest(scene);

  it("creates one webhook for a double click, and asks before its secret is left", async () => {
    const shown = await scene.open(ada.token, "/webhooks/new");
    const { page } = shown;
    await page.getByLabel("Resource").selectOption("orders");
    await page.getByRole("button", { name: "Next: where" }).click();
    await page.getByLabel("URL").fill(scene.receiver.url);
    const posts = await hold(page, "**/svc-api/webhooks", "POST");
    await pressTwice(page, "Create the webhook");
    await posts.came();
    const asks = page.waitForEvent("dialog");
    const left = page.getByRole("link", { name: "Overview" }).click();
    await (await asks).dismiss();
    await left;
    posts.letGo();
    await page.getByText("This is shown once").waitFor();

    expect(posts.count()).to.equal(1);
    expect((await ada.request("GET", "/webhooks")).body.data).to.have.length(1);
  });

  it("creates one webhook and one token, and rotates a secret once, although the answers are lost", async () => {
    const shown = await scene.open(ada.token, "/webhooks/new");
    const { page } = shown;
    const lost = await loseAnswers(page, /\/svc-api\/(webhooks|tokens|.*rotate-secret)$/);
    await page.getByLabel("Resource").selectOption("orders");
    await page.getByRole("button", { name: "Next: where" }).click();
    await page.getByLabel("URL").fill(scene.receiver.url);
    await pressUntilMade(page, "Create the webhook");
    await page.getByRole("button", { name: "I have stored it" }).click();
    await page.getByRole("button", { name: "More actions" }).click();
    await page.getByRole("menuitem", { name: "Rotate the secret" }).click();
    await pressUntilMade(page, "Rotate");
    await page.getByRole("dialog", { name: "The new secret" }).waitFor();
    await page.getByRole("button", { name: "I have stored it" }).click();
    await page.goto(`${new URL(page.url()).origin}/console/admin/tokens`);
    await page.getByRole("button", { name: "New token" }).click();
    await page.getByLabel("Name", { exact: true }).fill("of a bad line");
    await page.getByLabel("Expires").selectOption("in 30 days");
    await pressUntilMade(page, "Create the token");
    await page.getByRole("dialog", { name: "The new token" }).waitFor();

    expect(lost.size).to.equal(3);
    expect((await ada.request("GET", "/webhooks")).body.data).to.have.length(1);
    expect((await ada.request("GET", "/tokens")).body.data).to.have.length(2);
  });

  it("creates one user, one replay and one repeated delivery, although the answers are lost", async () => {
    const admin = await scene.service.createUser({ isAdmin: true });
    const webhook = await subscribeOrders(admin, scene.receiver.url);
    await createOrder(admin);
    const { id } = await deliveryOf(admin, webhook.id, "delivered");
    const { page } = await scene.open(admin.token, `/webhooks/${webhook.id}/replay`);
    const lost = await loseAnswers(page, /\/svc-api\/(users|.*\/retry|.*\/replay)$/);
    const isMadeAt = async (path: string): Promise<void> => {
      const [, made] = [...lost].at(-1) ?? [];
      await page.waitForURL(`**/console${path}/${String(made)}`);
    };
    await page.getByRole("checkbox", { name: /^delivered/ }).check();
    await page.getByRole("button", { name: "Count them first" }).click();
    await pressUntilMade(page, "Deliver 1 event again");
    await isMadeAt(`/webhooks/${webhook.id}/replay`);

    await page.goto(new URL(`/console/deliveries/${id}`, page.url()).href);
    await pressUntilMade(page, "Resend");
    await isMadeAt("/deliveries");

    await page.goto(new URL("/console/admin/users", page.url()).href);
    await page.getByRole("button", { name: "New user" }).click();
    await page.getByLabel("Name", { exact: true }).fill("Barbara");
    await page.getByLabel("E-mail", { exact: true }).fill(`barbara-${admin.id}@example.com`);
    await pressUntilMade(page, "Create the user");
    await isMadeAt("/admin/users");
    expect(lost.size).to.equal(3);
  });

  it("creates one token for repeated Enter, and shows it after any key", async () => {
    const shown = await scene.open(ada.token, "/admin/tokens");
    const { page } = shown;
    await page.getByRole("button", { name: "New token" }).click();
    const posts = await hold(page, "**/svc-api/tokens", "POST");
    await page.getByLabel("Name", { exact: true }).fill("of an impatient one");
    await page.keyboard.press("Enter");
    await posts.came();
    await page.getByRole("dialog").locator(".spinner").waitFor();
    await page.keyboard.press("Enter");
    await page.keyboard.press("Escape");
    expect(await page.getByRole("button", { name: "Cancel" }).isDisabled()).to.equal(true);
    posts.letGo();
    await page.getByRole("dialog", { name: "The new token" }).waitFor();

    await page.getByRole("button", { name: "I have stored it" }).click();
    expect((await ada.request("GET", "/tokens")).body.data).to.have.length(2);
    expect(posts.count()).to.equal(1);
  });

  it("rotates a secret once, and shows it after any key", async () => {
    const { id } = await subscribeOrders(ada, scene.receiver.url);
    const shown = await scene.open(ada.token, `/webhooks/${id}`);
    const { page } = shown;
    await page.getByRole("button", { name: "More actions" }).click();
    await page.getByRole("menuitem", { name: "Rotate the secret" }).click();
    const posts = await hold(page, "**/rotate-secret", "POST");
    await pressTwice(page, "Rotate");
    await page.getByRole("dialog").locator(".spinner").waitFor();
    await page.keyboard.press("Escape");
    posts.letGo();
    await page.getByRole("dialog", { name: "The new secret" }).waitFor();

    expect(posts.count()).to.equal(1);
  });

  it("shows a new secret before it has read the webhook again", async () => {
    const { id } = await subscribeOrders(ada, scene.receiver.url);
    const { page } = await scene.open(ada.token, `/webhooks/${id}`);
    await page.getByRole("button", { name: "More actions" }).click();
    await page.getByRole("menuitem", { name: "Rotate the secret" }).click();
    const reads = await hold(page, `**/svc-api/webhooks/${id}`, "GET");
    await page.getByRole("button", { name: "Rotate" }).click();
    await reads.came();
    await page.getByRole("dialog", { name: "The new secret" }).waitFor();
    reads.letGo();
  });

  it("stays on the page that was opened meanwhile", async () => {
    const shown = await scene.open(ada.token, "/resources/customers/-/new");
    const { page } = shown;
    page.on("dialog", (dialog) => void dialog.accept());
    await page.getByLabel("name").fill("Late");
    await page.getByLabel("email").fill(`late-${ada.id}@example.com`);
    const posts = await hold(page, "**/svc-api/resources/customers", "POST");
    await page.getByRole("button", { name: "Create" }).click();
    await posts.came();
    await page.getByRole("link", { name: "Webhooks" }).click();
    await page.getByRole("heading", { level: 1, name: "Webhooks" }).waitFor();
    posts.letGo();
    await page.getByText(/Created customers \d+/).waitFor();

    expect(new URL(page.url()).pathname).to.equal("/console/webhooks");
  });

  it("reports the result of an action whose question was closed", async () => {
    const { id } = await subscribeOrders(ada, scene.receiver.url);
    const shown = await scene.open(ada.token, `/webhooks/${id}`);
    const { page } = shown;
    await page.getByRole("button", { name: "Pause" }).click();
    const held = gate();
    await page.route(`**/svc-api/webhooks/${id}`, async (route) => {
      if (route.request().method() !== "PATCH") return route.fallback();
      await held.opens;
      return route.fulfill({ status: 429, json: { message: "Too many." } });
    });
    await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await page.getByRole("dialog").locator(".spinner").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    held.open();

    await page.locator(".toast.bad").getByText("Too many.").waitFor();
  });

  it("leads from a deleted webhook to the others, also when its question was closed", async () => {
    const { id } = await subscribeOrders(ada, scene.receiver.url);
    const shown = await scene.open(ada.token, `/webhooks/${id}`);
    const { page } = shown;
    await page.getByRole("button", { name: "More actions" }).click();
    await page.getByRole("menuitem", { name: "Delete the webhook" }).click();
    const deletes = await hold(page, `**/svc-api/webhooks/${id}`, "DELETE");
    await page.getByRole("button", { name: "Delete the webhook" }).click();
    await deletes.came();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    deletes.letGo();
    await page.getByText("The webhook is deleted.").waitFor();

    expect(new URL(page.url()).pathname).to.equal("/console/webhooks");
  });

  it("stays signed out when an answer to a sign-in comes after it", async () => {
    const { body: other } = await ada.request("POST", "/tokens", { name: "second" });
    const shown = await scene.open(other.token, "/resources/orders");
    const { page } = shown;
    await page.getByText("There are no orders").waitFor();
    await ada.request("DELETE", `/tokens/${other.id}`);
    await page.getByRole("button", { name: "Load again" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Token").fill(ada.token);
    const asked = await hold(page, "**/whoami", "GET");
    await page.keyboard.press("Enter");
    await asked.came();
    await dialog.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in to svc" }).waitFor();
    const answered = page.waitForResponse("**/whoami");
    asked.letGo();
    await (await answered).finished();

    expect(await page.evaluate("JSON.stringify({ ...sessionStorage })")).to.equal("{}");
    expect(await page.getByRole("heading", { name: "Sign in to svc" }).count()).to.equal(1);
  });

  it("reports a missing answer, of a list and of a change", async () => {
    const order = await createOrder(ada);
    const shown = await scene.open(null, "/resources/orders");
    const { page } = shown;
    const limits: unknown[] = [];
    await page.exposeFunction("noteLimit", (ms: unknown) => limits.push(ms));
    await page.addInitScript(`(() => {
      const real = AbortSignal.timeout.bind(AbortSignal);
      AbortSignal.timeout = (ms) => { window.noteLimit(ms); return real(window.isSilent ? 1 : ms); };
    })()`);
    await page.reload();
    await page.getByLabel("Token").fill(ada.token);
    await page.keyboard.press("Enter");
    await page.getByText("1 record").waitFor();
    const lists = await hold(page, "**/resources/orders?*", "GET");
    await page.evaluate("window.isSilent = true");
    await page.getByRole("button", { name: "amount", exact: true }).click();
    await page.getByText("No answer came within 90 seconds.").first().waitFor();
    lists.letGo();
    await page.evaluate("window.isSilent = false");
    await page.getByRole("button", { name: "Try again" }).click();
    await page.locator("a.row-link").click();
    await page.getByLabel("notes").fill("in time");
    const changes = await hold(page, `**/resources/orders/${order.id}`, "PATCH");
    await page.evaluate("window.isSilent = true");
    await page.getByRole("button", { name: "Save" }).click();
    await page.locator("form").getByText("Whether this was done is not known.").waitFor();
    changes.letGo();

    expect(new Set(limits)).to.deep.equal(new Set([90_000]));
  });

  it("says how a list may be answered that the service gives up", async () => {
    const shown = await scene.open(ada.token, "/resources");
    const { page } = shown;
    await page.route("**/resources/orders?*", (route) =>
      route.fulfill({ status: 503, json: { message: "Server Error", code: "server.unavailable" } }),
    );
    await page.getByRole("link", { name: "orders" }).click();
    await page.getByText("The service cannot answer at the moment").waitFor();
    await page.getByText(/ask for less: fewer rows, another filter/).waitFor();
  });

  it("requests a list again whose answer broke off", async () => {
    await createOrder(ada);
    const shown = await scene.open(ada.token, "/resources");
    const { page } = shown;
    await page.getByRole("link", { name: "orders" }).waitFor();
    await page.evaluate(`(() => {
      const real = window.fetch;
      let isBroken = true;
      window.fetch = (url, options) => {
        if (!isBroken || !String(url).includes("/resources/orders?")) return real(url, options);
        const body = new ReadableStream({ pull: (to) => to.error(new TypeError("network error")) });
        return Promise.resolve(new Response(body, { status: 200 }));
      };
      window.mend = () => { isBroken = false; };
    })()`);
    await page.getByRole("link", { name: "orders" }).click();
    await page.getByText("The service does not answer").waitFor();
    await page.evaluate("window.mend()");

    await page.getByText("1 record").waitFor();
  });
});
