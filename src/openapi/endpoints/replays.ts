import { deliveredEvents } from "../../deliveries/delivery.ts";
import { replayedStatuses, replayStates } from "../../deliveries/replay/replay.ts";
import { replayShape } from "../../deliveries/replay/replay-list.ts";
import { listSchema } from "../envelopes.ts";
import { listParameters, listRemarks, ofWebhook, type OwnParameters } from "../list-parameters.ts";
import { emptyObject, listOf, nullable, objectOf, schemaNamed, type JsonSchema } from "../json-schema.ts";
import {
  idParameter,
  pathParameter,
  sectionOf,
  type Operation,
  type SectionOperation,
} from "../operation.ts";
import { idempotencyKey } from "../shared-parameters.ts";
import { dateTime, rowId, text, whole } from "../value-schemas.ts";

const event: JsonSchema = { type: "string", enum: deliveredEvents };
const status: JsonSchema = { type: "string", enum: replayedStatuses };

/** The schemas of replays (docs/webhooks.md, "Replays"). */
export function replaySchemas(): Readonly<Record<string, JsonSchema>> {
  return { Replay: objectOf(keys), "Replay.listed": objectOf(keys, { optional: "all" }) };
}

const keys: Readonly<Record<string, JsonSchema>> = {
  id: rowId,
  webhook_id: rowId,
  since: dateTime,
  until: dateTime,
  status: listOf(status),
  events: nullable(listOf(event)),
  resource: nullable(text),
  state: { type: "string", enum: replayStates },
  reason: nullable(text),
  done: whole,
  total: whole,
  is_estimate: { type: "boolean" },
  failed: whole,
  created_at: dateTime,
  updated_at: dateTime,
};

/** Parameters of the list of replays only. */
const own: OwnParameters = {
  webhook_id: ofWebhook,
  state: {
    schema: { ...text, examples: ["running"] },
    description: `One or more of ${replayStates.join(", ")}, with commas.`,
  },
};

const asked: JsonSchema = {
  type: "object",
  required: ["since"],
  properties: {
    since: { ...dateTime, description: "Events from this time on." },
    until: { ...dateTime, description: "Events before this time; default: now." },
    status: {
      type: "array",
      items: status,
      minItems: 1,
      default: ["failed"],
      description: "What became of the newest delivery of the event; never: there is none.",
    },
    events: { type: "array", items: event, minItems: 1, description: "Some of the webhook's; default: all." },
    resource: { ...text, description: "One of the webhook's; default: all." },
    dry_run: { type: "boolean", default: false, description: "Only counts." },
  },
  additionalProperties: false,
};

export function replayOperations(maxPerPage: number): readonly Operation[] {
  const id = pathParameter("id", rowId, 1);
  const replay = { description: "The replay.", schema: schemaNamed("Replay") };
  const move = (name: string, summary: string): SectionOperation => ({
    method: "post",
    path: `/webhook-replays/{id}/${name}`,
    id: `svc.replays.${name}`,
    summary,
    parameters: [id, ...idempotencyKey],
    body: { schema: emptyObject, isOptional: true },
    answers: { 200: replay },
    errors: ["replay.not_found", "replay.conflict"],
  });
  return sectionOf({ tag: "Deliveries", scope: "webhooks" }, [
    {
      method: "post",
      path: "/webhooks/{id}/replay",
      id: "svc.webhooks.replay",
      summary: "Delivers the events of a time again, or counts them",
      parameters: [idParameter, ...idempotencyKey],
      body: { schema: asked, example: { since: "2026-03-28T14:30:00Z", status: ["failed"], dry_run: true } },
      answers: {
        200: {
          description: "Of a dry run: how many there are, and the ids of the first events.",
          schema: objectOf({ count: whole, is_estimate: { type: "boolean" }, event_ids: listOf(rowId) }),
        },
        202: { ...replay, headers: ["Location"] },
      },
      errors: ["webhook.not_found", "replay.conflict", "replay.refused"],
    },
    {
      method: "get",
      path: "/webhook-replays",
      id: "svc.replays.list",
      summary: "Lists the replays of the caller's subscriptions; of all for admins",
      description: listRemarks(replayShape),
      parameters: listParameters(replayShape, { maxPerPage, own }),
      answers: { 200: { description: "A page.", schema: listSchema(schemaNamed("Replay.listed")) } },
    },
    {
      method: "get",
      path: "/webhook-replays/{id}",
      id: "svc.replays.show",
      summary: "Shows a replay",
      parameters: [id],
      answers: { 200: replay },
      errors: ["replay.not_found"],
    },
    move("pause", "Pauses a replay"),
    move("resume", "Resumes a paused replay"),
    move("cancel", "Cancels a replay, and its deliveries that wait"),
  ]);
}
