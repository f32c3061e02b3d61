import { openDatabase, type Database } from "../../src/db/client.ts";
import { createTestDatabase } from "./database.ts";
import { ofSuite } from "./of-suite.ts";

/** A pool on an empty database. */
export interface OwnDatabase extends Database {
  readonly url: string;
}

/** Opens such a database before the tests of a suite, and removes it after them. */
export function databaseOfSuite(
  options: Omit<Parameters<typeof openDatabase>[0], "url" | "isEmbedded">,
): OwnDatabase {
  const open = async (): Promise<OwnDatabase> => {
    const created = await createTestDatabase();
    const database = await openDatabase({ ...options, url: created.url, isEmbedded: false });
    const close = (): Promise<void> => database.close().then(() => created.drop());
    return { ...database, url: created.url, close };
  };
  return ofSuite(open, (opened) => opened.close());
}
