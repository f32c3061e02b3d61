import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TokenProvider } from "./provider.ts";
import type { UserStore } from "./store.ts";

const first = { name: "Admin", email: "admin@localhost", isAdmin: true } as const;

/**
 * Creates an admin at the first start on the embedded database. Keeps its token in
 * `<dataDir>/admin.token` (mode 0600), so that the start can print a working command without the
 * token.
 *
 * @returns The file's path. Undefined when the operator has other users, or has disabled this one.
 */
export async function ensureFirstUser(
  users: Pick<UserStore, "list" | "create">,
  tokens: TokenProvider,
  dataDir: string,
): Promise<string | undefined> {
  const file = join(dataDir, "admin.token");
  const kept = await readFile(file, "utf8").catch(() => undefined);
  if (kept !== undefined && (await tokens.identify(kept.trim())).kind === "known") return file;
  const before = await users.list();
  let user = before.find(({ email }) => email === first.email);
  if (user === undefined) {
    if (before.length > 0) return undefined;
    const made = await users.create(first);
    // Another process has just created the user.
    if (made.kind !== "created") return undefined;
    ({ user } = made);
  }
  if (user.disabledAt !== null) return undefined;
  const { token } = await tokens.issue({ userId: user.id, name: "first start" });
  await mkdir(dataDir, { recursive: true });
  // Removes an existing file first, because it would keep its own mode.
  await rm(file, { force: true });
  await writeFile(file, `${token}\n`, { mode: 0o600, flag: "wx" });
  return file;
}
