import { signedHeaders } from "../deliveries/attempt/sign.ts";
import { triggers, type Definition, type Definitions, type Trigger } from "../mapping/definition.ts";
import { isService } from "../subscriptions/service-events.ts";
import { nullable, objectOf, schemaNamed, type JsonSchema } from "./json-schema.ts";
import { dateTime, rowId, text, uuid, whole } from "./value-schemas.ts";

const happened: Readonly<Record<Trigger, string>> = {
  on_create: "was created",
  on_update: "was changed",
  on_delete: "was deleted; data is the record as it was",
};

/** Schemas of the headers of a delivery (docs/webhooks.md, "The delivery request"). */
const headers: Readonly<Record<string, JsonSchema>> = {
  "X-Service-Signature": {
    description:
      "sha256= and the HMAC-SHA256 of the raw body in hexadecimal digits. The key is the subscription's secret.",
    schema: { type: "string", pattern: "^sha256=[0-9a-f]{64}$" },
  },
  "X-Service-Signature-Previous": {
    description: "The same by the secret before, while the grace of its rotation lasts.",
    schema: { type: "string", pattern: "^sha256=[0-9a-f]{64}$" },
  },
  "webhook-id": { description: "UUID of the delivery, as in Standard Webhooks.", schema: uuid },
  "webhook-timestamp": {
    description: "Time of the attempt, in seconds since 1970.",
    schema: { type: "string", pattern: "^[0-9]+$" },
  },
  "webhook-signature": {
    description: "Signatures of Standard Webhooks, one for each valid secret, with blanks between them.",
    schema: { type: "string", pattern: "^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)*$" },
  },
  "X-Service-Event": { description: "UUID of the event.", schema: uuid },
  "X-Service-Delivery": { description: "UUID of the delivery, the same on every attempt.", schema: uuid },
  "User-Agent": { description: "The sender.", schema: { type: "string", const: "Service-Webhook/1.0" } },
};

/** The resource of operational events. */
const service = "service";

/**
 * Schemas of the data of operational events (docs/webhooks.md, "Operational events"), with the
 * description of each event.
 */
const operational: Readonly<Record<string, readonly [JsonSchema, string]>> = {
  "webhook.failing": [
    dataOf({ failing_since: dateTime }),
    "A webhook has had nothing but failures for some time",
  ],
  "webhook.disabled": [
    dataOf({ reason: { type: "string", enum: ["gone", "failing"] } }),
    "A webhook was switched off by the service",
  ],
  "delivery.failed": [
    dataOf({
      delivery_id: rowId,
      delivery_uuid: uuid,
      event_uuid: uuid,
      attempts: whole,
      reason: nullable(text),
    }),
    "The attempts of a delivery are spent",
  ],
};

function dataOf(rest: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return objectOf({ webhook_id: rowId, user_id: rowId, receiver: text, resource: text, ...rest });
}

/** Returns the requests to receivers: `webhooks` of the document, by resource and event. */
export function deliveryRequests(definitions: Definitions): JsonSchema {
  const requests = [...definitions.values()].flatMap((definition) =>
    triggers
      .filter((trigger) => definition.triggers.includes(trigger))
      .map((trigger) => [`${definition.name}.${trigger}`, { post: requestOfRecord(definition, trigger) }]),
  );
  const others = Object.entries(operational).map(([event, [data, summary]]) => {
    const resource = { type: "string", const: service };
    const id = `${service}.${event}`;
    return [id, { post: requestOf({ id, event, resource, data, summary }) }] as const;
  });
  const data = objectOf({});
  const ping = requestOf({ id: "ping", event: "ping", resource: text, data, summary: "A webhook is tested" });
  return Object.fromEntries([
    ...requests,
    ...(isService(definitions, service) ? others : []),
    ["ping", { post: ping }],
  ]) as JsonSchema;
}

function requestOfRecord({ name, keepsPrevious }: Definition, trigger: Trigger): JsonSchema {
  return requestOf({
    id: `${name}.${trigger}`,
    event: trigger,
    resource: { type: "string", const: name },
    data: schemaNamed(name),
    summary: `One of ${name} ${happened[trigger]}`,
    previous: keepsPrevious && trigger === "on_update" ? schemaNamed(name) : undefined,
  });
}

function requestOf({
  id,
  event,
  resource,
  data,
  summary,
  previous,
}: {
  readonly id: string;
  readonly event: string;
  readonly resource: JsonSchema;
  readonly data: JsonSchema;
  readonly summary: string;
  readonly previous?: JsonSchema | undefined;
}): JsonSchema {
  const fields = {
    event: { type: "string", const: event },
    resource,
    event_id: uuid,
    delivery_id: uuid,
    data,
    timestamp: {
      type: "string",
      format: "date-time",
      description: "When it happened: UTC, with microseconds.",
    },
  };
  const schema =
    previous === undefined ? objectOf(fields) : objectOf({ ...fields, previous }, { optional: ["previous"] });
  return {
    operationId: id,
    tags: ["Webhooks"],
    summary,
    security: [],
    parameters: headerNames().map((header) => ({
      name: header,
      in: "header",
      required: header !== "X-Service-Signature-Previous",
      ...headers[header],
    })),
    requestBody: { required: true, content: { "application/json": { schema } } },
    responses: {
      "2XX": { description: "The event was taken." },
      default: { description: "Any other answer, or none in time: the delivery is made again later." },
    },
  };
}

/**
 * Returns the names of the headers without Content-Type: OpenAPI ignores a parameter of that name.
 */
function headerNames(): readonly string[] {
  const signing = { secrets: ["", ""], headers: {} };
  const sent = signedHeaders({ signing, body: [], eventUuid: "", uuid: "", sentAt: new Date(0) });
  return Object.keys(sent).filter((name) => name !== "Content-Type");
}
