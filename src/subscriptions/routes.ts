import { databaseFaultOf } from "../db/database-fault.ts";
import type { Sql } from "../db/sql.ts";
import { AppError, validationError } from "../kit/errors.ts";
import { actorOf } from "../http/actor.ts";
import { answerUnsupported } from "../http/error-body.ts";
import { jsonAnswer } from "../http/answer.ts";
import { readJsonBody } from "../http/body.ts";
import { checkConditions, isConditional } from "../http/conditional.ts";
import type { PostOptions } from "../http/idempotency.ts";
import type { ApiContext, ApiRouter } from "../http/state.ts";
import { urlBelow } from "../http/url-of.ts";
import {
  checkNewSubscription,
  checkSubscriptionChanges,
  type Checked,
  type SubscriptionRules,
} from "./check.ts";
import type { Caller } from "../kit/caller.ts";
import { idOf } from "../kit/ids.ts";
import { refuseFields } from "../kit/refuse-fields.ts";
import { readListParameters } from "../querying/list-parameters.ts";
import type { ListsOptions } from "../querying/own-list.ts";
import { isPaged, presenterOf, subscriptionPage } from "./list.ts";
import {
  findSubscription,
  findSubscriptionIds,
  findSubscriptions,
  readSubscriptions,
  subscriptionShape,
  type OwnerScope,
} from "./own-subscriptions.ts";
import { longestGrace, usualGrace } from "./rotate-secret.ts";
import type { SubscriptionStore } from "./store.ts";
import {
  presentSubscription,
  unknownSubscription,
  type NewSubscription,
  type OwnSubscription,
} from "./subscription.ts";

export interface SubscriptionRoutesOptions extends PostOptions, Omit<ListsOptions, "listTurns"> {
  readonly rulesFor: (caller: Caller) => SubscriptionRules;
  /** Tries the filter of a subscription on the last events; see `previewEvents`. */
  readonly preview: (ctx: ApiContext, asked: NewSubscription) => Promise<string>;
  readonly store: SubscriptionStore;
  readonly sql: Sql;
  /** Reads lists by index (`createIndexSql`). */
  readonly listSql: Sql;
}

interface WithParams {
  readonly params: Readonly<Record<string, string | undefined>>;
}

/**
 * Adds `webhooks` (docs/webhooks.md, "Subscriptions"): list, create, show, change and delete the
 * caller's subscriptions.
 */
export function addSubscriptionRoutes(router: ApiRouter, options: SubscriptionRoutesOptions): void {
  const { store, sql, rulesFor } = options;

  router.get("/webhooks", (ctx) => list(ctx, options));
  router.post("/webhooks", (ctx) => create(ctx, options));
  router.post("/webhooks/preview", async (ctx) => {
    const body = await readJsonBody(ctx);
    const asked = await readPreview(body, rulesFor(ctx.state.caller));
    ctx.type = "json";
    ctx.body = await options.preview(ctx, asked);
  });

  router.get("/webhooks/:id", async (ctx) => {
    ctx.body = presentSubscription(await getOwnSubscription(ctx, sql));
  });
  router.put("/webhooks/:id", (ctx) => change(ctx, options));
  router.patch("/webhooks/:id", (ctx) => change(ctx, options));
  router.delete("/webhooks/:id", async (ctx) => {
    const id = webhookIdOf(ctx);
    // Only a condition takes a statement of its own.
    if (isConditional(ctx)) {
      await getOwnSubscription(ctx, sql);
      checkConditions(ctx, undefined);
    }
    const isDeleted = id !== undefined && (await store.delete(id, ctx.state.caller.id, actorOf(ctx)));
    if (!isDeleted) throw unknownSubscription();
    ctx.status = 204;
  });

  router.post("/webhooks/:id/rotate-secret", (ctx) => rotateSecret(ctx, options));
}

async function list(
  ctx: ApiContext,
  { listSql, maxPerPage, cursors, urlOf }: SubscriptionRoutesOptions,
): Promise<void> {
  const parameters = readListParameters(ctx.querystring, subscriptionShape, { maxPerPage });
  const { id: userId } = ctx.state.caller;
  const owner = ownerScopeOf(ctx, parameters.given.get("user_id"));
  const query = { ...parameters, limit: mostListed + 1 };
  const read = (ids: readonly number[]): Promise<readonly OwnSubscription[]> =>
    readSubscriptions(listSql, ids).catch(refuseLarge);
  if (isPaged(parameters)) {
    const ids = withinLimit(await findSubscriptionIds(listSql, owner, query));
    const page = { userId, owner, cursors, url: urlOf(ctx), read };
    ctx.body = await subscriptionPage(ids, parameters, page);
    return;
  }
  const found = withinLimit(await findSubscriptions(listSql, owner, query).catch(refuseLarge));
  ctx.body = { data: found.map(presenterOf(parameters)) };
}

