import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import { canInstall, findExecutable, install } from "./apt.ts";

/** A page that notes what a test must not find. */
export interface WatchedPage {
  readonly page: Page;
  /** What the console said of the content security policy, and errors that no script caught. */
  readonly faults: readonly string[];
  /** URLs of every request, in order. */
  readonly requests: readonly string[];
}

export interface TestBrowser {
  /** Opens a page in a session of its own: without cookies, storage and cache of another. */
  open(): Promise<WatchedPage>;
  close(): Promise<void>;
}

/** Where Debian and others put it; TEST_CHROMIUM names another. */
const candidates = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** Starts Chromium without a window. Installs it, with a font, where that can be done (test/support/apt.ts). */
export async function startBrowser(): Promise<TestBrowser> {
  const browser: Browser = await chromium.launch({
    executablePath: await findChromium(),
    // Root has no sandbox; the pages are our own.
    chromiumSandbox: process.getuid?.() !== 0,
    // A process that draws for nobody takes a tenth of the time.
    args: ["--disable-gpu", "--disable-software-rasterizer"],
  });
  return {
    async open() {
      const context: BrowserContext = await browser.newContext({ viewport: { width: 1280, height: 800 } });
      const page = await context.newPage();
      const faults: string[] = [];
      const requests: string[] = [];
      page.on("console", (message) => {
        if (/content security policy/i.test(message.text())) faults.push(message.text());
      });
      page.on("pageerror", (error) => faults.push(String(error)));
      page.on("request", (request) => requests.push(request.url()));
      return { page, faults, requests };
    },
    close: () => browser.close(),
  };
}

async function findChromium(): Promise<string> {
  const given = process.env["TEST_CHROMIUM"];
  const find = (): string | undefined => given ?? findExecutable("chromium", candidates);
  if (find() === undefined && canInstall()) await install(["chromium", "fonts-dejavu-core"]);
  const path = find();
  if (path === undefined)
    throw new Error(
      "The tests need Chromium. Install it (Debian: chromium), or set TEST_CHROMIUM to its path.",
    );
  return path;
}
