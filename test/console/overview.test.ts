import { expect } from "chai";
import { until } from "../support/wait.ts";
import { expectSound, expectSoundAtAnyWidth, picture, sceneOfSuite, userOfTest } from "./console-scene.ts";
import { createOrder, deliveryOf, shopResources, subscribeOrders } from "./console-shop.ts";

describe("the overview of the console", function () {
  this.timeout(240_000);
  const scene = sceneOfSuite({ resources: shopResources });
  const ada = userOfTest(scene);
  const admin = userOfTest(scene, { isAdmin: true, name: "Grace" });

  it("says what to do first", async () => {
    const shown = await scene.open(ada.token, "/");
    await shown.page.getByText("Nothing has happened yet this week").waitFor();
    await expectSoundAtAnyWidth(shown);
  });

  it("offers no first step that the token may not take", async () => {
    const { token } = await scene.service.api.tokens.issue({ userId: ada.id, name: "r", scopes: ["read"] });
    const { page } = await scene.open(token, "/");
    await page.getByText("Nothing has happened yet this week").waitFor();
    expect(await page.getByRole("link", { name: /Create a record|Add a webhook/ }).count()).to.equal(0);
  });

  it("offers the section for admins only to them", async () => {
    const shown = await scene.open(ada.token, "/");
    await shown.page.getByText("Nothing has happened yet this week").waitFor();
    expect(await shown.page.getByRole("link", { name: "Admin" }).count()).to.equal(0);

    const other = await scene.open(admin.token, "/");
    await other.page.getByRole("link", { name: "Admin" }).waitFor();
  });

  it("draws changes, deliveries and failures over the hour, the day and the week", async () => {
    const webhook = await subscribeOrders(ada, `${scene.receiver.url}/hook`);
    for (let count = 0; count < 3; count += 1) await createOrder(ada);
    await deliveryOf(ada, webhook.id, "delivered");
    const shown = await scene.open(ada.token, "/", { width: 390 });
    const { page } = shown;
    await page
      .getByRole("img", { name: /last hour [1-9]\d* changes, [1-9]\d* deliveries and 0 failed/ })
      .waitFor({ timeout: 90_000 });
    await page.getByText("All is well").waitFor();
    await page.locator("canvas").waitFor();
    await expectSoundAtAnyWidth(shown);

    await page.getByRole("radio", { name: "Week" }).click();
    await page.getByRole("img", { name: /last week [1-9]\d* changes/ }).waitFor();
    expect(page.url()).to.match(/\?span=week$/);
    await page.emulateMedia({ colorScheme: "dark" });
    await expectSoundAtAnyWidth(shown);
  });

  it("names failing receivers with time and reason, and links to the webhook", async () => {
    scene.receiver.answer = { status: 500, body: "no" };
    const webhook = await subscribeOrders(ada, `${scene.receiver.url}/broken`);
    await createOrder(ada);
    await deliveryOf(ada, webhook.id, "retrying");
    // The page polls every few seconds, as seen above.
    const isTold = async (): Promise<boolean> => {
      const { body } = await ada.request("GET", "/stats");
      return body.receivers.some(({ state }: { readonly state: string }) => state === "failing");
    };
    await until(isTold, { what: "the receiver to be told of", timeoutMs: 90_000 });
    const shown = await scene.open(ada.token, "/");
    const { page } = shown;
    const row = page
      .getByRole("region", { name: "Receivers that need attention" })
      .getByRole("row", { name: /failing/ });
    await row.waitFor({ timeout: 90_000 });
    await page.getByText("1 receiver fails; see below.").waitFor();
    expect(await row.innerText())
      .to.contain(scene.receiver.url)
      .and.to.match(/500|2xx/);
    await expectSound(shown);

    await row.getByRole("link").click();
    await until(() => page.url().endsWith(`/webhooks/${webhook.id}`), { what: "the page of the webhook" });
  });

  it("tells admins that no dispatcher runs", async () => {
    const { pool } = scene.service.infrastructure.database;
    await pool.query(`
      INSERT INTO svc.processes (id, program, host, pid, configuration, reload_faults, version)
      VALUES (gen_random_uuid(), 'api', 'shop-1', 11, 'abcdef', '{}', '1.2.3')`);
    const shown = await scene.open(admin.token, "/");

    await shown.page.getByText("No dispatcher runs, so that nothing is delivered.").waitFor();

    await pool.query("DELETE FROM svc.processes");
  });

  it("shows admins all, and the processes with their versions and configurations", async () => {
    const webhook = await subscribeOrders(ada, `${scene.receiver.url}/hook`);
    await createOrder(ada);
    await deliveryOf(ada, webhook.id, "delivered");
    // The service of a test registers no process.
    await scene.service.infrastructure.database.pool.query(`
      INSERT INTO svc.processes (id, program, host, pid, configuration, reload_faults, version)
      VALUES (gen_random_uuid(), 'api', 'shop-1', 11, 'abcdef', '{}', '1.2.3'),
        (gen_random_uuid(), 'dispatcher', 'shop-2', 12, 'fedcba', '{"orders.yaml:1:1: bad"}', '1.2.2')`);
    // An hour of a shop, up to a minute ago.
    await scene.service.infrastructure.database.pool.query(`
      INSERT INTO svc.figures (user_id, width, since, changes, deliveries, failures)
      SELECT 0, 'minute', date_trunc('minute', now()) - minute * interval '1 minute',
        30 + (20 * sin(minute / 7.0))::int + minute % 5, 26 + (18 * sin((minute + 1) / 7.0))::int + minute % 7,
        CASE WHEN minute BETWEEN 22 AND 27 THEN 9 ELSE minute % 2 END
      FROM generate_series(1, 58) AS minute
      ON CONFLICT DO NOTHING`);
    const shown = await scene.open(admin.token, "/");
    const { page } = shown;
    const processes = page.getByRole("region", { name: "Processes" }).first();
    await page
      .getByRole("img", { name: /last hour \d{4} changes, \d{4} deliveries and \d{2,} failed/ })
      .waitFor();
    await processes.getByRole("row", { name: /^dispatcher shop-2 \(12\) 1\.2\.2 fedcba 1 fault/ }).waitFor();
    await processes.getByText("orders.yaml:1:1: bad").waitFor();
    await page.getByText("The processes have different configurations; see below.").waitFor();
    await page.getByText("1 process has refused a reload; see below.").waitFor();
    await expectSoundAtAnyWidth(shown);
    await picture(shown, "console-overview");
    const own = await scene.open(ada.token, "/");
    await own.page.getByRole("heading", { name: "Activity" }).waitFor();
    expect(await own.page.getByRole("heading", { name: "Processes" }).count()).to.equal(0);
  });
});
