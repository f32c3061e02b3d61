import { expect } from "chai";
import type { Page } from "playwright-core";
import type { TestUser } from "../support/service.ts";
import { expectSound, startConsole, type ConsoleScene } from "./console-scene.ts";

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

describe("the form of a record", function () {
  this.timeout(240_000);
  let scene: ConsoleScene;
  let ada: TestUser;

  before(async () => {
    scene = await startConsole({ resources: visitResources });
    ada = await scene.service.createUser();
  });
  after(() => scene?.stop());

  it("sends nothing while a date is half filled in, and says so at the date", async () => {
    const shown = await scene.open(ada.token, "/resources/visits/new");
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
    await shown.close();
  });
});
