import { Pool } from "pg";
import { journalSql, noteArrivals, type Arrivals, type Audience } from "./ledger.ts";
import { admin } from "./program.ts";
import { startReceiver } from "./receiver.ts";
import { request } from "./service.ts";

/** Users, subscriptions, a receiver and a journal, on a running service with the table `notes`. */
export interface KillScene {
  readonly pool: Pool;
  readonly databaseUrl: string;
  /** Token of the user who writes through the API. */
  readonly token: string;
  /** Ids of the users who own records. */
  readonly ownerIds: readonly number[];
  readonly audiences: readonly Audience[];
  readonly arrivals: Arrivals;
  close(): Promise<void>;
}

const all = ["on_create", "on_update", "on_delete"];

/**
 * Makes two owners, an admin who sees the records of both, and a subscription of the first owner
 * that always fails.
 *
 * @param env Environment of `svc-admin`.
 * @param baseUrl URL of the API, with the route prefix.
 */
export async function prepareKillScene({
  env,
  baseUrl,
  databaseUrl,
}: {
  readonly env: Readonly<Record<string, string>>;
  readonly baseUrl: string;
  readonly databaseUrl: string;
}): Promise<KillScene> {
  const pool = new Pool({ connectionString: databaseUrl });
  // The server is killed during the test.
  pool.on("error", () => undefined);
  await pool.query(journalSql);
  const receiver = await startReceiver();

  const createUser = async (name: string, ...options: string[]): Promise<{ id: number; token: string }> => {
    const args = ["create-user", "--name", name, "--email", `${name.toLowerCase()}@example.com`, ...options];
    const { id, token } = await admin(args, env);
    return { id: Number(id), token: String(token) };
  };
  const [ada, eve, grace] = await Promise.all([
    createUser("Ada"),
    createUser("Eve"),
    createUser("Grace", "--admin"),
  ]);

  const audiences: Audience[] = [];
  for (const { path, token, triggers, ownerId } of [
    { path: "/ada", token: ada.token, triggers: all, ownerId: ada.id },
    { path: "/eve", token: eve.token, triggers: ["on_create", "on_delete"], ownerId: eve.id },
    { path: "/grace", token: grace.token, triggers: all, ownerId: undefined },
    { path: "/broken", token: ada.token, triggers: ["on_delete"], ownerId: ada.id },
  ]) {
    const { status, body } = await request({
      url: `${baseUrl}/webhooks`,
      method: "POST",
      token,
      body: { url: receiver.url + path, resource: "notes", events: triggers },
    });
    if (status !== 201) throw new Error(`POST /webhooks answered ${status} ${JSON.stringify(body)}`);
    audiences.push({ path, subscriptionId: body.id as number, triggers, ownerId });
  }
  return {
    pool,
    databaseUrl,
    token: ada.token,
    ownerIds: [ada.id, eve.id],
    audiences,
    arrivals: noteArrivals(receiver),
    async close() {
      await pool.end();
      await receiver.close();
    },
  };
}
