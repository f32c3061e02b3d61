import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Actor } from "../kit/actor.ts";
import { actingAs } from "../db/audit.ts";
import type { PrismaClient } from "../db/generated/client.ts";
import type { TokenProvider } from "./provider.ts";

const first = { name: "Admin", email: "admin@localhost" } as const;

/**
 * Makes an admin at the first start on the embedded database. Keeps its token in
 * `<dataDir>/admin.token` (mode 0600), so that the start can print a working command without the
 * token.
 *
 * @returns The file's path. Undefined when the operator has other users, or has disabled this one.
 */
export async function ensureFirstUser({
  prisma,
  tokens,
  dataDir,
  actor,
}: {
  readonly prisma: PrismaClient;
  readonly tokens: TokenProvider;
  readonly dataDir: string;
  /** For the audit trail. */
  readonly actor: Actor;
}): Promise<string | undefined> {
  const file = join(dataDir, "admin.token");
  const kept = await readFile(file, "utf8").catch(() => undefined);
  if (kept !== undefined && (await tokens.identify(kept.trim())).kind === "known") return file;
  let user = await prisma.user.findUnique({ where: { email: first.email } });
  if (user === null) {
    if ((await prisma.user.count()) > 0) return undefined;
    user = await actingAs(prisma, actor, prisma.user.create({ data: { ...first, isAdmin: true } }));
  }
  if (user.disabledAt !== null) return undefined;
  const { token } = await tokens.issue({ userId: user.id, name: "first start" });
  await mkdir(dataDir, { recursive: true });
  // An existing file would keep its own mode.
  await rm(file, { force: true });
  await writeFile(file, `${token}\n`, { mode: 0o600, flag: "wx" });
  return file;
}
