import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase, type Database } from "../../src/db/client.ts";
import type { ModelsClient } from "../../src/db/models-client.ts";
import { openModelsClient } from "../../src/db/prisma-internals/models-client.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { openNewEmbedded } from "./embedded.ts";
import { createTestDatabase } from "./database.ts";

export const databaseKinds = ["PostgreSQL", "the embedded database"] as const;

/** Tables created by SQL, and a models client on them. */
export interface ModelsScene {
  readonly url: string;
  readonly isEmbedded: boolean;
  readonly database: Database;
  readonly models: ModelsClient;
  close(): Promise<void>;
}

export async function openModelsScene(
  kind: (typeof databaseKinds)[number],
  { tables, schemaText }: { readonly tables: string; readonly schemaText: string },
): Promise<ModelsScene> {
  const log = createLog({ level: "silent" });
  const folder = await mkdtemp(join(tmpdir(), "svc-models-"));
  const isEmbedded = kind !== "PostgreSQL";
  const embedded = isEmbedded ? await openNewEmbedded(folder) : undefined;
  const created = isEmbedded ? undefined : await createTestDatabase();
  const url = created?.url ?? embedded?.url ?? "";
  const database = await openDatabase({ url, poolSize: 3, isEmbedded, log });
  await database.pool.query(tables);
  const models = await openModelsClient({ schemaText, pool: database.pool, isEmbedded });
  return {
    url,
    isEmbedded,
    database,
    models,
    async close() {
      await models.close();
      await database.close();
      await embedded?.close();
      await created?.drop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
