import { mkdtemp, rm, writeFile, mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadDefinitions } from "../../src/mapping/load.ts";
import { createDocument, type DocumentOptions } from "../../src/openapi/document.ts";

type Http = DocumentOptions["config"]["http"];

interface Method {
  readonly operationId: string;
  readonly security?: unknown;
}

/** The parts of a document that the tests read. */
export interface TestDocument {
  readonly tags: readonly object[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Method>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
    readonly responses: object;
  };
  readonly webhooks: object;
}

/** Makes the document of mapping files; by default of the samples. */
export async function documentOf(
  resources?: Readonly<Record<string, string>>,
  { http = {}, jwt }: { readonly http?: Partial<Http>; readonly jwt?: object } = {},
): Promise<TestDocument> {
  const folder = await mkdtemp(join(tmpdir(), "svc-openapi-"));
  try {
    await mkdir(join(folder, "resources"));
    for (const [name, text] of Object.entries(resources ?? {}))
      await writeFile(join(folder, "resources", name), text);
    const definitions = await loadDefinitions(resources === undefined ? "config" : folder);
    const settings = {
      routePrefix: "/svc-api",
      maxPerPage: 100,
      openApi: "token",
      publicUrl: undefined,
      rateLimit: undefined,
    };
    const config = { http: { ...settings, ...http }, auth: { jwt } };
    return createDocument({ definitions, config }) as unknown as TestDocument;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
