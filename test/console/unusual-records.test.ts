import { expect } from "chai";
import type { Page } from "playwright-core";
import { until } from "../support/wait.ts";
import { sceneOfSuite, userOfTest } from "./console-scene.ts";

const access = "access: { read: everyone, create: everyone, update: everyone, delete: everyone }";
const unusualResources = {
  "rooms.yaml": `
name: rooms
model: Room
triggers: []
fields: { code: { type: String, id: true, length: 80 }, title: { type: String } }
${access}`,
  "guests.yaml": `
name: guests
model: Guest
module: ./guests.mjs
triggers: []
fields:
  id: { type: Int, id: true }
  title: { type: String }
  room_code: { type: String, optional: true, references: rooms.code, as: room }
${access}`,
  "guests.mjs": "export const baseQuery = () => ({ include: { room: { select: { title: true } } } });",
  "clocks.yaml": `
name: clocks
model: Clock
module: ./clocks.mjs
triggers: []
fields: { id: { type: Int, id: true }, title: { type: String } }
${access}`,
  "clocks.mjs":
    "export const transform = ({ id, title }) => ({ id, title, ticks: process.hrtime().join('.') });",
  "days.yaml": `
name: days
model: Day
triggers: []
fields:
  id: { type: Int, id: true }
  title: { type: String }
  starts: { type: DateTime, optional: true }
  ends: { type: Date, optional: true }
${access}`,
};

async function save(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Save" }).click();
}

describe("unusual records in the console", function () {
  this.timeout(240_000);
  const scene = sceneOfSuite({ resources: unusualResources });
  const ada = userOfTest(scene);

  it("are written when only Prisma supports their code, without the unsupported headers", async () => {
    const shown = await scene.open(ada.token, "/resources/guests/-/new");
    const { page } = shown;
    await page.getByLabel("title").fill("Grace");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByText(/Created guests/).waitFor();
    await page.getByRole("button", { name: "Save" }).waitFor();
    await page.getByLabel("title").fill("Hopper");
    await save(page);
    await page.getByText("Saved.").waitFor();
    const { data } = (await ada.request("GET", "/resources/guests")).body;
    expect(data.map(({ title }: { title: string }) => title)).to.deep.equal(["Hopper"]);

    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Delete the record" }).click();
    await page.getByText(/Deleted guests/).waitFor();
  });

  it("are not created again without a question, when no key can be sent and the answer is lost", async () => {
    const shown = await scene.open(ada.token, "/resources/guests/-/new");
    const { page } = shown;
    let isLost = false;
    await page.route("**/resources/guests", async (route) => {
      const request = route.request();
      const hasKey = request.headers()["idempotency-key"] !== undefined;
      if (request.method() !== "POST" || hasKey || isLost) return route.fallback();
      isLost = true;
      await route.fetch();
      return route.fulfill({ status: 504, json: {} });
    });
    const create = (): Promise<void> => page.getByRole("button", { name: "Create" }).click();
    const made = async (): Promise<number> => {
      const { data } = (await ada.request("GET", "/resources/guests")).body;
      return data.filter(({ title }: { title: string }) => title === "Ada").length;
    };
    await page.getByLabel("title").fill("Ada");
    await create();
    await page.getByText("whether this was done is not known").waitFor();
    await create();
    await page.getByText("An earlier try may have been done").waitFor();
    expect(await made()).to.equal(1);

    await create();
    await page.getByText(/Created guests/).waitFor();
    expect(await made()).to.equal(2);
  });

  it("are overwritten and deleted when each read of them has another entity tag", async () => {
    const { body } = await ada.request("POST", "/resources/clocks", { title: "Big" });
    const shown = await scene.open(ada.token, `/resources/clocks/${body.id}`);
    const { page } = shown;
    await page.getByLabel("title").fill("Small");
    await save(page);
    await page.getByRole("button", { name: "Overwrite with mine" }).click();
    await page.getByText("Saved.").waitFor();
    expect((await ada.request("GET", `/resources/clocks/${body.id}`)).body.title).to.equal("Small");

    await page.getByRole("button", { name: "Delete" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Delete the record" }).click();
    await dialog.getByText("Somebody changed the record in the meantime").waitFor();
    await dialog.getByRole("button", { name: "Delete the record" }).click();
    await page.getByText(/Deleted clocks/).waitFor();
  });

  it("show the name of a relation unchanged after an edit", async () => {
    await ada.request("POST", "/resources/rooms", { code: "r1", title: "Blue" });
    const { body } = await ada.request("POST", "/resources/guests", { title: "Mary", room_code: "r1" });
    const { page } = await scene.open(ada.token, `/resources/guests/${body.id}`);
    const isNamed = (name: string): Promise<unknown> =>
      until(async () => (await page.getByLabel("room_code").inputValue()) === name, { what: name });
    await isNamed("Blue (r1)");
    await page.getByRole("link", { name: "Open rooms r1" }).click();
    await page.getByLabel("title").fill("Green");
    await save(page);
    await page.getByText("Saved.").waitFor();
    await page.goBack();
    await isNamed("Green (r1)");
  });

  it("have the days of the browser's time zone in their list", async () => {
    const late = { title: "Late", starts: "2026-01-02T03:30:00Z" };
    const { body } = await ada.request("POST", "/resources/days", late);
    const { page } = await scene.open(ada.token, "/");
    const devtools = await page.context().newCDPSession(page);
    await devtools.send("Emulation.setTimezoneOverride", { timezoneId: "America/New_York" });
    await page.goto(new URL(`/console/resources/days?filter[id]=${body.id}`, page.url()).href);
    await page.getByRole("cell", { name: "2026-01-01" }).waitFor();
  });

  it("show dates without a control as texts, and send them only when they were edited", async () => {
    const { body } = await ada.request("POST", "/resources/days", { title: "Ever" });
    const path = `/resources/days/${body.id}`;
    await scene.service.infrastructure.sql("UPDATE days SET starts = 'infinity', ends = '0044-03-15 BC'");
    const shown = await scene.open(ada.token, path);
    const { page } = shown;
    const [starts, ends] = [page.getByLabel("starts"), page.getByLabel("ends")];
    const sent: unknown[] = [];
    page.on("request", (request) => request.method() === "PATCH" && sent.push(request.postDataJSON()));
    await page.getByLabel("title").fill("Always");
    expect([await starts.inputValue(), await ends.inputValue()]).to.deep.equal(["infinity", "0044-03-15 BC"]);
    await save(page);
    await page.getByText("Saved.").waitFor();

    await ends.fill("2026-03-28");
    expect(await ends.getAttribute("type")).to.equal("date");
    await save(page);
    await until(async () => (await ada.request("GET", path)).body.ends === "2026-03-28", { what: "the end" });
    expect((await ada.request("GET", path)).body.starts).to.equal("infinity");
    expect(sent).to.deep.equal([{ title: "Always" }, { ends: "2026-03-28" }]);
  });
});
