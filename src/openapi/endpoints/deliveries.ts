import { deliveredEvents, deliveryStatuses } from "../../deliveries/delivery.ts";
import { deliveryShape } from "../../deliveries/list-filter.ts";
import { listSchema } from "../envelopes.ts";
import { emptyObject, listOf, nullable, objectOf, schemaNamed, type JsonSchema } from "../json-schema.ts";
import { listParameters, listRemarks, ofWebhook, type OwnParameters } from "../list-parameters.ts";
import { idParameter, pathParameter, sectionOf, type Operation } from "../operation.ts";
import { idempotencyKey } from "../shared-parameters.ts";
import { dateTime, rowId, text, uuid, whole } from "../value-schemas.ts";

const path = "/webhook-deliveries";
const status: JsonSchema = { type: "string", enum: deliveryStatuses };

/** Schemas of the keys of a delivery (docs/webhooks.md, "Deliveries"). */
const deliveryKeys: Readonly<Record<string, JsonSchema>> = {
  id: rowId,
  uuid,
  event_id: rowId,
  event_uuid: uuid,
  subscription_id: rowId,
  parent_delivery_id: nullable(rowId),
  root_delivery_id: rowId,
  resource: text,
  event: { type: "string", enum: deliveredEvents },
  record_id: text,
  occurred_at: { ...dateTime, description: "With microseconds." },
  trigger_kind: { type: "string", enum: ["automatic", "manual"] },
  status,
  attempt: whole,
  max_attempts: whole,
  url: text,
  next_attempt_at: nullable(dateTime),
  last_error: nullable(text),
  created_at: dateTime,
  updated_at: dateTime,
};

export const attemptKeys: Readonly<Record<string, JsonSchema>> = {
  number: { type: "integer", minimum: 1 },
  started_at: dateTime,
  duration_ms: whole,
  status_code: nullable({ type: "integer" }),
  error: nullable({
    ...text,
    description: "dns, refused, timeout, tls, blocked, reset, unreachable, protocol, http.",
  }),
  response_headers: nullable({ type: "object", additionalProperties: { anyOf: [text, listOf(text)] } }),
  response_body: nullable(text),
  response_truncated: { type: "boolean" },
  trigger: text,
  address: nullable(text),
  dns_ms: nullable(whole),
  connect_ms: nullable(whole),
  tls_ms: nullable(whole),
  first_byte_ms: nullable(whole),
};

const request = objectOf({
  headers: {
    type: "object",
    additionalProperties: text,
    description: "Signatures are cut, and the values of the receiver's own headers are masked.",
  },
  body: nullable({
    ...text,
    description: "As every attempt sends it; null when the record was erased, or the caller may not read it.",
  }),
});

/** Parameters of the list of deliveries only. */
const own: OwnParameters = {
  webhook_id: ofWebhook,
  status: {
    schema: { ...text, examples: ["failed"] },
    description: `One or more of ${deliveryStatuses.join(", ")}, with commas.`,
  },
  event_id: { schema: rowId, description: "Of this event." },
  resource: { schema: text, description: "Of this resource." },
  event: {
    schema: { type: "string", enum: deliveredEvents },
    description: "Of this trigger, or operational event.",
  },
  record_id: { schema: text, description: "Of the record with this id." },
  url: { schema: text, description: "That go to exactly this URL." },
  created_after: { schema: dateTime, description: "Made after this time." },
  created_before: { schema: dateTime, description: "Made before this time." },
};

export function listedKeys(): Readonly<Record<string, JsonSchema>> {
  const shown = [...(deliveryShape.places?.keys() ?? [])].map((name) => {
    const schema = deliveryKeys[name];
    if (schema === undefined)
      throw new Error(`The key ${name} of deliveries has no schema in openapi/endpoints.`);
    return [name, schema] as const;
  });
  return Object.fromEntries(shown);
}

export function deliverySchemas(): Readonly<Record<string, JsonSchema>> {
  const delivery = listedKeys();
  return {
    Delivery: objectOf(delivery),
    "Delivery.shown": objectOf({ ...delivery, request, attempts: listOf(objectOf(attemptKeys)) }),
    "Delivery.listed": objectOf(delivery, { optional: "all" }),
  };
}

export function deliveryOperations(maxPerPage: number): readonly Operation[] {
  const id = pathParameter("id", rowId, 1);
  return sectionOf({ tag: "Deliveries", scope: "webhooks" }, [
    {
      method: "get",
      path,
      id: "svc.deliveries.list",
      summary: "Lists the deliveries of the caller's subscriptions; of all for admins",
      description: listRemarks(deliveryShape),
      parameters: listParameters(deliveryShape, { maxPerPage, count: "estimated", own }),
      answers: { 200: { description: "A page.", schema: listSchema(schemaNamed("Delivery.listed")) } },
    },
    {
      method: "get",
      path: `${path}/{id}`,
      id: "svc.deliveries.show",
      summary: "Shows a delivery with its attempts",
      parameters: [id],
      answers: { 200: { description: "The delivery.", schema: schemaNamed("Delivery.shown") } },
      errors: ["delivery.not_found"],
    },
    {
      method: "post",
      path: `${path}/{id}/retry`,
      id: "svc.deliveries.retry",
      summary: "Makes a new delivery of one at its end, or the next attempt of a retrying one now",
      parameters: [id, ...idempotencyKey],
      body: { schema: emptyObject, isOptional: true },
      answers: {
        200: { description: "The retrying delivery, which is due now.", schema: schemaNamed("Delivery") },
        201: { description: "The new delivery.", schema: schemaNamed("Delivery"), headers: ["Location"] },
      },
      errors: ["delivery.not_found", "delivery.forbidden", "retry.refused"],
    },
    {
      method: "post",
      path: "/webhooks/{id}/discard-held",
      id: "svc.webhooks.discardHeld",
      summary: "Drops the deliveries that are held for a subscription",
      parameters: [idParameter, ...idempotencyKey],
      body: { schema: emptyObject, isOptional: true },
      answers: {
        202: {
          description: "How many are held now, counted up to 10,000.",
          schema: objectOf({ held: whole }),
        },
      },
      errors: ["webhook.not_found"],
    },
  ]);
}
