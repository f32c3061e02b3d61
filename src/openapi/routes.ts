import { entityTagOf, isKnown } from "../http/conditional.ts";
import { addPageRoutes } from "./page.ts";
import type { ApiContext, ApiRouter } from "../http/state.ts";

export interface OpenApiRoutesOptions {
  /** The setting `http.openApi`: token, public or off. */
  readonly audience: string;
  /** Holds the routes that need a token. */
  readonly router: ApiRouter;
  /** Holds those that need none. */
  readonly openRouter: ApiRouter;
  readonly makeDocument: () => unknown;
}

/**
 * Adds `GET openapi.json`, and the page over it. The document is made at the first request, and
 * kept: a reload makes new routes, and with them another document.
 */
export function addOpenApiRoutes(options: OpenApiRoutesOptions): void {
  const { audience, router, openRouter, makeDocument } = options;
  if (audience === "off") return;
  addPageRoutes(openRouter);
  let made: KnownDocument | undefined;
  (audience === "public" ? openRouter : router).get("/openapi.json", (ctx) => {
    made ??= documentOf(makeDocument());
    sendKnown(ctx, made);
  });
}

/** Bytes that all answers share. */
interface KnownDocument {
  readonly bytes: Buffer;
  readonly tag: string;
}

function documentOf(document: unknown): KnownDocument {
  const bytes = Buffer.from(JSON.stringify(document));
  return { bytes, tag: entityTagOf(bytes) };
}

function sendKnown(ctx: ApiContext, { bytes, tag }: KnownDocument): void {
  ctx.set("ETag", tag);
  // A client may keep it, and revalidates it each time: a 304 then.
  ctx.set("Cache-Control", "private, no-cache");
  ctx.type = "json";
  ctx.body = bytes;
  if (isKnown(ctx, tag)) ctx.status = 304;
}
