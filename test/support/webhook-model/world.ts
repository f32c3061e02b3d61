import { createHmac } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { createTransact, type Sql, type Transact } from "../../../src/db/sql.ts";
import { createProgram, type Program, writeConfiguration } from "../program.ts";
import { reply, startReceiver, type ReceivedRequest, type TestReceiver } from "../receiver.ts";
import { startService, type Mode, type TestService, type TestUser } from "../service.ts";
import { until } from "../wait.ts";
import { manualRetryLimit, maxAttempts, type Manner, type Model, type Subscription } from "./model.ts";
import { journalTransitions } from "./transitions.ts";

/** One POST, checked at its arrival. */
export interface Post {
  readonly path: string;
  readonly delivery: string;
  readonly text: string;
  readonly status: number;
}

/** The service that is compared with the model. */
export interface World {
  readonly service: TestService;
  readonly admin: TestUser;
  readonly receiver: TestReceiver;
  readonly sql: Sql;
  readonly transact: Transact;
  /** Answer of the receiver and signing secret, by path. */
  readonly manners: Map<string, Manner>;
  readonly secrets: Map<string, string>;
  posts: readonly Post[];
  /** Faults of requests that no receiver may ever get. */
  faults: string[];
  /** A second dispatcher, which is killed; undefined on the embedded database. */
  readonly victim: Program | undefined;
  /** Path that the receiver answers slowly. */
  slowPath: string | undefined;
  /** Whether a process was killed in this run: its requests may be repeated. */
  hasCrashed: boolean;
  /** Waits until no work is due. */
  settle(): Promise<void>;
  /** Kills a dispatcher, and restarts it. */
  crash(afterMs: number): Promise<void>;
  /** Waits until a subscription is off. */
  untilOff(id: number): Promise<void>;
  /** Forgets the checked answers of 410. */
  forgetGone(path: string): void;
  /** Forgets POSTs of deliveries that were deleted. */
  forget(uuids: readonly string[]): void;
  /** Pauses, resumes or cancels a replay, unless it has ended. */
  tryMoving(replayId: string, move: "pause" | "resume" | "cancel"): Promise<void>;
  nextNumber(): number;
  stop(): Promise<void>;
}

const tableOf = (name: string, model: string): string => `
name: ${name}
model: ${model}
fields:
  id: { type: Int, id: true }
  text: { type: String }
  user_id: { type: Int }
triggers: [on_create]
ownerColumn: user_id
webhookMaxAttempts: ${maxAttempts[name as keyof typeof maxAttempts]}
webhookBackoff: [7200]
`;
const resources = { "notes.yaml": tableOf("notes", "Note"), "alerts.yaml": tableOf("alerts", "Alert") };
const webhooks = `
webhooks:
  timeout: 2
  backoff: [7200]
  jitter: 0
  sweepInterval: 0.05
  requeueAfter: 2
  manualRetryLimit: ${manualRetryLimit}
  allowedNetworks: [127.0.0.0/8]
`;

/** Selects the remaining work. No delivery waits for a future time here. */
const openText = `
  SELECT (SELECT count(*) FROM svc.outbox)
    + (SELECT count(*) FROM svc.delivery_queue WHERE due_at IS NULL OR due_at <= now())
    + (SELECT count(*) FROM svc.deliveries AS delivery LEFT JOIN svc.subscriptions AS subscription ON subscription.id = subscription_id
        LEFT JOIN svc.users AS subscriber ON subscriber.id = subscription.user_id
        WHERE held_at IS NOT NULL AND (subscription.id IS NULL OR subscription.is_active AND subscriber.disabled_at IS NULL
          OR greatest(subscription.disabled_at, subscriber.disabled_at) < now() - interval '7 days'
          OR delivery.id <= (SELECT up_to FROM svc.discards WHERE discards.subscription_id = subscription.id)))
    + (SELECT count(*) FROM svc.replays WHERE state = 'running')
    + (SELECT count(*) FROM svc.deliveries WHERE status = 'failed' AND dead_lettered_at IS NULL) AS open,
    (SELECT coalesce(string_agg(id::text, ',' ORDER BY id), '') FROM svc.flights) AS flights`;

/** A flight of a live process ends long before this. */
const deadFlightMs = 700;
const slowMs = 300;
const settleLimitMs = 30_000;

