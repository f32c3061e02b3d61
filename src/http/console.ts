import { readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { AppError } from "../kit/errors.ts";
import { loadOnce } from "../kit/load-once.ts";
import { root } from "../kit/root.ts";
import { sendTagged, tagged, type TaggedBytes } from "./conditional.ts";
import { answerUnsupported, unknownRoute } from "./error-body.ts";
import type { ApiContext, ApiMiddleware } from "./state.ts";

/** Folder of the console's files, which `npm run build` fills. */
const builtFolder = fileURLToPath(new URL("dist/console/", root));

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".json": "application/json",
  ".txt": "text/plain; charset=utf-8",
  ".woff2": "font/woff2",
};

/** Media types of files that gzip makes smaller. */
const compressed = /^(text|application)\/|svg/;

/** Facts for the page before its first request; src/console/app reads them. */
export interface ConsoleFacts {
  readonly basePath: string;
  readonly apiPath: string;
  /** Path of the reference page. Undefined: the page is off. */
  readonly docsPath: string | undefined;
  /** The issuer at which people may sign in. Undefined: people sign in with tokens only. */
  readonly jwt:
    | { readonly issuer: string; readonly clientId: string; readonly audience: string | undefined }
    | undefined;
  readonly version: string;
}

/** The pages of the console below a path. */
export interface ConsolePages {
  /** Returns whether a path belongs to the console. */
  has(path: string): boolean;
  readonly serve: ApiMiddleware;
}

interface Asset extends TaggedBytes {
  readonly zipped: Buffer | undefined;
  readonly type: string;
}

/**
 * Creates the pages of the console. They contain nothing of the configuration but `facts`, and so
 * need no token; the page asks for one. Every path below `basePath` without a file serves the page,
 * because it has routes of its own.
 *
 * @param folder Folder of the built files.
 */
export function createConsole(facts: ConsoleFacts, folder = builtFolder): ConsolePages {
  const { basePath } = facts;
  const policy = policyOf(facts);
  const load = loadOnce((name) => loadAsset(folder, name, facts));
  let names: ReadonlySet<string> | undefined;

  return {
    has: (path) => path === basePath || path.startsWith(`${basePath}/`),
    async serve(ctx) {
      if (ctx.method !== "GET" && ctx.method !== "HEAD") return answerUnsupported(ctx, ["GET", "HEAD"]);
      // Only these names lead to a file, so no path can leave the folder.
      names ??= namesIn(folder);
      const name = ctx.path.slice(basePath.length + 1);
      const isFile = name !== pageName && names.has(name);
      if (!isFile && name.startsWith("assets/")) throw unknownRoute(ctx.path);
      const asset = await load(isFile ? name : pageName);
      if (!isFile) {
        ctx.set("Content-Security-Policy", policy);
        ctx.set("Cross-Origin-Opener-Policy", "same-origin");
      }
      send(ctx, asset, name.startsWith("assets/"));
    },
  };
}

const pageName = "index.html";

/**
 * Returns the policy that lets the page load its own files, and call its own origin and the
 * issuer's.
 */
function policyOf({ jwt }: ConsoleFacts): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    `connect-src 'self'${jwt === undefined ? "" : ` ${new URL(jwt.issuer).origin}`}`,
    "base-uri 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

/** @throws AppError when the page is missing. */
function namesIn(folder: string): ReadonlySet<string> {
  try {
    const names = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(folder.length));
    if (names.includes(pageName)) return new Set(names);
  } catch {
    // A missing folder counts as a folder without the page.
  }
  throw new AppError(
    "route.not_found",
    "The console is not built. Build it with `npm run build`, or set console.enabled to false.",
  );
}

async function loadAsset(folder: string, name: string, facts: ConsoleFacts): Promise<Asset> {
  const stored = await readFile(join(folder, name));
  const bytes = name === pageName ? Buffer.from(pageFor(stored.toString(), facts)) : stored;
  const type = types[extname(name)] ?? "application/octet-stream";
  const zipped = compressed.test(type) ? await promisify(gzip)(bytes, { level: 9 }) : undefined;
  return { ...tagged(bytes), zipped, type };
}

/** Inserts the base path and the facts into the built page. */
function pageFor(html: string, facts: ConsoleFacts): string {
  const content = escaped(
    JSON.stringify({ ...facts, jwt: facts.jwt ?? null, docsPath: facts.docsPath ?? null }),
  );
  return html
    .replace(/<base href="\/console\/" ?\/?>/, () => `<base href="${escaped(facts.basePath)}/">`)
    .replace(
      /<meta name="svc-console" content="\{\}" ?\/?>/,
      () => `<meta name="svc-console" content="${content}">`,
    );
}

function escaped(text: string): string {
  const names: Readonly<Record<string, string>> = { "&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;" };
  return text.replaceAll(/[&"<>]/g, (character) => names[character] ?? character);
}

function send(ctx: ApiContext, { bytes, zipped, type, tag }: Asset, isHashed: boolean): void {
  ctx.vary("Accept-Encoding");
  const takesGzip = zipped !== undefined && ctx.acceptsEncodings("gzip", "identity") === "gzip";
  if (takesGzip) ctx.set("Content-Encoding", "gzip");
  // The names of assets contain a hash. The page is requested again each time, with a 304 until it
  // changes.
  const caching = isHashed ? "public, max-age=31536000, immutable" : "no-cache";
  sendTagged(ctx, { bytes: takesGzip ? zipped : bytes, tag }, { type, caching });
}
