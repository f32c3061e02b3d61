import { expect } from "chai";
import type { Page } from "playwright-core";
import type { TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";
import { expectSound, sceneOfSuite } from "./console-scene.ts";

/** Keys that are texts and keys of several columns, and values of all kinds. */
const visitResources = {
  "rooms.yaml": `
name: rooms
model: Room
triggers: [on_create, on_update, on_delete]
fields: { code: { type: String, id: true, length: 80 }, title: { type: String } }
createRules: { code: required|string|max:80, title: required|string }
updateRules: { title: sometimes|required|string }
access: { read: everyone, create: everyone, update: everyone, delete: everyone }`,
  "seats.yaml": `
name: seats
model: Seat
triggers: [on_create]
fields: { room: { type: String, id: true }, number: { type: Int, id: true }, title: { type: String } }
createRules: { room: required|string, number: required|integer, title: required|string }
updateRules: { title: sometimes|required|string }
access: { read: everyone, create: everyone, update: everyone, delete: everyone }`,
  "bags.yaml": `
name: bags
model: Bag
triggers: []
fields:
  id: { type: Int, id: true }
  title: { type: String, length: 80 }
  things: { type: String, list: true }
  mood: { type: Enum, values: ["so, so", fine], optional: true }
access: { read: everyone, create: everyone, update: everyone, delete: everyone }`,
  "visits.yaml": `
name: visits
model: Visit
triggers: [on_create, on_update, on_delete]
fields:
  id: { type: Int, id: true }
  title: { type: String }
  room_code: { type: String, optional: true, references: rooms.code, as: room }
  starts_at: { type: DateTime, optional: true }
  stamp: { type: DateTime, optional: true }
  level: { type: Int, optional: true }
  tags: { type: String, list: true }
  meta: { type: Json, optional: true }
createRules: &rules
  title: required|string
  room_code: nullable|exists:rooms,code
  starts_at: nullable|date
  stamp: nullable|date_format:Y-m-d
  level: nullable|integer|in:0,1
  tags: sometimes|list
  tags.*: string
  meta: nullable
updateRules: *rules
access: { read: everyone, create: everyone, update: everyone, delete: everyone }`,
};

async function create(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Create" }).click();
}

describe("records with keys and values of all kinds in the console", function () {
  this.timeout(240_000);
  const scene = sceneOfSuite({ resources: visitResources });
  let ada: TestUser;

  before(async () => {
    ada = await scene.service.createUser();
  });

  it("send nothing while a date is incomplete, with a message at the date", async () => {
    const shown = await scene.open(ada.token, "/resources/visits/-/new");
    const { page } = shown;
    const sent: string[] = [];
    page.on("request", (request) => request.method() === "POST" && sent.push(request.url()));
    const field = page.getByLabel("starts_at");
    await page.getByLabel("title").fill("Tea");
    await field.focus();
    await page.keyboard.type("1122");
    await create(page);
    await page.getByText("Fill in the whole date and time, or clear it.").waitFor();
    expect(await page.evaluate("document.activeElement.type")).to.equal("datetime-local");
    await expectSound(shown);

    await field.fill("2026-11-22T10:00");
    expect(await page.getByText("Fill in the whole date and time").count()).to.equal(0);
    expect(sent).to.deep.equal([]);
    await create(page);
    await page.getByText(/Created visits/).waitFor();
  });

  it("are created once although answers are lost, in a page without crypto.randomUUID", async () => {
    const shown = await scene.open(ada.token, "/resources/rooms/-/new");
    const { page } = shown;
    // Pages over plain http lack it, except on localhost.
    await page.addInitScript("delete Crypto.prototype.randomUUID");
    await page.reload();
    const keys: (string | undefined)[] = [];
    const lost = [
      { status: 504, json: {} },
      { status: 409, json: { message: "It is still at work.", code: "idempotency.in_progress" } },
    ];
    await page.route("**/resources/rooms", async (route) => {
      if (route.request().method() !== "POST") return await route.continue();
      keys.push(route.request().headers()["idempotency-key"]);
      const answer = lost.shift();
      if (answer === undefined) return await route.continue();
      if (answer.status === 504) await route.fetch();
      return await route.fulfill(answer);
    });
    await page.getByLabel("code").fill("once");
    await page.getByLabel("title").fill("Once");
    await create(page);
    await page.getByText("The service does not answer").waitFor();
    await create(page);
    await page.getByText("It is still at work.").waitFor();
    await create(page);
    await page.getByText("Created rooms once.").waitFor();

    expect(keys).to.have.length(3);
    expect(keys[0]).to.match(/^[0-9a-f]{32}$/);
    expect(new Set(keys).size).to.equal(1);
  });

  it("report an earlier create when the input is changed after a lost answer", async () => {
    const shown = await scene.open(ada.token, "/resources/rooms/-/new");
    const { page } = shown;
    let isLost = false;
    await page.route("**/resources/rooms", async (route) => {
      if (route.request().method() !== "POST" || isLost) return await route.continue();
      isLost = true;
      await route.fetch();
      return await route.fulfill({ status: 504, json: {} });
    });
    await page.getByLabel("code").fill("early");
    await page.getByLabel("title").fill("First");
    await create(page);
    await page.getByText("The service does not answer").waitFor();
    await page.getByLabel("title").fill("Second");
    await create(page);

    await page.getByText("An earlier try was done after all").waitFor();
    expect((await ada.request("GET", "/resources/rooms/early")).body.title).to.equal("First");
    await expectSound(shown);
  });

  it("are created without a key when no more answers are kept for the user's keys", async () => {
    const shown = await scene.open(ada.token, "/resources/rooms/-/new");
    const { page } = shown;
    const full = { message: "100000 answers are kept for you.", code: "idempotency.exhausted" };
    await page.route("**/resources/rooms", async (route) => {
      const isKeyed = route.request().headers()["idempotency-key"] !== undefined;
      return await (isKeyed ? route.fulfill({ status: 429, json: full }) : route.fallback());
    });
    await page.getByLabel("code").fill("keyless");
    await page.getByLabel("title").fill("Without a key");
    await create(page);
    await page.getByText("Created rooms keyless.").waitFor();
  });

  it("show the request id of a fault that the log explains, and the wait after too many", async () => {
    const shown = await scene.open(ada.token, "/resources/rooms/-/new");
    const { page } = shown;
    const answers = [
      { status: 500, headers: { "X-Request-Id": "fault-1" }, json: { message: "Server Error" } },
      { status: 429, headers: { "Retry-After": "7" }, json: { message: "Too Many Requests" } },
    ];
    await page.route("**/resources/rooms", async (route) => {
      const answer = route.request().method() === "POST" ? answers.shift() : undefined;
      return await (answer === undefined ? route.continue() : route.fulfill(answer));
    });
    await page.getByLabel("code").fill("later");
    await page.getByLabel("title").fill("Later");
    await create(page);
    await page.getByText("Request fault-1").waitFor();
    await expectSound(shown);
    await create(page);
    await page.getByText("Too Many Requests Try again in 7 s.").waitFor();
    await create(page);
    await page.getByText("Created rooms later.").waitFor();
  });

  it("are opened from their table, with their history", async () => {
    const rooms = ["ada@example.com", "a/b,c", "100%", "x%2Fy", "ä ü?#&+:=", "new", "two\nlines"];
    for (const code of rooms)
      expect((await ada.request("POST", "/resources/rooms", { code, title: `In ${code}` })).status).to.equal(
        201,
      );
    const seat = { room: "A,1", number: 2, title: "By the window" };
    expect((await ada.request("POST", "/resources/seats", seat)).status).to.equal(201);
    const shown = await scene.open(ada.token, "/resources/rooms");
    const { page } = shown;
    for (const code of rooms) {
      await page.locator("a.row-link", { hasText: code }).click();
      await page.getByRole("heading", { name: `In ${code.replace("\n", " ")}`, exact: true }).waitFor();
      await page.getByRole("region", { name: "What happened" }).getByText("created").waitFor();
      await page.goBack();
    }
    await page.goto(new URL("/console/resources/seats", page.url()).href);
    await page.locator("a.row-link").click();
    await page.getByRole("heading", { name: "By the window" }).waitFor();
    await page.getByRole("region", { name: "What happened" }).getByText("created").waitFor();
    await expectSound(shown);
  });

  it("are found by a filter in the URL that is encoded once", async () => {
    const shown = await scene.open(ada.token, "/resources/rooms?filter[code]=x%252Fy");
    await shown.page.getByRole("button", { name: "Remove the filter code is x%2Fy" }).waitFor();
    await shown.page.getByText("1 record", { exact: true }).waitFor();
  });

  it("are found by values with commas, which are literal where one value is expected", async () => {
    for (const [title, mood] of [
      ["Smith, John", "fine"],
      ["Smith", "so, so"],
    ])
      await ada.request("POST", "/resources/bags", { title, mood, things: [] });
    for (const [field, operator, value] of [
      ["title", "contains", "h, J"],
      ["mood", "eq", "so, so"],
    ] as const) {
      const shown = await scene.open(ada.token, "/resources/bags");
      const { page } = shown;
      await page.getByRole("button", { name: "Filter" }).click();
      await page.getByLabel("Field").selectOption(field);
      await page.getByLabel("Condition").selectOption(operator);
      if (operator === "eq") await page.getByLabel("Value").selectOption(value);
      else await page.getByLabel("Value").fill(value);
      await page.getByRole("button", { name: "Add the filter" }).click();
      await page.getByText("1 record", { exact: true }).waitFor();
      const words = operator === "eq" ? "is" : "contains";
      await page.getByRole("button", { name: `Remove the filter ${field} ${words} ${value}` }).waitFor();
    }
  });

  it("are made with an empty list, and keep line feeds in a list and in a short text", async () => {
    const shown = await scene.open(ada.token, "/resources/bags/-/new");
    const { page } = shown;
    await page.getByLabel("title").fill("Empty");
    await create(page);
    await page.getByText(/Created bags/).waitFor();

    const bag = { title: "two\nlines", things: ["a\nb"] };
    const { body } = await ada.request("POST", "/resources/bags", bag);
    await page.goto(new URL(`/console/resources/bags/${body.id}`, page.url()).href);
    await page.getByLabel("title").fill("two\nlines!");
    await page.getByLabel("things").fill('["a\\nb", "c"]');
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved.").waitFor();
    const changed = (await ada.request("GET", `/resources/bags/${body.id}`)).body;
    expect(changed).to.deep.include({ title: "two\nlines!", things: ["a\nb", "c"] });
    await expectSound(shown);
  });

  it("keep the input when the form is switched to JSON and back, and on other pages", async () => {
    const shown = await scene.open(ada.token, "/resources/visits");
    const { page } = shown;
    await page.getByRole("link", { name: "New record" }).first().click();
    const body = page.getByLabel("Body");
    const mode = (name: string): Promise<void> => page.getByRole("radio", { name }).click();
    await page.getByLabel("title").fill("Tea");
    await mode("JSON");
    await body.fill('{ "title": "Coffee", "tags": ["a", "b"], "level": 1 }');
    await mode("JSON");
    expect(await body.inputValue()).to.contain("Coffee");
    await mode("Form");
    expect(await page.getByLabel("title").inputValue()).to.equal("Coffee");
    expect(await page.getByLabel("tags").inputValue()).to.equal("a\nb");
    expect(await page.getByLabel("level").inputValue()).to.equal("1");

    await mode("JSON");
    await body.fill('{ "title": "Cake", "more": 1 }');
    await mode("Form");
    const dialog = page.getByRole("dialog");
    await dialog.getByText("The form has no field more.").waitFor();
    await expectSound(shown);
    await dialog.getByRole("button", { name: "Cancel" }).click();
    expect(await body.inputValue()).to.contain("Cake");

    const asked: string[] = [];
    let answer: "dismiss" | "accept" = "dismiss";
    page.on("dialog", (question) => {
      asked.push(question.message());
      void question[answer]();
    });
    await page.getByRole("link", { name: "Cancel" }).click();
    await page.evaluate("history.back()");
    await until(() => asked.length === 2, { what: "it asks before a link, and before Back" });
    expect(await body.inputValue()).to.contain("Cake");
    await mode("Form");
    await dialog.getByRole("button", { name: "Discard the JSON" }).click();
    expect(await page.getByLabel("title").inputValue()).to.equal("Coffee");
    answer = "accept";
    await page.getByRole("link", { name: "Cancel" }).click();
    await page.getByRole("link", { name: "New record" }).first().waitFor();
    expect(asked).to.have.length(3);
  });

  it("are created with references to texts, numbers of a list, and dates in their own format", async () => {
    await ada.request("POST", "/resources/rooms", { code: "1001", title: "The corner" });
    const shown = await scene.open(ada.token, "/resources/visits/-/new");
    const { page } = shown;
    const [sent] = await Promise.all([
      page.waitForRequest((request) => request.method() === "POST"),
      (async () => {
        await page.getByLabel("title").fill("Typed");
        await page.getByLabel("room_code").fill("1001");
        await page.getByLabel("level").selectOption("0");
        await page.getByLabel("stamp").fill("2026-03-28");
        await create(page);
      })(),
    ]);
    await page.getByText(/Created visits/).waitFor();
    const typed = { title: "Typed", room_code: "1001", level: 0, stamp: "2026-03-28" };
    expect(sent.postDataJSON()).to.deep.equal(typed);
    expect(await page.getByLabel("level").inputValue()).to.equal("0");
  });

  it("send a reference whose id was typed, when Enter is pressed in it", async () => {
    await ada.request("POST", "/resources/rooms", { code: "1002", title: "The attic" });
    const shown = await scene.open(ada.token, "/resources/visits/-/new");
    const { page } = shown;
    const sent = page.waitForRequest((request) => request.method() === "POST");
    await page.getByLabel("title").fill("By Enter");
    await page.getByLabel("room_code").focus();
    await page.keyboard.type("1002");
    // The first Enter closes the list, as in every picker.
    await page.keyboard.press("Enter");
    await page.keyboard.press("Enter");

    expect((await sent).postDataJSON()).to.deep.equal({ title: "By Enter", room_code: "1002" });
  });

  it("accept as many characters as their rules permit, and truncate nothing", async () => {
    const shown = await scene.open(ada.token, "/resources/rooms/-/new");
    const { page } = shown;
    // Each is two UTF-16 units in the browser, and one character for the rules.
    const most = "👋".repeat(80);
    await page.getByLabel("title").fill("Long");
    await page.getByLabel("code").focus();
    await page.keyboard.insertText(`${most}👋`);
    await create(page);
    await page.getByText("The code field must not be greater than 80 characters.").waitFor();
    expect(await page.getByLabel("code").inputValue()).to.equal(`${most}👋`);
    await page.keyboard.press("End");
    await page.keyboard.press("Backspace");
    await create(page);
    await page.getByText(`Created rooms ${most}.`).waitFor();
  });

  it("stay within a narrow window, however long their keys are", async () => {
    const code = "x".repeat(80);
    await ada.request("POST", "/resources/rooms", { code, title: "The long one" });
    const shown = await scene.open(ada.token, `/resources/rooms/${code}`, { width: 390 });
    await shown.page.getByRole("heading", { name: "The long one" }).waitFor();
    await expectSound(shown);
  });

  it("include the fields that the rules require at each update, in a conflict too", async () => {
    const { body } = await ada.request("POST", "/resources/visits", { title: "Tea", tags: [] });
    const path = `/resources/visits/${body.id}`;
    const shown = await scene.open(ada.token, path);
    const { page } = shown;
    await page.getByLabel("level").selectOption("1");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved.").waitFor();
    expect((await ada.request("GET", path)).body).to.include({ title: "Tea", level: 1 });

    await page.getByLabel("level").selectOption("0");
    await ada.request("PATCH", path, { title: "Coffee" });
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("dialog").getByRole("row", { name: "title Tea Coffee unchanged" }).waitFor();
    await page.getByRole("button", { name: "Overwrite with mine" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect((await ada.request("GET", path)).body).to.include({ title: "Coffee", level: 0 });
  });

  it("have only the changes in their JSON", async () => {
    const visit = { title: "Tea", starts_at: "2026-03-28T14:30:00.123Z", tags: ["a\nb"] };
    const { body, status } = await ada.request("POST", "/resources/visits", visit);
    expect(status, JSON.stringify(body)).to.equal(201);
    const shown = await scene.open(ada.token, `/resources/visits/${body.id}`);
    const { page } = shown;
    await page.getByLabel("title").fill("Coffee");
    await page.getByRole("radio", { name: "JSON" }).click();
    expect(JSON.parse(await page.getByLabel("Body").inputValue())).to.deep.equal({ title: "Coffee" });
  });
});
