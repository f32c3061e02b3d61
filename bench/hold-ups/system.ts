import { randomBytes } from "node:crypto";
import { Pool, type QueryResultRow } from "pg";
import type { Sql } from "../../src/db/sql.ts";
import { admin, writeConfiguration } from "../../test/support/program.ts";
import { request } from "../../test/support/service.ts";
import { containerBytes, createMemoryLimit } from "../memory-limit.ts";
import { type Process, startWatched } from "../chaos/processes.ts";
import { startPeer } from "../peer.ts";
import type { AtEnd } from "../run-to-end.ts";
import type { Manner, ReceiversAnswer, ReceiversQuestion } from "./receivers.ts";
import { files, service } from "./resources.ts";
import type { Place } from "./servers.ts";

export interface User {
  readonly id: number;
  readonly token: string;
}

/** A receiver of the user who holds up. */
export interface Receiver {
  readonly port: number;
  behave(manner: Manner): Promise<void>;
  /** Returns the number of different deliveries so far. */
  count(): Promise<number>;
}

/**
 * `svc api` and `svc dispatcher`, each in the memory of a container, with the users and receivers
 * of a hold-up.
 */
export interface System {
  readonly place: Place;
  readonly api: Process;
  readonly dispatcher: Process;
  readonly notesUrl: string;
  readonly limitKind: string;
  /** The user who holds up. */
  readonly ada: User;
  readonly bea: User;
  readonly grace: User;
  /** Runs a statement on the database, as an operator. */
  readonly sql: Sql;
  /** Connections of the bench. */
  readonly pool: Pool;
  readonly openReceiver: (manner: Manner) => Promise<Receiver>;
  /** Returns the id of the new subscription. */
  readonly subscribe: (user: User, subscription: Wanted) => Promise<number>;
  /** Calls the API, below its prefix. Throws unless the answer is a success. */
  readonly ask: (
    user: User,
    method: string,
    path: string,
    body?: object,
  ) => Promise<Readonly<Record<string, unknown>>>;
}

export interface Wanted {
  readonly port: number;
  readonly resource?: string;
  readonly events?: readonly string[];
  readonly filter?: object;
}

export async function startSystem(place: Place, atEnd: AtEnd): Promise<System> {
  const configuration = writeConfiguration({ service, resources: files });
  atEnd(() => configuration.dispose());
  const env = {
    ...configuration.env,
    DATABASE_URL: place.databaseUrl,
    AMQP_URL: place.amqpUrl,
    SVC_SECRET_KEY: randomBytes(32).toString("base64"),
    SVC_LOG_LEVEL: "warn",
  };
  await admin(["migrate"], env);
  const pool = new Pool({ connectionString: place.ownUrl, max: 4 });
  pool.on("error", () => undefined);
  atEnd(() => pool.end());
  await pool.query("CREATE EXTENSION pg_stat_statements");
  const receivers = startPeer<ReceiversQuestion, ReceiversAnswer>("hold-ups/receivers.ts");
  atEnd(() => receivers.end());

  const createUser = async (name: string, ...options: readonly string[]): Promise<User> => {
    const args = ["create-user", "--name", name, "--email", `${name}@example.com`, ...options];
    const { id, token } = await admin(args, env);
    return { id: Number(id), token: String(token) };
  };
  const start = async (name: "api" | "dispatcher"): Promise<Process & { readonly kind: string }> => {
    const limit = createMemoryLimit(containerBytes);
    atEnd(() => limit.remove());
    const started = await startWatched(name, env, limit);
    atEnd(() => started.dispose());
    return { ...started, kind: limit.kind };
  };
  const [ada, bea, grace] = await Promise.all([
    createUser("ada"),
    createUser("bea"),
    createUser("grace", "--admin"),
  ]);
  const [api, dispatcher] = [await start("api"), await start("dispatcher")];
  const baseUrl = `${api.program.origin}/svc-api`;

  const ask: System["ask"] = async ({ token }, method, path, given) => {
    const { status, body } = await request({ url: baseUrl + path, method, token, body: given });
    if (status >= 200 && status < 300) return body ?? {};
    throw new Error(`${method} ${path} answered ${status} ${JSON.stringify(body)}`);
  };
  return {
    place,
    api,
    dispatcher,
    notesUrl: `${baseUrl}/resources/notes`,
    limitKind: api.kind,
    ada,
    bea,
    grace,
    async sql<R extends QueryResultRow>(text: string, values: readonly unknown[] = []) {
      return (await pool.query<R>(text, [...values])).rows;
    },
    pool,
    async openReceiver(manner) {
      const { port } = await receivers.ask({ kind: "open", manner });
      return {
        port,
        behave: async (next) => void (await receivers.ask({ kind: "behave", port, manner: next })),
        count: async () => (await receivers.ask({ kind: "look", port })).count,
      };
    },
    async subscribe(user, { port, resource = "notes", events = ["on_create"], filter = null }) {
      const url = `http://127.0.0.1:${port}/`;
      return Number((await ask(user, "POST", "/webhooks", { url, resource, events, filter }))["id"]);
    },
    ask,
  };
}
