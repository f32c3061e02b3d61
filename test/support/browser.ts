import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import { canInstall, findExecutable, install } from "./apt.ts";

/** A page that records faults and requests. */
export interface WatchedPage {
  readonly page: Page;
  /** Violations of the content security policy, and uncaught errors of scripts. */
  readonly faults: readonly string[];
  /** URLs of every request, in order. */
  readonly requests: readonly string[];
  /** Closes the page, and all pages that it opened. */
  close(): Promise<void>;
}

export interface TestBrowser {
  /** Opens a page of an origin in a separate session, without cookies and storage of another. */
  open(origin: string): Promise<WatchedPage>;
  close(): Promise<void>;
}

/**
 * Chromium's headless shell takes half the CPU of the whole browser. TEST_CHROMIUM names another
 * executable.
 */
const shell = "chromium-headless-shell";
/** Paths of the executable in Debian and others. */
const candidates = [
  `/usr/bin/${shell}`,
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];

/**
 * Starts Chromium without a window. Installs it, with a font, when possible (test/support/apt.ts).
 */
export async function startBrowser(): Promise<TestBrowser> {
  const browser: Browser = await chromium.launch({
    executablePath: await findChromium(),
    // Chromium has no sandbox for root. The pages are the project's own.
    chromiumSandbox: process.getuid?.() !== 0,
    // Without a screen, the GPU process only takes time. One renderer for all pages of a context
    // compiles their scripts once.
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
 * A session of a browser. A new session with its first page takes three times the CPU of a second
 * page.
 */
interface Session {
  readonly context: BrowserContext;
  /**
   * A page without scripts. It keeps the process alive that has compiled the scripts of the other
   * pages.
   */
  readonly keeper: Page;
}

async function startSession(browser: Browser, origin: string): Promise<Session> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const keeper = await context.newPage();
  await keeper.goto(`${origin}/favicon.ico`);
  return { context, keeper };
}

/** Closes the pages of a session, and clears everything but compiled scripts. */
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
