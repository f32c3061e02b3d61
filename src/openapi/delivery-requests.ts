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

function requestOf({ name }: Definition, trigger: Trigger): JsonSchema {
  const schema = objectOf({
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
  });
  return {
    operationId: `${name}.${trigger}`,
    tags: ["Webhooks"],
    summary: `One of ${name} ${happened[trigger]}`,
    security: [],
    parameters: headerNames().map((header) => ({
      name: header,
      in: "header",
      required: true,
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
  const sent = signedHeaders({ secret: "", body: [], eventUuid: "", deliveryUuid: "" });
  return Object.keys(sent).filter((name) => name !== "Content-Type");
}
