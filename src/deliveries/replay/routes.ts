import type { Sql, Transact } from "../../db/sql.ts";
import { actorOf } from "../../http/actor.ts";
import { jsonAnswer } from "../../http/answer.ts";
import { readJsonBody } from "../../http/body.ts";
import type { PostOptions } from "../../http/idempotency.ts";
import type { ApiRouter } from "../../http/state.ts";
import { urlBelow } from "../../http/url-of.ts";
import type { Caller } from "../../kit/caller.ts";
import { AppError } from "../../kit/errors.ts";
import { idOf, rowIdOf } from "../../kit/ids.ts";
import { refuseFields } from "../../kit/refuse-fields.ts";
import { answerOwnList, type OwnListOptions } from "../../querying/own-list.ts";
import type { Eligibility } from "../../subscriptions/eligibility.ts";
import { unknownSubscription } from "../../subscriptions/subscription.ts";
import { findReplayedSubscription, type ReplayedSubscription } from "./find-replayed.ts";
import { planReplay } from "./plan-replay.ts";
import { readReplayBody } from "./replay-body.ts";
import { replaysOf } from "./replay-list.ts";
import { createReplay, findReplay, moveReplay, describeUnfinished } from "./replay-store.ts";
import { presentReplay, replayMoves, type Replay } from "./replay.ts";

export interface ReplayRoutesOptions extends OwnListOptions, PostOptions {
  readonly sql: Sql;
  /** SQL with a time limit for each statement. */
  readonly listSql: Sql;
  readonly transact: Transact;
  readonly eligibility: Pick<Eligibility, "judge">;
  readonly isResource: (name: string) => boolean;
  /** Called when a replay may continue. */
  readonly onRunning: () => void;
}

/** Adds the routes of replays (docs/webhooks.md, "Replays"). */
export function addReplayRoutes(router: ApiRouter, options: ReplayRoutesOptions): void {
  const { sql, listSql, transact, eligibility, listTurns, answerPost } = options;
  const { urlOf, onRunning } = options;

  router.post("/webhooks/:id/replay", async (ctx) => {
    const subscription = await findOwn(sql, ctx.params["id"], ctx.state.caller);
    const { isResource } = options;
    const body = await readJsonBody(ctx);
    await answerPost(ctx, {
      async prepare() {
        const { asked, isDryRun } = readReplayBody(body, { subscription, isResource, now: new Date() });
        const plan = await listTurns.run(ctx.state.caller.id, () =>
          planReplay({ sql: listSql, eligibility }, subscription, asked),
        );
        return async (transaction) => {
          if (isDryRun) {
            const { total: count, isEstimate, eventIds } = plan;
            return jsonAnswer(200, { count, is_estimate: isEstimate, event_ids: eventIds.map(Number) });
          }
          if (!subscription.isActive)
            throw new AppError("replay.refused", inactive, { errors: { webhook: [inactive] } });
          const own = transaction?.sql ?? sql;
          const made = await createReplay(own, subscription, { asked, plan, actor: actorOf(ctx) });
          if (made === undefined) {
            const name = await describeUnfinished(own, subscription.id);
            throw new AppError("replay.conflict", `${name} of this webhook has not ended: cancel it first.`);
          }
          onRunning();
          const collection = urlOf(ctx);
          collection.pathname = collection.pathname.replace(
            /\/webhooks\/[^/]+\/replay\/?$/,
            "/webhook-replays",
          );
          return jsonAnswer(202, presentReplay(made), { Location: urlBelow(collection, made.id) });
        };
      },
    });
  });

  router.get("/webhook-replays", async (ctx) => {
    ctx.body = await answerOwnList(ctx, replaysOf(ctx.state.caller), options);
  });

  router.get("/webhook-replays/:id", async (ctx) => {
    ctx.body = presentReplay(await getOwn(sql, ctx.params["id"], ctx.state.caller));
  });

  for (const [name, state] of Object.entries(replayMoves))
    router.post(`/webhook-replays/:id/${name}`, async (ctx) => {
      const { id } = await getOwn(sql, ctx.params["id"], ctx.state.caller);
      refuseFields(await readJsonBody(ctx), []);
      await answerPost(ctx, {
        async act(transaction) {
          const change = { state, actor: actorOf(ctx) };
          const moved = await transact((own) => moveReplay(own, id, change), transaction?.sql);
          if (moved === undefined) throw new AppError("replay.conflict", "This replay has ended.");
          onRunning();
          return jsonAnswer(200, presentReplay(moved.replay));
        },
      });
    });
}

const inactive = "The webhook is off: switch it on first, and what is held goes out.";

async function findOwn(sql: Sql, given: string | undefined, caller: Caller): Promise<ReplayedSubscription> {
  const id = idOf(given);
  const found = id === undefined ? undefined : await findReplayedSubscription(sql, id);
  if (found === undefined || !isOwn(caller, found.user.id)) throw unknownSubscription();
  return found;
}

async function getOwn(sql: Sql, given: string | undefined, caller: Caller): Promise<Replay> {
  const id = rowIdOf(given);
  const found = id === undefined ? undefined : await findReplay(sql, id);
  if (found === undefined || !isOwn(caller, found.userId))
    throw new AppError("replay.not_found", "The replay could not be found.");
  return found;
}

function isOwn(caller: Caller, userId: number): boolean {
  return caller.isAdmin || caller.id === userId;
}
