import { expect } from "chai";
import type { Page } from "playwright-core";
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
};

async function save(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Save" }).click();
}

describe("unusual records in the console", function () {
  this.timeout(240_000);
  const scene = sceneOfSuite({ resources: unusualResources });
  const ada = userOfTest(scene);

  it("are written where only Prisma knows their code, without the headers that it does not take", async () => {
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
    await shown.close();
  });

  it("are overwritten and deleted where each read of them has another entity tag", async () => {
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
    await shown.close();
  });
});
