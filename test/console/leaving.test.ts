import { expect } from "chai";
import type { Page } from "playwright-core";
import { until } from "../support/wait.ts";
import { sceneOfSuite, userOfTest } from "./console-scene.ts";
import { shopResources, subscribeOrders } from "./console-shop.ts";

/** Answers no to each question of the browser, and returns the questions. */
function refuseToLeave(page: Page): readonly string[] {
  const asked: string[] = [];
  page.on("dialog", (question) => {
    asked.push(question.message());
    void question.dismiss();
  });
  return asked;
}

const question = "Leave this form? What you have typed in it is lost.";

/** Types into a form and presses Back: the page asks once, and keeps the text. */
async function typeAndGoBack(
  page: Page,
  asked: readonly string[],
  typed: { readonly label: string; readonly text: string },
): Promise<void> {
  const count = asked.length;
  await page.getByLabel(typed.label, { exact: true }).fill(typed.text);
  await page.evaluate("history.back()");
  await until(() => asked.length > count, { what: `a question about ${typed.label}` });
  expect(asked.slice(count)).to.deep.equal([question]);
  expect(await page.getByLabel(typed.label, { exact: true }).inputValue()).to.equal(typed.text);
}

describe("a form of the console with input", function () {
  this.timeout(240_000);
  const scene = sceneOfSuite({ resources: shopResources });
  const ada = userOfTest(scene, { isAdmin: true });

  it("asks before a new webhook is left, in both its steps, and not once it is created", async () => {
    const shown = await scene.open(ada.token, "/webhooks");
    const { page } = shown;
    const asked = refuseToLeave(page);
    await page.getByRole("link", { name: "New webhook" }).first().click();
    await page.getByRole("heading", { name: "New webhook" }).waitFor();
    await page.goBack();
    await page.getByRole("link", { name: "New webhook" }).first().click();
    expect(asked).to.deep.equal([]);
    await page.getByLabel("Resource").selectOption("orders");
    await typeAndGoBack(page, asked, { label: "Filter optional", text: '{ "amount": 1 }' });
    await page.getByRole("button", { name: "Next: where" }).click();
    await typeAndGoBack(page, asked, { label: "URL", text: scene.receiver.url });
    await page.getByRole("button", { name: "Create the webhook" }).click();
    await page.getByRole("button", { name: "I have stored it" }).first().click();
    await page.getByRole("heading", { name: /^Webhook \d/ }).waitFor();
    await page.getByRole("link", { name: "Overview" }).click();
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    expect(asked).to.have.length(2);
  });

  it("asks before an edited webhook is left, and not once it is saved", async () => {
    const { id } = await subscribeOrders(ada, scene.receiver.url);
    const shown = await scene.open(ada.token, "/webhooks");
    const { page } = shown;
    const asked = refuseToLeave(page);
    await page.locator(`a[href$="/webhooks/${id}"]`).first().click();
    await page.getByRole("button", { name: "Edit" }).click();
    await typeAndGoBack(page, asked, { label: "Description optional", text: "for the shop" });
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("The webhook is changed.").waitFor();
    await page.getByRole("link", { name: "Overview" }).click();
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    expect(asked).to.have.length(1);
  });

  it("asks before a dialog is closed by Escape or by a click beside it", async () => {
    const shown = await scene.open(ada.token, "/admin/users");
    const { page } = shown;
    const asked: string[] = [];
    let answer: "dismiss" | "accept" = "dismiss";
    page.on("dialog", (box) => {
      asked.push(box.message());
      void box[answer]();
    });
    const dialog = page.getByRole("dialog");
    // The dialog gets the key once it has the focus, which a click beside it removes for a moment.
    const pressEscape = async (): Promise<void> => {
      await page.locator('[role="dialog"]:focus-within').waitFor();
      await page.keyboard.press("Escape");
    };
    for (const [link, button] of [
      ["Your tokens", "New token"],
      ["Users", "New user"],
    ] as const) {
      answer = "dismiss";
      asked.length = 0;
      await page.getByRole("link", { name: link }).click();
      await page.getByRole("button", { name: button }).click();
      await dialog.waitFor();
      await pressEscape();
      await dialog.waitFor({ state: "detached" });
      expect(asked, "nothing is typed").to.deep.equal([]);

      await page.getByRole("button", { name: button }).click();
      await dialog.getByLabel("Name", { exact: true }).fill("of the shop");
      await pressEscape();
      await until(() => asked.length === 1, { what: "a question after Escape" });
      await page.mouse.click(5, 5);
      await until(() => asked.length === 2, { what: "a question after a click" });
      expect(new Set(asked)).to.deep.equal(new Set([question]));
      expect(await dialog.getByLabel("Name", { exact: true }).inputValue()).to.equal("of the shop");
      answer = "accept";
      await pressEscape();
      await dialog.waitFor({ state: "detached" });
    }
  });

  it("asks before a new token or user is left", async () => {
    const shown = await scene.open(ada.token, "/admin/users");
    const { page } = shown;
    const asked = refuseToLeave(page);
    for (const [link, button] of [
      ["Your tokens", "New token"],
      ["Users", "New user"],
    ] as const) {
      await page.getByRole("link", { name: link }).click();
      await page.getByRole("button", { name: button }).click();
      await typeAndGoBack(page, asked, { label: "Name", text: "of the shop" });
      await page.getByRole("button", { name: "Cancel" }).click();
    }
    expect(asked).to.have.length(2);
  });
});
