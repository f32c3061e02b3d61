import { readFile } from "node:fs/promises";
import { sendTagged, tagged, type TaggedBytes } from "../http/conditional.ts";
import type { ApiRouter } from "../http/state.ts";
import { loadOnce } from "../kit/load-once.ts";
import { root } from "../kit/root.ts";

/**
 * Folder of the page's files, which `npm run build:page` fills: our own and those of Swagger UI.
 */
const folder = new URL("dist/openapi/page/", root);

/** Caches revalidate a file each time, with a 304 until the version of the service changes. */
const caching = "public, no-cache";

/** Media type of every served file, by its name. No other name leads to a file. */
const files: ReadonlyMap<string, string> = new Map([
  ["page.css", "text/css; charset=utf-8"],
  ["page.js", "text/javascript; charset=utf-8"],
  ["swagger-ui.css", "text/css; charset=utf-8"],
  ["swagger-ui-bundle.js", "text/javascript; charset=utf-8"],
]);

/**
 * Lets the page load its own files and call its own origin, and nothing else. The styles of Swagger
 * UI contain pictures.
 */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/**
 * Adds `GET openapi.json`, and the page over it. The document is made at the first request and
 * cached. A reload creates new routes, and with them another document.
 */
export function addOpenApiRoutes({
  audience,
  router,
  openRouter,
  makeDocument,
}: {
  /** The setting `http.openApi`: token, public or off. */
  readonly audience: string;
  /** Router of the routes that need a token. */
  readonly router: ApiRouter;
  /** Router of the routes that need no token. */
  readonly openRouter: ApiRouter;
  readonly makeDocument: () => unknown;
}): void {
  if (audience === "off") return;
  addPageRoutes(openRouter);
  let made: TaggedBytes | undefined;
  (audience === "public" ? openRouter : router).get("/openapi.json", (ctx) => {
    made ??= tagged(Buffer.from(JSON.stringify(makeDocument())));
    // A client may keep the document, and revalidates it each time; the answer is then a 304.
    sendTagged(ctx, made, { type: "json", caching: "private, no-cache" });
  });
}

/**
 * Adds `GET docs`: a page over the document, for people. The page contains nothing of the
 * configuration, and so needs no token; it asks for one to load the document.
 */
function addPageRoutes(router: ApiRouter): void {
  const load = loadOnce(async (name) => tagged(await readFile(new URL(name, folder))));

  router.get("/docs", async (ctx) => {
    // The page refers to its files relative to `/docs`.
    if (ctx.path.endsWith("/")) {
      ctx.redirect("../docs");
      return;
    }
    ctx.set("Content-Security-Policy", policy);
    sendTagged(ctx, await load("page.html"), { type: "text/html; charset=utf-8", caching });
  });

  for (const [name, type] of files)
    router.get(`/docs/${name}`, async (ctx) => sendTagged(ctx, await load(name), { type, caching }));
}
