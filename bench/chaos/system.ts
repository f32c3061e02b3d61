import { randomBytes } from "node:crypto";
import { Pool } from "pg";
import { journalSql, type Audience } from "../../test/support/ledger.ts";
import { notesYaml } from "../../test/support/notes.ts";
import { type PrivatePostgres, startPrivatePostgres } from "../../test/support/postgres.ts";
import { admin, writeConfiguration } from "../../test/support/program.ts";
import { type PrivateRabbitMq, startPrivateRabbitMq } from "../../test/support/rabbitmq.ts";
import { type Proxy, startProxy, through } from "../../test/support/proxy.ts";
import { request } from "../../test/support/service.ts";
import { startPeer, type Peer } from "../peer.ts";
import type { AtEnd } from "../run-to-end.ts";
import { type Process, startWatched } from "./processes.ts";
import type { Manner, ReceiversAnswer, ReceiversQuestion } from "./receivers.ts";

/** Proxies between a process and its servers. */
export interface Links {
  readonly PostgreSQL: Proxy;
  readonly RabbitMQ: Proxy;
}

/** A webhook, as its owner sees it. */
export interface OwnedWebhook {
  readonly path: string;
  readonly id: number;
  readonly token: string;
}

/**
 * The whole service in its usual setup, on private servers, with users, subscriptions and
 * receivers.
 */
export interface System {
  readonly postgres: PrivatePostgres;
  readonly rabbitMq: PrivateRabbitMq;
  readonly apis: readonly Process[];
  readonly dispatchers: readonly Process[];
  /** The connections of each process to its servers, by kind and index of the process. */
  readonly links: Readonly<Record<"api" | "dispatcher", readonly Links[]>>;
  readonly receivers: Peer<ReceiversQuestion, ReceiversAnswer>;
  /** The run's own connections, which no fault affects. */
  readonly pool: Pool;
  readonly audiences: readonly Audience[];
  /** Webhooks of the receivers that faults affect; their owners change them. */
  readonly owned: readonly OwnedWebhook[];
  /** Environment of `svc-admin`. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * Ada and Eve each write through one process of the API. The records of SQL belong to them and
   * Ida.
   */
  readonly writers: readonly { readonly name: string; readonly token: string }[];
  readonly ownerIds: readonly number[];
}

export const prefix = "/svc-api";
/** Name that distinguishes the run's own connections from all others. */
export const ownApplication = "chaos";

/** Indices of `receiverManners`: the receiver that never fails, and those that faults affect. */
export const steadyReceiver = 0;
export const faultyReceivers = [1, 2] as const;
/** Manner of each receiver without a fault. */
export const receiverManners: readonly Manner[] = ["well", "flaky", "flaky", "broken"];

/**
 * Settings of the run. Retries are quick, so that a receiver's fault of seconds fails no delivery.
 * Everything else has its default.
 */
const service = `
database:
  poolSize: 6
webhooks:
  timeout: 2
  maxAttempts: 8
  backoff: [0.5, 1, 2, 5]
  allowedNetworks: [127.0.0.0/8]
`;

const all = ["on_create", "on_update", "on_delete"];

/** Records of the run beside the service: the event of each change, and the removed rows. */
const noteSql = `
  CREATE TABLE noted_events (uuid uuid PRIMARY KEY, change text, is_erased boolean NOT NULL DEFAULT false);
  CREATE TABLE removed_deliveries (LIKE svc.deliveries);
  CREATE FUNCTION note_event() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'INSERT' THEN
      INSERT INTO public.noted_events VALUES (NEW.uuid, NEW.trigger || ' ' || (NEW.snapshot->>'text'));
    ELSE
      UPDATE public.noted_events SET is_erased = true WHERE uuid = NEW.uuid;
    END IF;
    RETURN NULL;
  END $$;
  CREATE FUNCTION note_removal() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO public.removed_deliveries VALUES (OLD.*);
    RETURN NULL;
  END $$;
  CREATE TRIGGER note_event AFTER INSERT OR UPDATE OF snapshot ON svc.events FOR EACH ROW EXECUTE FUNCTION note_event();
  CREATE TRIGGER note_removal AFTER DELETE ON svc.deliveries FOR EACH ROW EXECUTE FUNCTION note_removal()`;

