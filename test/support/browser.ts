import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import { canInstall, findExecutable, install } from "./apt.ts";

/** A page that notes what a test must not find. */
export interface WatchedPage {
  readonly page: Page;
  /** What the console said of the content security policy, and errors that no script caught. */
  readonly faults: readonly string[];
  /** URLs of every request, in order. */
  readonly requests: readonly string[];
  /** Closes the page, and all that it opened. */
  close(): Promise<void>;
}

export interface TestBrowser {
  /**
   * Opens a page in a session of its own, without cookies and storage of another, for pages of an
   * origin.
   */
  open(origin: string): Promise<WatchedPage>;
  close(): Promise<void>;
}

/**
 * Chromium's shell without windows takes half the CPU of the whole browser. TEST_CHROMIUM names
 * another.
 */
const shell = "chromium-headless-shell";
/** Where Debian and others put it. */
const candidates = [
  `/usr/bin/${shell}`,
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];

/**
 * Starts Chromium without a window. Installs it, with a font, where that can be done
 * (test/support/apt.ts).
 */
export async function startBrowser(): Promise<TestBrowser> {
  const browser: Browser = await chromium.launch({
    executablePath: await findChromium(),
    // Root has no sandbox; the pages are our own.
    chromiumSandbox: process.getuid?.() !== 0,
    // Without a screen to draw on, the GPU process only costs time. One renderer for all pages of a
    // context compiles their scripts once.
    args: ["--disable-gpu", "--disable-software-rasterizer", "--renderer-process-limit=1"],
  });
  const idle = new Map<string, Session[]>();
  return {
    async open(origin) {
      const session = idle.get(origin)?.pop() ?? (await startSession(browser, origin));
      const page = await session.context.newPage();
      return {
        page,
        ...watch(page),
        async close() {
          await clear(session);
          idle.set(origin, [...(idle.get(origin) ?? []), session]);
        },
      };
    },
    close: () => browser.close(),
  };
}

/**
 * What a browser keeps for a person: a new one, and its first page, take three times the CPU of a
 * second page.
 */
interface Session {
  readonly context: BrowserContext;
  /**
   * A page without scripts. While it is there, so is the process that has compiled those of the
   * others.
   */
  readonly keeper: Page;
}

async function startSession(browser: Browser, origin: string): Promise<Session> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const keeper = await context.newPage();
  await keeper.goto(`${origin}/favicon.ico`);
  return { context, keeper };
}

/** Closes its pages, and leaves nothing of them but scripts. */
async function clear({ context, keeper }: Session): Promise<void> {
  for (const page of context.pages()) if (page !== keeper) await page.close();
  await context.setOffline(false);
  await context.clearCookies();
  await context.clearPermissions();
  await keeper.evaluate("localStorage.clear()");
}

function watch(page: Page): Pick<WatchedPage, "faults" | "requests"> {
  const faults: string[] = [];
  const requests: string[] = [];
  page.on("console", (message) => {
    if (/content security policy/i.test(message.text())) faults.push(message.text());
  });
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("request", (request) => requests.push(request.url()));
  return { faults, requests };
}

async function findChromium(): Promise<string> {
  const given = process.env["TEST_CHROMIUM"];
  const find = (): string | undefined => given ?? findExecutable("chromium", candidates);
  if (find() === undefined && canInstall())
    // Ubuntu has no package of the shell.
    await install([shell, "fonts-dejavu-core"]).catch(() => install(["chromium", "fonts-dejavu-core"]));
  const path = find();
  if (path === undefined)
    throw new Error(
      "The tests need Chromium. Install it (Debian: chromium-headless-shell), or set TEST_CHROMIUM to its path.",
    );
  return path;
}
