import { triggers, type Definitions } from "../../mapping/definition.ts";
import { secretRule, subscriptionRules } from "../../subscriptions/check.ts";
import { maskedHeader, mostHeaders } from "../../subscriptions/own-headers.ts";
import { eventsOf, subscribableIn } from "../../subscriptions/service-events.ts";
import { subscriptionShape } from "../../subscriptions/own-subscriptions.ts";
import { bodySchema } from "../body-schemas.ts";
import { cursorPageSchema, pageSchema } from "../envelopes.ts";
import { closed, listOf, objectOf, schemaNamed, type JsonSchema } from "../json-schema.ts";
import { listParameters, listRemarks, type OwnParameters } from "../list-parameters.ts";
import { idParameter, sectionOf, type Operation } from "../operation.ts";
import { idempotencyKey } from "../shared-parameters.ts";
import { attemptKeys } from "./deliveries.ts";
import { keySchemas, uuid } from "../value-schemas.ts";
import { webhookActions } from "./webhook-actions.ts";

const path = "/webhooks";

const ownParameters: OwnParameters = {
  user_id: {
    schema: { type: ["integer", "string"], pattern: "^(\\*|[1-9][0-9]*)$" },
    description: "For admins: of this user, or * for all users.",
  },
};

/** The schemas of subscriptions (docs/webhooks.md, "Subscriptions"). */
export function webhookSchemas(definitions: Definitions): Readonly<Record<string, JsonSchema>> {
  const resources = subscribableIn(definitions);
  const named = resources.flatMap((resource) => eventsOf(definitions, resource) ?? []);
  const events = listOf(
    { type: "string", enum: [...new Set([...triggers, ...named])] },
    { minItems: 1, uniqueItems: true },
  );
  // Generators of clients take an object without `additionalProperties` as an empty one.
  const filter = {
    type: ["object", "null"],
    additionalProperties: true,
    description: "A condition on data, as JSON.",
  };
  const { masked_secret: masked = {}, ...shown } = {
    ...keySchemas(subscriptionShape),
    events,
    filter,
    headers: {
      type: "object",
      additionalProperties: { type: "string", const: maskedHeader },
      description: "The receiver's own headers; the values are not shown.",
    },
  } as Record<string, JsonSchema>;
  const all = { ...shown, masked_secret: masked };
  const body = bodySchema({ ...subscriptionRules, secret: secretRule }, []);
  const sentFilter = { ...filter, minProperties: 1, examples: [null] };
  const headers = {
    type: ["object", "null"],
    maxProperties: mostHeaders,
    additionalProperties: { type: "string", minLength: 1, maxLength: 1024 },
    description: `A value of ${maskedHeader} keeps what is stored.`,
  };
  const resource = { type: "string", enum: resources };
  const sent = {
    ...(body["properties"] as Readonly<Record<string, JsonSchema>>),
    resource,
    events,
    filter: sentFilter,
    headers,
  };
  const { resource: _never, secret: _rotated, ...changed } = sent as Readonly<Record<string, JsonSchema>>;
  // A client may send back a whole webhook that it has read. The other keys are accepted and
  // ignored.
  const withShown = (own: Readonly<Record<string, JsonSchema>>): typeof own => ({
    ...Object.fromEntries(Object.entries(all).map(([name, schema]) => [name, { ...schema, readOnly: true }])),
    ...own,
  });
  return {
    Webhook: objectOf(all),
    "Webhook.made": objectOf({
      ...shown,
      secret: { type: "string", description: "Shown this once." },
      standard_secret: { type: "string", description: "The same key, as Standard Webhooks writes it." },
    }),
    "Webhook.tested": objectOf({ delivery_id: uuid, ...attemptKeys }),
    "Webhook.listed": objectOf(all, { optional: "all" }),
    "Webhook.create": closed({ ...body, properties: withShown(sent) }),
    "Webhook.preview": closed(objectOf({ resource, events, filter: sentFilter }, { optional: ["filter"] })),
    "Webhook.update": closed(objectOf(withShown(changed), { optional: "all" })),
  };
}

export function webhookOperations(maxPerPage: number): readonly Operation[] {
  const one = { description: "The subscription.", schema: schemaNamed("Webhook") };
  const listed = schemaNamed("Webhook.listed");
  const update = {
    path: `${path}/{id}`,
    summary: "Changes the fields of a subscription that are sent",
    parameters: [idParameter],
    body: { schema: schemaNamed("Webhook.update"), isOptional: true },
    answers: { 200: one },
    errors: ["webhook.not_found"],
  } as const;
  return sectionOf({ tag: "Webhooks", scope: "webhooks" }, [
    {
      method: "get",
      path,
      id: "svc.webhooks.list",
      summary: "Lists the caller's subscriptions",
      description: `All of them without page, per_page, count and cursor. ${listRemarks(subscriptionShape)}`,
      parameters: listParameters(subscriptionShape, { maxPerPage, own: ownParameters }),
      answers: {
        200: {
          description: "All of them, or a page.",
          schema: {
            anyOf: [pageSchema(listed), cursorPageSchema(listed), objectOf({ data: listOf(listed) })],
          },
        },
      },
      errors: ["user.forbidden"],
    },
    {
      method: "post",
      path,
      id: "svc.webhooks.create",
      summary: "Subscribes a URL to the events of a resource",
      parameters: idempotencyKey,
      body: { schema: schemaNamed("Webhook.create") },
      answers: {
        201: {
          description: "The subscription with its secret, shown this once.",
          schema: schemaNamed("Webhook.made"),
          headers: ["Location"],
        },
      },
      errors: ["webhook.refused"],
    },
    {
      method: "get",
      path: `${path}/{id}`,
      id: "svc.webhooks.show",
      summary: "Shows a subscription",
      parameters: [idParameter],
      answers: { 200: one },
      errors: ["webhook.not_found"],
    },
    { ...update, method: "put", id: "svc.webhooks.update" },
    { ...update, method: "patch", id: "svc.webhooks.patch" },
    ...webhookActions(),
    {
      method: "delete",
      path: `${path}/{id}`,
      id: "svc.webhooks.delete",
      summary: "Deletes a subscription",
      parameters: [idParameter],
      answers: { 204: { description: "It is gone." } },
      errors: ["webhook.not_found"],
    },
  ]);
}
