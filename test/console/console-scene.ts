import { createRequire } from "node:module";
import { mkdir, readFile } from "node:fs/promises";
import { expect } from "chai";
import type { Page } from "playwright-core";
import { startBrowser, type TestBrowser } from "../support/browser.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { startService, type ServiceOptions, type TestService, type TestUser } from "../support/service.ts";

/** A page of the console, with its faults. */
export interface ConsolePage {
  readonly page: Page;
  /** Violations of the policy, errors of the console, requests to elsewhere. */
  faults(): readonly string[];
  close(): Promise<void>;
}

/** A service with its console in a browser, and a receiver. */
export interface ConsoleScene {
  readonly service: TestService;
  readonly receiver: TestReceiver;
  /** Opens a path of the console, signed in; signed out without a token. */
  open(token: string | null, path: string, options?: { readonly width?: number }): Promise<ConsolePage>;
  stop(): Promise<void>;
}

/** Widths of a window and of a telephone. */
export const widths = [1280, 390] as const;

/** Runs if a page treats a text of the tests as code. */
const alarm = "window.isAttacked = true";
/** Texts that must be shown as they are, without effect. */
export const hostile = [
  `<script>${alarm}</script>`,
  `"><img src=x onerror="${alarm}">`,
  `{{constructor.constructor('${alarm}')()}}`,
  `'); ${alarm}; ('`,
] as const;

export async function startConsole(options: Omit<ServiceOptions, "mode">): Promise<ConsoleScene> {
  const [service, browser, receiver] = await Promise.all([
    startService({ mode: "servers", ...options }),
    startBrowser(),
    startReceiver(),
  ]);
  const origin = new URL(service.baseUrl).origin;
  return {
    service,
    receiver,
    open: (token, path, { width = 1280 } = {}) => openPage(browser, { origin, token, path, width }),
    async stop() {
      await browser.close();
      await receiver.close();
      await service.stop();
    },
  };
}

/**
 * Starts a console before the tests of a suite, and stops it after them. Before each test the
 * receiver accepts all requests; after each, its pages are closed. The scene can be used in hooks
 * and tests only.
 */
export function sceneOfSuite(options: Omit<ServiceOptions, "mode">): ConsoleScene {
  let scene: ConsoleScene;
  const pages: ConsolePage[] = [];
  before(async () => {
    scene = await startConsole(options);
  });
  afterEach(async () => {
    for (const page of pages.splice(0)) await page.close();
  });
  after(() => scene?.stop());
  beforeEach(() => {
    scene.receiver.answer = { status: 200, body: "thanks" };
  });
  return {
    get service() {
      return scene.service;
    },
    get receiver() {
      return scene.receiver;
    },
    async open(...given) {
      const page = await scene.open(...given);
      pages.push(page);
      return page;
    },
    stop: () => scene.stop(),
  };
}

/** Makes a new user before each test of a suite. */
export function userOfTest(
  scene: ConsoleScene,
  options?: Parameters<TestService["createUser"]>[0],
): TestUser {
  let user: TestUser;
  beforeEach(async () => {
    user = await scene.service.createUser(options);
  });
  return {
    get id() {
      return user.id;
    },
    get email() {
      return user.email;
    },
    get token() {
      return user.token;
    },
    request: (...given) => user.request(...given),
  };
}

async function openPage(
  browser: TestBrowser,
  { origin, token, path, width }: { origin: string; token: string | null; path: string; width: number },
): Promise<ConsolePage> {
  const watched = await browser.open(origin);
  const { page, faults, requests } = watched;
  const errors: string[] = [];
  page.on("console", (message) => {
    // An answer outside 2xx causes one too, and the page reports that itself.
    const isAnswer = message.text().startsWith("Failed to load resource");
    if (message.type() === "error" && !isAnswer) errors.push(message.text());
  });
  page.setDefaultTimeout(30_000);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.setViewportSize({ width, height: 900 });
  if (token !== null)
    // Only once: a page that is loaded again has stored it.
    await page.addInitScript(`
      if (window.name !== "opened")
        sessionStorage.setItem("svc-console.session", ${JSON.stringify(JSON.stringify({ token, refreshToken: null }))});
      window.name = "opened";`);
  await page.goto(`${origin}/console${path}`);
  return {
    page,
    faults: () => [...faults, ...errors, ...requests.filter((url) => !url.startsWith(`${origin}/`))],
    close: () => watched.close(),
  };
}

