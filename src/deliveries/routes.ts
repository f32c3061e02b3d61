import { AppError, unauthorizedError } from "../kit/errors.ts";
import type { ApiContext, ApiRouter } from "../http/state.ts";
import { actorOf } from "../http/actor.ts";
import { jsonAnswer } from "../http/answer.ts";
import { readJsonBody } from "../http/body.ts";
import type { PostOptions } from "../http/idempotency.ts";
import { urlBelow } from "../http/url-of.ts";
import { idOf, rowIdOf } from "../kit/ids.ts";
import { refuseFields } from "../kit/refuse-fields.ts";
import { readListParameters } from "../querying/list-parameters.ts";
import type { ListsOptions } from "../querying/own-list.ts";
import { unknownSubscription } from "../subscriptions/subscription.ts";
import type { DeliveryRow } from "./delivery-row.ts";
import type { ReadRight } from "./read-right.ts";
import type { DeliveryHistory } from "./history.ts";
import { deliveryShape } from "./list-filter.ts";
import { readDeliveryList } from "./list.ts";
import { presentAttempt, presentDelivery, presentRequest } from "./delivery-json.ts";

export interface DeliveryRoutesOptions extends PostOptions, ListsOptions {
  readonly history: DeliveryHistory;
  readonly manualRetryLimit: number;
  readonly readRight: ReadRight;
}

/**
 * Bytes of memory for a byte of the payload that a delivery shows. It is held as the row, as its
 * text, and as the body in parts, whole and as a text. The answer holds it with escaped quotes.
 */
const memoryPerPayloadByte = 8;

/**
 * Adds `webhook-deliveries`: list, show and manual retry (docs/webhooks.md, "Deliveries"). Users
 * with the admin flag see all deliveries.
 */
export function addDeliveryRoutes(router: ApiRouter, options: DeliveryRoutesOptions): void {
  const { history, maxPerPage, listTurns, cursors, urlOf, manualRetryLimit } = options;
  const { answerPost } = options;

  router.get("/webhook-deliveries", async (ctx) => {
    const parameters = readListParameters(ctx.querystring, deliveryShape, { maxPerPage });
    const { caller } = ctx.state;
    ctx.body = await listTurns.run(caller.id, () =>
      readDeliveryList(parameters, { history, caller, cursors, url: urlOf(ctx) }),
    );
  });

  router.get("/webhook-deliveries/:id", async (ctx) => {
    const delivery = await findDelivery(ctx.params["id"]);
    if (!isOwn(ctx, delivery)) throw unknownDelivery();
    // The record of a cancelled delivery may never have been sent, and the right to read it may
    // have ended.
    const isReadable = await options.readRight.of(ctx.state.caller, delivery);
    const payloadBytes = isReadable ? await history.payloadBytesOf(delivery.eventId) : 0;
    await ctx.state.memory.reserve(payloadBytes * memoryPerPayloadByte);
    const [attempts, extraHeaders, payload] = await Promise.all([
      history.attemptsOf(delivery.id),
      history.extraHeadersOf(delivery.id),
      isReadable ? history.payloadOf(delivery) : undefined,
    ]);
    ctx.body = {
      ...presentDelivery(delivery),
      request: presentRequest(delivery, payload, extraHeaders),
      attempts: attempts.map(presentAttempt),
    };
  });

  router.post("/webhook-deliveries/:id/retry", async (ctx) => {
    const delivery = await findDelivery(ctx.params["id"]);
    if (!isOwn(ctx, delivery)) throw unauthorizedError("delivery.forbidden");
    refuseFields(await readJsonBody(ctx), []);
    // Checked before the transaction, because the embedded database works for one connection at a
    // time.
    if ((await options.readRight.ofSubscriber(delivery)) === false)
      throw new AppError("delivery.forbidden", "The subscriber may no longer see this record.");
    const hasPrevious = await options.readRight.ofSubscriber(delivery, "previous");
    await answerPost(ctx, {
      async act(transaction) {
        const { id } = delivery;
        const asked = { id, limit: manualRetryLimit, hasPrevious, transaction: transaction?.sql };
        const answer = await history.retry(asked);
        if (answer.kind === "refused") {
          throw new AppError("retry.refused", answer.reason, { errors: { delivery: [answer.reason] } });
        }
        const made = presentDelivery(answer.delivery);
        const collection = urlOf(ctx);
        collection.pathname = collection.pathname.replace(/\/[^/]+\/retry\/?$/, "");
        if (answer.kind === "hurried") return jsonAnswer(200, made);
        return jsonAnswer(201, made, { Location: urlBelow(collection, answer.delivery.id) });
      },
    });
  });

  addDiscardRoute(router, options);

  async function findDelivery(id: string | undefined): Promise<DeliveryRow> {
    const key = rowIdOf(id);
    const delivery = key === undefined ? undefined : await history.find(key);
    if (delivery === undefined) throw unknownDelivery();
    return delivery;
  }
}

function addDiscardRoute(router: ApiRouter, { history, answerPost }: DeliveryRoutesOptions): void {
  router.post("/webhooks/:id/discard-held", async (ctx) => {
    const id = idOf(ctx.params["id"]);
    refuseFields(await readJsonBody(ctx), []);
    await answerPost(ctx, {
      async act(transaction) {
        if (id === undefined) throw unknownSubscription();
        const held = await history.discardHeld({
          subscriptionId: id,
          userId: ctx.state.caller.id,
          actor: actorOf(ctx),
          transaction: transaction?.sql,
        });
        if (held === undefined) throw unknownSubscription();
        return jsonAnswer(202, { held });
      },
    });
  });
}

function isOwn(ctx: ApiContext, delivery: DeliveryRow): boolean {
  const { caller } = ctx.state;
  return caller.isAdmin || delivery.userId === caller.id;
}

function unknownDelivery(): AppError {
  return new AppError("delivery.not_found", "The webhook delivery could not be found.");
}
