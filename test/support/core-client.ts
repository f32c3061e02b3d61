import type { Pool } from "pg";
import { PrismaClient } from "./generated/client.ts";
import { createAdapter } from "../../src/db/prisma-internals/adapter.ts";

/**
 * Opens the typed client of the service's own tables (prisma/schema.prisma) over a pool, which
 * stays open.
 */
export function createCoreClient(pool: Pool, { isEmbedded = false } = {}): PrismaClient {
  return new PrismaClient({ adapter: createAdapter({ pool, isEmbedded }) });
}
