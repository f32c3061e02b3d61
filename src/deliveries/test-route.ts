import { jsonAnswer } from "../http/answer.ts";
import { readJsonBody } from "../http/body.ts";
import type { PostOptions } from "../http/idempotency.ts";
import type { ApiRouter } from "../http/state.ts";
import { AppError } from "../kit/errors.ts";
import { idOf } from "../kit/ids.ts";
import { refuseFields } from "../kit/refuse-fields.ts";
import { unknownSubscription } from "../subscriptions/subscription.ts";
import { flightMsOf } from "./attempt/attempts.ts";
import { presentResult } from "./delivery-json.ts";
import type { TestAnswer, TestWebhook } from "./test-delivery.ts";

/** Adds `POST /webhooks/{id}/test` (docs/webhooks.md, "Test deliveries"). */
export function addTestRoute(
  router: ApiRouter,
  {
    testWebhook,
    isOwn,
    answerPost,
    timeoutMs,
  }: PostOptions & {
    readonly testWebhook: TestWebhook;
    readonly isOwn: (id: number, userId: number) => Promise<boolean>;
    /** Limit of an attempt. */
    readonly timeoutMs: number;
  },
): void {
  router.post("/webhooks/:id/test", async (ctx) => {
    const id = idOf(ctx.params["id"]);
    if (id === undefined || !(await isOwn(id, ctx.state.caller.id))) throw unknownSubscription();
    refuseFields(await readJsonBody(ctx), []);
    await answerPost(ctx, {
      longestMs: flightMsOf(timeoutMs),
      async act() {
        // Gives up the user's place for requests meanwhile, because the receiver may be slow.
        const answer = await ctx.state.turn.pause(() => testWebhook(id));
        return jsonAnswer(200, shown(answer));
      },
    });
  });
}

/** @throws AppError where no attempt was made. */
function shown(answer: TestAnswer): Readonly<Record<string, unknown>> {
  switch (answer.kind) {
    case "made":
      return { delivery_id: answer.uuid, ...presentResult(answer.result) };
    case "unknown":
      throw unknownSubscription();
    case "tooMany":
      throw new AppError("rate.exceeded", answer.reason, {
        headers: { "Retry-After": String(answer.retryAfterSeconds) },
      });
    case "unmade":
      throw new AppError("server.overloaded", `The test was not made: ${answer.reason}`, {
        headers: { "Retry-After": "1" },
      });
  }
}