const axe = readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

/**
 * Resolves when no colour is changing: axe would see dark text on a ground that is not dark yet.
 */
const transitionsEnd = `Promise.allSettled(
  document.getAnimations().filter((one) => one instanceof CSSTransition).map((one) => one.finished),
)`;

/** Whether the page is wider than its window when its times have their greatest width. */
const isWiderAtItsWorst = `() => {
  const isWider = () => document.documentElement.scrollWidth > document.documentElement.clientWidth;
  const wasWider = isWider();
  const times = [...document.querySelectorAll("time")].filter((one) => /:/.test(one.textContent)).map((one) => one.firstChild);
  const texts = times.map((one) => one.nodeValue);
  for (const one of times) one.nodeValue = "Nov 28, 2026, 10:58:58 PM";
  const wouldBeWider = isWider();
  times.forEach((one, index) => (one.nodeValue = texts[index]));
  return wasWider || wouldBeWider;
}`;

/**
 * Expects an accessible page: no serious finding of axe, no part or column that a screen reader
 * cannot tell from another, no content beyond its width, no fault, and no effect of hostile texts.
 */
export async function expectSound(shown: ConsolePage): Promise<void> {
  const { page } = shown;
  if (await page.evaluate("window.axe === undefined")) await page.evaluate(await axe);
  await page.evaluate(transitionsEnd);
  const { violations } = (await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")) as {
    readonly violations: readonly Violation[];
  };
  const serious = violations
    .filter(
      ({ id, impact }) =>
        impact === "serious" ||
        impact === "critical" ||
        id === "landmark-unique" ||
        id === "empty-table-header",
    )
    .map(
      ({ id, nodes }) =>
        `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join("; ")}`,
    );
  expect(serious).to.deep.equal([]);
  const [isWider, isAttacked] = (await page.evaluate(
    `[(${isWiderAtItsWorst})(), window.isAttacked === true]`,
  )) as [boolean, boolean];
  expect(isWider, "wider than the window").to.equal(false);
  expect(isAttacked, "a hostile text ran").to.equal(false);
  expect(shown.faults()).to.deep.equal([]);
}

/**
 * Expects a page as `expectSound` does, in a window and on a telephone. The page then has its first
 * width again.
 */
export async function expectSoundAtAnyWidth(shown: ConsolePage): Promise<void> {
  const own = shown.page.viewportSize()?.width;
  for (const width of widths.toSorted((a, b) => Number(a === own) - Number(b === own))) {
    await shown.page.setViewportSize({ width, height: 900 });
    await expectSound(shown);
  }
}

/** Pictures are written only on request: `TEST_PICTURES=1`. */
export async function picture({ page }: ConsolePage, name: string): Promise<void> {
  if (process.env["TEST_PICTURES"] === undefined) return;
  const folder = process.env["TEST_PICTURES_FOLDER"] ?? "docs/pictures";
  await mkdir(folder, { recursive: true });
  const { width = 0, height = 0 } = page.viewportSize() ?? {};
  // As high as the page: parts that are fixed to the window would otherwise be in its middle.
  const whole = (await page.evaluate("document.documentElement.scrollHeight")) as number;
  await page.setViewportSize({ width, height: Math.max(height, Math.min(whole, 4_000)) });
  await page.screenshot({ path: `${folder}/${name}.png` });
  await page.setViewportSize({ width, height });
}
