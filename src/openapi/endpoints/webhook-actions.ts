import { longestGrace, usualGrace } from "../../subscriptions/rotate-secret.ts";
import { emptyObject, listOf, objectOf, schemaNamed, type JsonSchema } from "../json-schema.ts";
import { idParameter, type SectionOperation } from "../operation.ts";
import { idempotencyKey } from "../shared-parameters.ts";

const rotation: JsonSchema = {
  type: "object",
  properties: {
    grace: {
      type: "integer",
      minimum: 0,
      maximum: longestGrace,
      default: usualGrace,
      description: "Seconds for which the secret before signs, too.",
    },
  },
  additionalProperties: false,
};

/** Returns the operations on a subscription, apart from reading and changing it. */
export function webhookActions(): readonly SectionOperation[] {
  return [
    {
      method: "post",
      path: "/webhooks/{id}/rotate-secret",
      id: "svc.webhooks.rotateSecret",
      summary: "Makes a new secret; the one before signs beside it for a while",
      parameters: [idParameter, ...idempotencyKey],
      body: { schema: rotation, isOptional: true },
      answers: {
        200: {
          description: "The subscription with its new secret, shown this once.",
          schema: schemaNamed("Webhook.made"),
        },
      },
      errors: ["webhook.not_found"],
    },
    {
      method: "post",
      path: "/webhooks/{id}/test",
      id: "svc.webhooks.test",
      summary: "Sends a ping to the receiver, and answers the attempt",
      parameters: [idParameter, ...idempotencyKey],
      body: { schema: emptyObject, isOptional: true },
      answers: {
        200: {
          description: "The attempt, whatever the receiver answered. It counts nowhere.",
          schema: schemaNamed("Webhook.tested"),
        },
      },
      errors: ["webhook.not_found", "rate.exceeded", "server.overloaded"],
    },
    {
      method: "post",
      path: "/webhooks/preview",
      id: "svc.webhooks.preview",
      summary: "Tries a filter on the last events",
      body: { schema: schemaNamed("Webhook.preview") },
      answers: {
        200: {
          description: "The newest 20 events of the kind, and whether each passes.",
          schema: objectOf({ data: listOf(schemaNamed("Webhook.tried")) }),
        },
      },
    },
  ];
}
