import { createHash } from "node:crypto";
import { readFile, realpath, stat } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { hint } from "../../kit/did-you-mean.ts";
import { messageOf } from "../../kit/errors.ts";
import { endsWithin } from "../../kit/worker.ts";
import type { CodeModule } from "../definition.ts";
import type { Draft } from "./draft.ts";

const exportNames: readonly (keyof CodeModule)[] = [
  "transform",
  "createRules",
  "updateRules",
  "isAdmin",
  "applySearch",
  "baseQuery",
  "webhookMaxAttempts",
  "webhookBackoff",
];

/**
 * Number of failed loads of each text, by its URL. Node.js would otherwise repeat the first error
 * forever.
 */
const failures = new Map<string, number>();

/** A load that waits forever would keep every later reload waiting. */
const longestLoadMs = 10_000;

/**
 * Loads the code module that the file names, if any. It must be in the configuration folder, since
 * it runs with all rights of the service.
 *
 * @param limitMs How long `await` at the top level of the module may take.
 */
export async function loadCode(draft: Draft, configDir: string, limitMs = longestLoadMs): Promise<void> {
  const { module } = draft.content;
  if (module === undefined) return;
  const path = await findModule(join(configDir, dirname(draft.source.file), module), configDir);
  if (path === undefined) {
    draft.report(
      ["module"],
      "there is no such file in the configuration folder; expected a path relative to this file",
    );
    return;
  }
  draft.codeHash = path.contentHash;
  const url = pathToFileURL(path.file);
  // Node.js keeps a loaded module under its URL forever, together with its imports.
  url.searchParams.set("content", path.contentHash);
  const { href } = url;
  const failed = failures.get(href) ?? 0;
  let exported: object;
  try {
    const loading = import(failed === 0 ? href : `${href}&try=${failed}`) as Promise<object>;
    if (!(await endsWithin(limitMs, loading)))
      throw new Error(`an await at its top level takes more than ${limitMs / 1000} s`);
    exported = await loading;
  } catch (error) {
    failures.set(href, failed + 1);
    draft.report(["module"], `the code cannot be loaded: ${describe(error)}`);
    return;
  }
  for (const [name, value] of Object.entries(exported)) {
    if (!exportNames.some((known) => known === name)) {
      draft.report(["module"], `unknown export "${name}"${hint(name, exportNames)}`);
    } else if (typeof value !== "function") {
      draft.report(["module"], `expected the export "${name}" to be a function`);
    } else if (Object.prototype.toString.call(value) !== "[object Function]") {
      draft.report(
        ["module"],
        `expected the export "${name}" to be a plain function, neither async nor a generator`,
      );
    } else {
      draft.code = { ...draft.code, [name]: value };
    }
  }
}

/**
 * Returns the path of the module, and a hash of its content. Returns undefined without the file, or
 * when its real path is outside of the folder.
 */
async function findModule(
  path: string,
  configDir: string,
): Promise<{ file: string; contentHash: string } | undefined> {
  try {
    const [file, folder] = await Promise.all([realpath(path), realpath(configDir)]);
    const inside = relative(folder, file);
    // A folder within may begin with two dots: Kubernetes mounts files in `..2026_03_28_14_30`.
    const isOutside = inside.startsWith(`..${sep}`) || isAbsolute(inside);
    if (!(await stat(file)).isFile() || isOutside) return undefined;
    const contentHash = createHash("sha256")
      .update(await readFile(file))
      .digest("hex");
    return { file, contentHash: contentHash.slice(0, 16) };
  } catch {
    return undefined;
  }
}

/**
 * Describes a load error. Node.js hides the place of a syntax error unless it prints the error
 * itself.
 */
function describe(error: unknown): string {
  const more = error instanceof SyntaxError ? "; `node --check` shows the line" : "";
  return `${messageOf(error)}${more}`;
}
