import { signedHeaders } from "../deliveries/attempt/sign.ts";
import { triggers, type Definition, type Definitions, type Trigger } from "../mapping/definition.ts";
import { objectOf, schemaNamed, type JsonSchema } from "./json-schema.ts";
import { uuid } from "./value-schemas.ts";

const happened: Readonly<Record<Trigger, string>> = {
  on_create: "was created",
  on_update: "was changed",
  on_delete: "was deleted; data is the record as it was",
};

/** What the headers of a delivery say (docs/webhooks.md, "The delivery request"). */
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
  "X-Service-Delivery": {
    description: "UUID of the delivery, the same on every attempt.",
    schema: uuid,
  },
  "User-Agent": { description: "The sender.", schema: { type: "string", const: "Service-Webhook/1.0" } },
};

/** Returns what receivers get: `webhooks` of the document, by resource and trigger. */
export function deliveryRequests(definitions: Definitions): JsonSchema {
  const requests = [...definitions.values()].flatMap((definition) =>
    triggers
      .filter((trigger) => definition.triggers.includes(trigger))
      .map((trigger) => [`${definition.name}.${trigger}`, { post: requestOf(definition, trigger) }]),
  );
  return Object.fromEntries(requests) as JsonSchema;
}

function requestOf({ name, keepsPrevious }: Definition, trigger: Trigger): JsonSchema {
  const before = keepsPrevious && trigger === "on_update";
  const fields = {
    event: { type: "string", const: trigger },
    resource: { type: "string", const: name },
    event_id: uuid,
    delivery_id: uuid,
    data: schemaNamed(name),
    timestamp: {
      type: "string",
      format: "date-time",
      description: "When it happened: UTC, with microseconds.",
    },
  };
  const schema = before
    ? objectOf({ ...fields, previous: schemaNamed(name) }, { optional: ["previous"] })
    : objectOf(fields);
  return {
    operationId: `${name}.${trigger}`,
    tags: ["Webhooks"],
    summary: `One of ${name} ${happened[trigger]}`,
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

/** OpenAPI ignores a parameter that is named Content-Type. */
function headerNames(): readonly string[] {
  const signing = { secrets: ["", ""], headers: {} };
  const sent = signedHeaders({ signing, body: [], eventUuid: "", deliveryUuid: "", sentAt: new Date(0) });
  return Object.keys(sent).filter((name) => name !== "Content-Type");
}
