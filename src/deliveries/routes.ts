import { AppError, validationError, type FieldErrors } from "../kit/errors.ts";
import { envelope, lastOf, pageOf } from "../http/page.ts";
import type { ApiContext, ApiRouter } from "../http/state.ts";
import { readJsonBody, refuseFields } from "../http/body.ts";
import type { AnswerPost } from "../http/idempotency.ts";
import { urlBelow, type UrlOf } from "../http/url-of.ts";
import type { InTransaction } from "../db/transaction.ts";
import type { Turns } from "../kit/turns.ts";
import { deliveryStatuses, type DeliveryStatus } from "./delivery.ts";
import type { DeliveryFilter } from "./history-texts.ts";
import type { DeliveryHistory, DeliveryRow } from "./history.ts";
import { rowIdOf, presentAttempt, presentDelivery } from "./present.ts";

export interface DeliveryRoutesOptions {
  readonly history: DeliveryHistory;
  readonly maxPerPage: number;
  /** Of users, at lists of all kinds together. */
  readonly listTurns: Turns;
  /** For the page links, and the address of what is made. */
  readonly urlOf: UrlOf;
  readonly manualRetryLimit: number;
  readonly bodyLimitBytes: number;
  readonly inTransaction: InTransaction;
  readonly answerPost: AnswerPost;
}

/** `webhook-deliveries`: list, show, manual retry (contract, section 4). An admin is a user with the admin flag. */
export function addDeliveryRoutes(router: ApiRouter, options: DeliveryRoutesOptions): void {
  const { history, maxPerPage, listTurns, urlOf, manualRetryLimit, bodyLimitBytes } = options;
  const { inTransaction, answerPost } = options;

  router.get("/webhook-deliveries", async (ctx) => {
    const filter = filterOf(ctx);
    const { page, perPage, skip } = pageOf(ctx.query, { maxPerPage });
    const { rows, total } = await listTurns.run(ctx.state.caller.id, () =>
      history.list({ filter, skip, take: perPage }),
    );
    ctx.body = envelope({
      data: rows.map(presentDelivery),
      total,
      page,
      perPage,
      url: urlOf(ctx),
    });
  });

  router.get("/webhook-deliveries/:id", async (ctx) => {
    const delivery = await findDelivery(ctx.params["id"]);
    if (!isOwn(ctx, delivery)) throw unknownDelivery();
    const attempts = await history.attemptsOf(delivery.id);
    ctx.body = { ...presentDelivery(delivery), attempts: attempts.map(presentAttempt) };
  });

  router.post("/webhook-deliveries/:id/retry", async (ctx) => {
    const delivery = await findDelivery(ctx.params["id"]);
    if (!isOwn(ctx, delivery)) throw new AppError("delivery.forbidden", "This action is unauthorized.");
    refuseFields(await readJsonBody(ctx, bodyLimitBytes), []);
    await answerPost(ctx, {
      inTransaction,
      async act(transaction) {
        const answer = await history.retry({
          id: delivery.id,
          limit: manualRetryLimit,
          transaction: transaction?.sql,
        });
        if (answer.kind === "refused") {
          throw new AppError("retry.refused", answer.reason, { errors: { delivery: [answer.reason] } });
        }
        const made = presentDelivery(answer.delivery);
        const collection = urlOf(ctx);
        collection.pathname = collection.pathname.replace(/\/[^/]+\/retry\/?$/, "");
        return {
          status: 201,
          headers: { Location: urlBelow(collection, answer.delivery.id) },
          json: JSON.stringify(made),
        };
      },
    });
  });

  async function findDelivery(id: string | undefined): Promise<DeliveryRow> {
    const key = rowIdOf(id);
    const delivery = key === undefined ? undefined : await history.find(key);
    if (delivery === undefined) throw unknownDelivery();
    return delivery;
  }
}

function isOwn(ctx: ApiContext, delivery: DeliveryRow): boolean {
  const { caller } = ctx.state;
  return caller.isAdmin || delivery.userId === caller.id;
}

function unknownDelivery(): AppError {
  return new AppError("delivery.not_found", "The webhook delivery could not be found.");
}

/** A filter that cannot be applied is refused: leaving it out would answer more than was asked for. */
function filterOf(ctx: ApiContext): DeliveryFilter {
  const { caller } = ctx.state;
  const text = (name: string): string | undefined => lastOf(ctx.query[name]);
  const webhookId = text("webhook_id");
  const status = text("status");
  const eventId = text("event_id");
  const errors: Record<string, string[]> = {};
  const subscriptionId = webhookId === undefined ? undefined : integerOf(webhookId);
  if (webhookId !== undefined && subscriptionId === undefined) {
    errors["webhook_id"] = ["The webhook id field must be an integer."];
  }
  if (status !== undefined && !isStatus(status)) errors["status"] = ["The selected status is invalid."];
  const event = eventId === undefined ? undefined : rowIdOf(eventId);
  if (eventId !== undefined && event === undefined)
    errors["event_id"] = ["The event id field must be an integer."];
  if (Object.keys(errors).length > 0) throw validationError(errors satisfies FieldErrors);
  return {
    userId: caller.isAdmin ? undefined : caller.id,
    subscriptionId,
    status: status !== undefined && isStatus(status) ? status : undefined,
    eventId: event,
  };
}

function isStatus(text: string): text is DeliveryStatus {
  return deliveryStatuses.some((status) => status === text);
}

function integerOf(text: string): number | undefined {
  const value = rowIdOf(text);
  return value === undefined || Number(value) > 2 ** 31 - 1 ? undefined : Number(value);
}