export async function startWorld(mode: Mode): Promise<World> {
  const configuration = writeConfiguration({ service: webhooks, resources });
  const secretKey = Buffer.alloc(32, 7).toString("base64");
  const service = await startService({
    mode,
    resources,
    webhooks: { backoffMs: [7_200_000], manualRetryLimit },
    ...(mode === "servers" && { env: { SVC_SECRET_KEY: secretKey } }),
  });
  const { sql, database } = service.infrastructure;
  await database.pool.query(journalTransitions);
  const { url = "" } = service.config.database;
  const victim =
    mode === "embedded"
      ? undefined
      : await createProgram({
          name: "dispatcher",
          env: {
            ...configuration.env,
            DATABASE_URL: url,
            AMQP_URL: service.config.broker.url ?? "",
            SVC_SECRET_KEY: secretKey,
          },
        });
  await victim?.start();
  const receiver = await startReceiver({ isForgetful: true });
  let number = 0;
  const world: World = {
    service,
    admin: await service.createUser({ isAdmin: true, name: "Admin" }),
    receiver,
    sql,
    transact: createTransact(database.pool),
    manners: new Map(),
    secrets: new Map(),
    posts: [],
    faults: [],
    victim,
    slowPath: undefined,
    hasCrashed: false,
    settle: () => settle(world),
    async crash(afterMs) {
      await sleep(afterMs);
      world.hasCrashed = true;
      await victim?.end("SIGKILL");
      victim?.launch();
    },
    async untilOff(id) {
      const isOff = async (): Promise<boolean> =>
        (await sql("SELECT FROM svc.subscriptions WHERE id = $1 AND NOT is_active", [id])).length > 0;
      await until(isOff, { what: `webhook ${id} to be switched off` });
    },
    forgetGone(path) {
      world.posts = world.posts.map((post) =>
        post.path === path && post.status === 410 ? { ...post, status: 500 } : post,
      );
    },
    forget(uuids) {
      world.posts = world.posts.filter(({ delivery }) => !uuids.includes(delivery));
    },
    async tryMoving(replayId, move) {
      const path = `${service.baseUrl}/webhook-replays/${replayId}/${move}`;
      const headers = { authorization: `Bearer ${world.admin.token}`, "content-type": "application/json" };
      const { status } = await fetch(path, { method: "POST", headers, body: "{}" });
      expect(status, `${move} of a replay`).to.be.oneOf([200, 409]);
    },
    nextNumber: () => (number += 1),
    async stop() {
      await victim?.dispose();
      await receiver.close();
      await service.stop();
      configuration.dispose();
    },
  };
  receiver.answer = (request, response) => {
    const status = { ok: 204, fail: 500, gone: 410 }[world.manners.get(request.path) ?? "ok"];
    world.posts = [...world.posts, judge(world, request, status)];
    reply(response, { status, ...(request.path === world.slowPath && { delayMs: slowMs }) });
  };
  return world;
}

/**
 * Begins a run: two new users with a webhook each, and no deliveries of earlier runs that could
 * still be sent.
 */
export async function startRun(world: World): Promise<{ readonly model: Model; readonly real: World }> {
  await world.sql("DELETE FROM svc.subscriptions");
  await world.sql("UPDATE svc.delivery_queue SET due_at = date_trunc('milliseconds', now())");
  await world.settle();
  Object.assign(world, { posts: [], faults: [], slowPath: undefined, hasCrashed: false });
  const users = await Promise.all([world.service.createUser(), world.service.createUser()]);
  const model: Model = {
    users: users.map(({ id, token }) => ({ id, token, isDisabled: false })),
    subscriptions: [],
    events: [],
    deliveries: [],
  };
  for (const user of model.users)
    await subscribe(model, world, { user, wanted: "*", isFiltered: false, isActive: true });
  return { model, real: world };
}

export async function subscribe(
  model: Model,
  world: World,
  { user, wanted, isFiltered, isActive }: Pick<Subscription, "user" | "wanted" | "isFiltered" | "isActive">,
): Promise<void> {
  const path = `/s${world.nextNumber()}`;
  const body = {
    url: world.receiver.url + path,
    resource: wanted,
    events: ["on_create"],
    filter: isFiltered ? { text: { starts_with: "paid" } } : null,
    is_active: isActive,
  };
  const { id, secret } = await ask(user, world, ["POST", "/webhooks", body], 201);
  world.secrets.set(path, String(secret));
  const states = { isActive, isOver: false, isDeleted: false, manner: "ok" as const };
  model.subscriptions.push({ id: Number(id), path, user, wanted, isFiltered, ...states });
}

function judge(
  { secrets, faults }: World,
  { path, headers, rawBody }: ReceivedRequest,
  status: number,
): Post {
  const body = JSON.parse(rawBody.toString()) as { delivery_id: string; data: { text: string } };
  const signature = createHmac("sha256", secrets.get(path) ?? "")
    .update(rawBody)
    .digest("hex");
  if (headers["x-service-signature"] !== `sha256=${signature}`)
    faults.push(`${path}: not signed by the newest secret`);
  return { path, delivery: body.delivery_id, text: body.data.text, status };
}

/** Ends the flights of a killed process, as time does. */
async function settle(world: World): Promise<void> {
  const { sql } = world;
  let flights = "";
  let since = performance.now();
  const isSettled = async (): Promise<boolean> => {
    const [row] = await sql<{ open: string; flights: string }>(openText);
    if (row?.flights !== flights) [flights, since] = [row?.flights ?? "", performance.now()];
    if (flights !== "" && world.hasCrashed && performance.now() - since > deadFlightMs) {
      await sql(
        "UPDATE svc.flights SET ends_at = now() - interval '1 second' WHERE id::text = ANY($1::text[])",
        [flights.split(",")],
      );
      await sql("UPDATE svc.lanes SET held_until = now() - interval '1 second'");
    }
    return Number(row?.open) === 0 && flights === "";
  };
  await until(isSettled, { what: "nothing to be left to do", timeoutMs: settleLimitMs });
}

/** Returns the API's answer; throws for another status. */
export async function ask(
  user: Pick<TestUser, "token">,
  { service }: World,
  [method, path, body]: readonly [string, string, unknown?],
  status: number,
): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(service.baseUrl + path, {
    method,
    headers: { authorization: `Bearer ${user.token}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  expect(response.status, `${method} ${path}: ${text}`).to.equal(status);
  return (text === "" ? {} : JSON.parse(text)) as Readonly<Record<string, unknown>>;
}
