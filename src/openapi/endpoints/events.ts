import type { ErrorCode } from "../../kit/errors.ts";
import { triggers } from "../../mapping/definition.ts";
import { cursorPageSchema } from "../envelopes.ts";
import { objectOf, schemaNamed, type JsonSchema } from "../json-schema.ts";
import { pageParameters, query } from "../list-parameters.ts";
import { pathParameter, sectionOf, type Operation, type Parameter } from "../operation.ts";
import { dateTime, text, uuid, whole } from "../value-schemas.ts";

const trigger: JsonSchema = { type: "string", enum: triggers };
const position: JsonSchema = { anyOf: [whole, uuid, { type: "string", const: "" }] };

const keys: Readonly<Record<string, JsonSchema>> = {
  id: { type: "integer", minimum: 1, description: "Grows with time; what `after` takes." },
  uuid,
  event: trigger,
  resource: text,
  record_id: text,
  occurred_at: { ...dateTime, description: "With microseconds." },
  data: { description: "The record as it was, by the resource's transform." },
  previous: { description: "The record before the update, of a resource that keeps it, to who may read it." },
  problem: { ...text, description: "Why there is no data: the transform fails, or the record was erased." },
};
const optional = ["previous", "problem"];

/**
 * Returns the schemas of events (docs/webhooks.md, "Events"), and of events on which a filter was
 * tried.
 */
export function eventSchemas(): Readonly<Record<string, JsonSchema>> {
  const passes = { type: "boolean", description: "Whether the filter lets it through." };
  return {
    Event: objectOf(keys, { optional }),
    "Webhook.tried": objectOf({ passes, ...keys }, { optional }),
  };
}

function filters(resources: readonly string[]): readonly Parameter[] {
  return [
    query("resource", { type: "string", enum: resources }, "Of this resource."),
    query("event", trigger, "Of this trigger."),
    query("record_id", text, "Of the record with this id."),
    query(
      "after",
      position,
      "Events behind this one, named by its id or its UUID; empty as if it was left out.",
    ),
  ];
}

/**
 * Errors by scope. Every token may ask, and is refused when it may not read the requested events,
 * or none at all.
 */
const scope: readonly ErrorCode[] = ["token.scope"];

export function eventOperations(maxPerPage: number, resources: readonly string[]): readonly Operation[] {
  return sectionOf({ tag: "Events", scope: "any" }, [
    {
      method: "get",
      path: "/events",
      id: "svc.events.list",
      summary: "Lists what happened, oldest first",
      description:
        "Go on with `after` set to `next_cursor`, also behind an empty page: it moves on behind events that the caller may not read.",
      parameters: [
        ...filters(resources),
        query(
          "before",
          position,
          "Newest first: events before this one; empty: from the newest on. Not with after. `next_cursor` is null at the end.",
        ),
        ...pageParameters(maxPerPage).filter(({ name }) => name === "per_page"),
      ],
      answers: { 200: { description: "A page.", schema: cursorPageSchema(schemaNamed("Event")) } },
      errors: scope,
    },
    {
      method: "get",
      path: "/events/stream",
      id: "svc.events.stream",
      summary: "Sends events as they happen, as Server-Sent Events",
      parameters: [
        ...filters(resources),
        {
          name: "Last-Event-ID",
          in: "header",
          schema: text,
          description: "Goes on behind this event; wins over `after`. Without both: from now on.",
        },
      ],
      answers: { 200: { description: "An endless stream.", mediaType: "text/event-stream", schema: text } },
      errors: scope,
    },
    {
      method: "get",
      path: "/events/{uuid}",
      id: "svc.events.show",
      summary: "Shows an event",
      parameters: [pathParameter("uuid", uuid, "00000000-002a-4c55-9d8d-2b1c5f0a8e11")],
      answers: { 200: { description: "The event.", schema: schemaNamed("Event") } },
      errors: ["event.not_found", ...scope],
    },
  ]);
}