async function create(
  ctx: ApiContext,
  { store, answerPost, urlOf, rulesFor }: SubscriptionRoutesOptions,
): Promise<void> {
  const body = await readJsonBody(ctx);
  await answerPost(ctx, {
    isSecret: true,
    async act(transaction) {
      // Checked here, because the kept answer to a repeated request must come first.
      const values = valid(await checkNewSubscription(body, rulesFor(ctx.state.caller)));
      const made = await store.create(ctx.state.caller, values, actorOf(ctx), transaction?.sql);
      const { subscription, secret } = made;
      const headers = { Location: urlBelow(urlOf(ctx), subscription.id) };
      return jsonAnswer(201, presentSubscription(subscription, secret), headers);
    },
  });
}

async function change(
  ctx: ApiContext & WithParams,
  { store, sql, rulesFor }: SubscriptionRoutesOptions,
): Promise<void> {
  const own = await getOwnSubscription(ctx, sql);
  checkConditions(ctx, undefined);
  const body = await readJsonBody(ctx);
  const changes = valid(await checkSubscriptionChanges(body, own, rulesFor(ctx.state.caller)));
  const updated = await store.update(own.id, ctx.state.caller.id, changes, actorOf(ctx));
  if (updated === undefined) throw unknownSubscription();
  ctx.body = presentSubscription(updated);
}

async function rotateSecret(
  ctx: ApiContext & WithParams,
  { store, sql, answerPost }: SubscriptionRoutesOptions,
): Promise<void> {
  const { id } = await getOwnSubscription(ctx, sql);
  const graceSeconds = readGrace(await readJsonBody(ctx));
  await answerPost(ctx, {
    isSecret: true,
    async act(transaction) {
      const rotation = { graceSeconds, actor: actorOf(ctx) };
      const rotated = await store.rotate(id, ctx.state.caller.id, rotation, transaction?.sql);
      if (rotated === undefined) throw unknownSubscription();
      return jsonAnswer(200, presentSubscription(rotated.subscription, rotated.secret));
    },
  });
}

/**
 * Reads the body of a rotation. Returns the number of seconds for which the current secret
 * continues to sign.
 */
function readGrace(body: Readonly<Record<string, unknown>>): number {
  const { grace = usualGrace } = body;
  const isFine = Number.isInteger(grace) && Number(grace) >= 0 && Number(grace) <= longestGrace;
  const message = `The grace field must be a whole number of seconds between 0 and ${longestGrace}.`;
  refuseFields(body, ["grace"], isFine ? {} : { grace: [message] });
  return Number(grace);
}

async function getOwnSubscription(ctx: ApiContext & WithParams, sql: Sql): Promise<OwnSubscription> {
  const id = webhookIdOf(ctx);
  const subscription = id === undefined ? undefined : await findSubscription(sql, id, ctx.state.caller.id);
  if (subscription === undefined) throw unknownSubscription();
  return subscription;
}

/**
 * Returns the id in the path; undefined for a text that is no id. Throws 405 for
 * `/webhooks/preview`, which takes POST only.
 */
function webhookIdOf(ctx: ApiContext & WithParams): number | undefined {
  if (/\/webhooks\/preview\/?$/.test(ctx.path)) answerUnsupported(ctx, ["POST"]);
  return idOf(ctx.params["id"]);
}

/** Reads the body of a preview: a subscription without a URL. */
async function readPreview(
  body: Readonly<Record<string, unknown>>,
  rules: SubscriptionRules,
): Promise<NewSubscription> {
  const { resource, events, filter } = body;
  const anyUrl = { ...rules, refusalOfUrl: () => undefined };
  const checked = await checkNewSubscription(
    { resource, events, filter, url: "https://example.com" },
    anyUrl,
  );
  refuseFields(body, ["resource", "events", "filter"], checked.kind === "invalid" ? checked.errors : {});
  return valid(checked);
}

/** Most subscriptions in an answer for all users: about 10 MB, which are built in memory. */
const mostListed = 10_000;

function withinLimit<T>(found: readonly T[]): readonly T[] {
  if (found.length > mostListed) throw tooManyListed();
  return found;
}

function tooManyListed(cause?: unknown): AppError {
  const message =
    "There are more webhooks than an answer has; ask for fewer by per_page, for those of one user, or filter them.";
  return validationError({ user_id: [message] }, cause);
}

/** Refuses a list that is too large for its connection: filters have up to 16 KB each. */
function refuseLarge(error: unknown): never {
  throw databaseFaultOf(error).kind === "too_large" ? tooManyListed(error) : error;
}

/**
 * Returns the owner of the requested subscriptions. Only an admin may request those of another
 * user, or of all users.
 */
function ownerScopeOf(ctx: ApiContext, userId: string | undefined): OwnerScope {
  const { id, isAdmin } = ctx.state.caller;
  const asked = userId === "*" ? "everybody" : Number(userId ?? id);
  if (asked === id || isAdmin) return asked;
  throw new AppError("user.forbidden", "Only admins list the webhooks of others.");
}

function valid<T>(checked: Checked<T>): T {
  if (checked.kind === "invalid") throw validationError(checked.errors);
  return checked.value;
}
