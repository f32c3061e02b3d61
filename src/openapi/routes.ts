import { sendTagged, tagged, type TaggedBytes } from "../http/conditional.ts";
import { addPageRoutes } from "./page.ts";
import type { ApiRouter } from "../http/state.ts";

export interface OpenApiRoutesOptions {
  /** The setting `http.openApi`: token, public or off. */
  readonly audience: string;
  /** Router of the routes that need a token. */
  readonly router: ApiRouter;
  /** Router of the routes that need no token. */
  readonly openRouter: ApiRouter;
  readonly makeDocument: () => unknown;
}

/**
 * Adds `GET openapi.json`, and the page over it. The document is made at the first request and
 * cached. A reload creates new routes, and with them another document.
 */
export function addOpenApiRoutes(options: OpenApiRoutesOptions): void {
  const { audience, router, openRouter, makeDocument } = options;
  if (audience === "off") return;
  addPageRoutes(openRouter);
  let made: TaggedBytes | undefined;
  (audience === "public" ? openRouter : router).get("/openapi.json", (ctx) => {
    made ??= tagged(Buffer.from(JSON.stringify(makeDocument())));
    // A client may keep the document, and revalidates it each time; the answer is then a 304.
    sendTagged(ctx, made, { type: "json", caching: "private, no-cache" });
  });
}