export async function startSystem(atEnd: AtEnd): Promise<System> {
  const held = async <T extends { dispose(): Promise<void> }>(starting: Promise<T>): Promise<T> => {
    const started = await starting;
    atEnd(() => started.dispose());
    return started;
  };
  const [postgres, rabbitMq] = await Promise.all([
    // Commits must outlive an immediate shutdown.
    held(startPrivatePostgres({ fsync: true })),
    held(startPrivateRabbitMq()),
  ]);
  const configuration = writeConfiguration({ service, resources: { "notes.yaml": notesYaml } });
  atEnd(() => configuration.dispose());
  const env = {
    ...configuration.env,
    DATABASE_URL: postgres.url,
    AMQP_URL: rabbitMq.url,
    SVC_SECRET_KEY: randomBytes(32).toString("base64"),
    SVC_LOG_LEVEL: "warn",
  };
  await admin(["migrate"], env);
  const link = async (): Promise<Links> => {
    const [PostgreSQL, RabbitMQ] = await Promise.all([startProxy(postgres.url), startProxy(rabbitMq.url)]);
    atEnd(() => Promise.all([PostgreSQL.close(), RabbitMQ.close()]).then(() => undefined));
    return { PostgreSQL, RabbitMQ };
  };
  const links = {
    api: await Promise.all([link(), link()]),
    dispatcher: await Promise.all([link(), link()]),
  };
  const startTwo = (name: "api" | "dispatcher"): Promise<readonly Process[]> =>
    Promise.all(
      links[name].map((own) =>
        held(
          startWatched(name, {
            ...env,
            DATABASE_URL: through(own.PostgreSQL, postgres.url),
            AMQP_URL: through(own.RabbitMQ, rabbitMq.url),
          }),
        ),
      ),
    );
  const [apis, dispatchers] = await Promise.all([startTwo("api"), startTwo("dispatcher")]);

  const pool = new Pool({ connectionString: postgres.url, application_name: ownApplication, max: 4 });
  // The server is stopped during the run.
  pool.on("error", () => undefined);
  atEnd(() => pool.end());
  await pool.query(journalSql);
  await pool.query(noteSql);
  const receivers = startPeer<ReceiversQuestion, ReceiversAnswer>("chaos/receivers.ts");
  atEnd(() => receivers.end());
  const { ports } = await receivers.ask({ kind: "open", manners: receiverManners });

  const [ada, eve, ida, grace] = await Promise.all([
    createUser("Ada", env),
    createUser("Eve", env),
    createUser("Ida", env),
    createUser("Grace", env, "--admin"),
  ]);
  const origin = apis[0]?.program.origin ?? "";
  const audiences: Audience[] = [];
  const owned: OwnedWebhook[] = [];
  for (const { path, receiver, token, triggers, ownerId } of [
    // Gets all events, so that each change arrives at least once at a receiver that never fails.
    { path: "/grace", receiver: steadyReceiver, token: grace.token, triggers: all, ownerId: undefined },
    { path: "/ada", receiver: steadyReceiver, token: ada.token, triggers: all, ownerId: ada.id },
    { path: "/eve", receiver: 1, token: eve.token, triggers: ["on_create", "on_delete"], ownerId: eve.id },
    { path: "/graces-updates", receiver: 1, token: grace.token, triggers: ["on_update"], ownerId: undefined },
    { path: "/ida", receiver: 2, token: ida.token, triggers: all, ownerId: ida.id },
    { path: "/adas-creates", receiver: 2, token: ada.token, triggers: ["on_create"], ownerId: ada.id },
    { path: "/broken", receiver: 3, token: ida.token, triggers: ["on_delete"], ownerId: ida.id },
  ]) {
    const { status, body } = await request({
      url: `${origin}${prefix}/webhooks`,
      method: "POST",
      token,
      body: { url: `http://127.0.0.1:${ports[receiver]}${path}`, resource: "notes", events: triggers },
    });
    if (status !== 201) throw new Error(`POST /webhooks answered ${status} ${JSON.stringify(body)}`);
    const id = Number(body["id"]);
    audiences.push({ path, subscriptionId: id, triggers, ownerId });
    if (faultyReceivers.some((one) => one === receiver)) owned.push({ path, id, token });
    await receivers.ask({ kind: "secret", path, secret: String(body["secret"]) });
  }
  return {
    postgres,
    rabbitMq,
    apis,
    dispatchers,
    links,
    receivers,
    pool,
    audiences,
    owned,
    env,
    writers: [
      { name: "ada", token: ada.token },
      { name: "eve", token: eve.token },
    ],
    ownerIds: [ada.id, eve.id, ida.id],
  };
}

async function createUser(
  name: string,
  env: Readonly<Record<string, string>>,
  ...options: readonly string[]
): Promise<{ readonly id: number; readonly token: string }> {
  const args = ["create-user", "--name", name, "--email", `${name.toLowerCase()}@example.com`, ...options];
  const { id, token } = await admin(args, env);
  return { id: Number(id), token: String(token) };
}
