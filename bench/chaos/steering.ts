import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../../src/kit/errors.ts";
import { call } from "../../test/support/http.ts";
import { tryAdmin } from "../../test/support/program.ts";
import type { Fault, faultKinds, PlannedFault } from "./schedule.ts";
import { type OwnedWebhook, prefix, type System } from "./system.ts";

type SteeringKind = (typeof faultKinds)["owners" | "removals"][number];

type Answered = Readonly<Record<string, unknown>>;
type Ask = (method: "POST" | "PUT", path: string, body?: object) => Promise<Answered>;

const limitMs = 60_000;
const requestMs = 5_000;
const day = 86_400;
const nothing = async (): Promise<void> => undefined;

/** Creates the actions of owners and operators. Each retries until the service has answered. */
export function createSteering(
  system: System,
  { targets: [target = 0], waitMs }: PlannedFault,
): Readonly<Record<SteeringKind, () => Fault>> {
  const webhook = system.owned[target] ?? system.owned[0];
  if (webhook === undefined) throw new Error("there is no webhook");
  const ask: Ask = (method, path, body = {}) => askUntilAnswered(system, webhook, { method, path, body });
  const own = `/webhooks/${webhook.id}`;
  const set = (isActive: boolean): Promise<unknown> => ask("PUT", own, { is_active: isActive });
  /** Returns undefined while the webhook has an unfinished replay. */
  const replay = async (): Promise<number | undefined> => {
    const { id } = await ask("POST", `${own}/replay`, aWhileAgo());
    return id === undefined ? undefined : Number(id);
  };
  let replayId: number | undefined;
  return {
    "webhook paused": () => ({ begin: () => set(false), heal: () => set(true) }),
    "webhook paused and emptied": () => ({
      begin: () => set(false),
      async heal() {
        await ask("POST", `${own}/discard-held`);
        await set(true);
      },
    }),
    "secret rotated": () => ({
      async begin() {
        await system.receivers.ask({ kind: "rotating", path: webhook.path });
        const { secret } = await ask("POST", `${own}/rotate-secret`, { grace: waitMs % 2 === 0 ? 0 : day });
        await system.receivers.ask({ kind: "secret", path: webhook.path, secret: String(secret) });
      },
      heal: nothing,
    }),
    "events replayed": () => ({ begin: replay, heal: nothing }),
    // Pauses first, so that something is left to cancel.
    "replay stopped": () => ({
      async begin() {
        replayId = await replay();
        if (replayId !== undefined) await ask("POST", `/webhook-replays/${replayId}/pause`);
      },
      async heal() {
        if (replayId === undefined) return;
        await ask("POST", `/webhook-replays/${replayId}/resume`);
        await ask("POST", `/webhook-replays/${replayId}/cancel`);
      },
    }),
    "record erased": () => ({ begin: () => erase(system), heal: nothing }),
    "old events removed": () => ({ begin: () => removeOld(system), heal: nothing }),
  };
}

/** Switches every webhook on. A delayed request of a stopped process may have switched one off. */
export async function switchOn(system: System): Promise<void> {
  for (const webhook of system.owned) {
    const asked = { method: "PUT", path: `/webhooks/${webhook.id}`, body: { is_active: true } };
    await askUntilAnswered(system, webhook, asked);
  }
}

function ago(ms: number): string {
  return new Date(Date.now() - ms).toISOString();
}

/**
 * Returns a time range whose events are mostly delivered, and few enough for a replay of seconds.
 */
function aWhileAgo(): object {
  return { since: ago(25_000), until: ago(3_000), status: ["failed", "delivered", "cancelled", "never"] };
}

/**
 * Calls one API after the other. A replay that has ended or already exists is an answer without an
 * id.
 */
async function askUntilAnswered(
  { apis }: System,
  { token }: OwnedWebhook,
  { method, path, body }: { readonly method: string; readonly path: string; readonly body: object },
): Promise<Answered> {
  const headers = {
    Authorization: `Bearer ${token}`,
    "Content-Type": "application/json",
    ...(method === "POST" && { "Idempotency-Key": randomUUID() }),
  };
  let last = "no answer";
  for (const [startedAt, tries] = [Date.now(), { count: 0 }]; Date.now() < startedAt + limitMs;) {
    const origin = apis[tries.count++ % apis.length]?.program.origin ?? "";
    const asked = call(Number(new URL(origin).port), `${prefix}${path}`, {
      method,
      headers,
      body: JSON.stringify(body),
    }).catch(() => undefined);
    const answer = await Promise.race([asked, sleep(requestMs, undefined, { ref: false })]);
    const json = (answer?.json ?? {}) as Answered;
    if (answer !== undefined && answer.status < 300) return json;
    if (answer?.status === 409 && json["code"] === "replay.conflict") return {};
    if (answer !== undefined) last = `${answer.status} ${answer.text}`;
    await sleep(200);
  }
  throw new Error(`${method} ${path}: ${last}`);
}

const recentText = `
  SELECT record_id AS id FROM (
    SELECT record_id, row_number() OVER (ORDER BY id DESC) AS place FROM svc.events WHERE jsonb_typeof(snapshot) = 'object'
    ORDER BY id DESC LIMIT 20) AS recent
  ORDER BY place DESC LIMIT 1`;

/** Erases a recently changed record, some of whose deliveries are unfinished. */
async function erase({ pool, env }: System): Promise<void> {
  await untilDone(async () => {
    const { rows } = await pool.query<{ readonly id: string }>(recentText);
    return ["erase", "--resource", "notes", "--record", rows[0]?.id ?? "", "--yes"];
  }, env);
}

// Keeps deliveries from being written meanwhile: a retry with another time would differ from the
// earlier POST.
const ageText = `
  BEGIN;
  LOCK TABLE svc.deliveries IN SHARE ROW EXCLUSIVE MODE;
  CREATE TEMP TABLE aged ON COMMIT DROP AS
    SELECT id FROM svc.events AS event
    WHERE id < (SELECT max(id) - 200 FROM svc.events) AND occurred_at > now() - interval '30 days'
      AND EXISTS (SELECT FROM svc.deliveries WHERE event_id = event.id)
      AND NOT EXISTS (SELECT FROM svc.deliveries WHERE event_id = event.id AND status IN ('pending', 'retrying', 'held'));
  UPDATE svc.events SET occurred_at = occurred_at - interval '40 days' WHERE id IN (SELECT id FROM aged);
  UPDATE svc.deliveries SET updated_at = updated_at - interval '40 days' WHERE event_id IN (SELECT id FROM aged);
  COMMIT`;

/**
 * Dates finished events back by 40 days. Dispatchers then remove them, and so does the command, at
 * the same time.
 */
async function removeOld({ pool, env }: System): Promise<void> {
  await untilDone(async () => {
    const client = await pool.connect();
    // The query also rejects when the server is killed.
    client.on("error", () => undefined);
    try {
      await client.query(ageText);
    } finally {
      client.release(true);
    }
    return ["prune", "--older-than", "30d"];
  }, env);
}

/** Runs a command of `svc-admin` until it succeeds. */
async function untilDone(
  argsOf: () => Promise<readonly string[]>,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  let last = "";
  for (const startedAt = Date.now(); Date.now() < startedAt + limitMs;) {
    try {
      const args = await argsOf();
      const { code, stderr } = await tryAdmin(args, env);
      if (code === 0) return;
      last = `svc-admin ${args.join(" ")}: ${stderr}`;
    } catch (error) {
      last = messageOf(error);
    }
    await sleep(500);
  }
  throw new Error(last);
}
