import { auditShape } from "../../operations/audit-page.ts";
import { deadLetterShape } from "../../operations/dead-letters.ts";
import { cursorPageSchema } from "../envelopes.ts";
import { emptyObject, listOf, nullable, objectOf, schemaNamed, type JsonSchema } from "../json-schema.ts";
import { cursorParameters, ofWebhook } from "../list-parameters.ts";
import { sectionOf, type Operation } from "../operation.ts";
import { idempotencyKey } from "../shared-parameters.ts";
import { dateTime, text, whole } from "../value-schemas.ts";
import { listedKeys } from "./deliveries.ts";

const flag: JsonSchema = { type: "boolean" };
const anyObject: JsonSchema = { type: "object", additionalProperties: true };

const series = objectOf({
  step_seconds: whole,
  from: { ...dateTime, description: "When the first step begins; the last one is still growing." },
  changes: listOf(whole),
  deliveries: listOf({ ...whole, description: "Deliveries that arrived." }),
  failures: listOf({ ...whole, description: "Attempts that failed." }),
});

const process = objectOf({
  id: text,
  program: text,
  host: text,
  pid: whole,
  version: nullable(text),
  configuration: { ...text, description: "Checksum of what it runs on." },
  loaded_at: dateTime,
  reload_faults: listOf(text),
  started_at: dateTime,
  seen_at: dateTime,
});

const receiver = objectOf({
  webhook_id: whole,
  user_id: whole,
  receiver: { ...nullable(text), description: "Origin of the URL." },
  resource: text,
  state: { type: "string", enum: ["failing", "off", "waiting"] },
  since: dateTime,
  reason: {
    ...nullable(text),
    description: "The last error of one that fails; owner, gone or failing; rate_limit or no_slot.",
  },
  waiting: { ...whole, maximum: 100 },
});

const fault = objectOf({
  message: text,
  file: nullable(text),
  line: nullable(whole),
  column: nullable(whole),
  excerpt: nullable(listOf(objectOf({ line: whole, text }))),
});

/** Returns the schemas of the operations for operators (docs/operations.md). */
export function operationSchemas(): Readonly<Record<string, JsonSchema>> {
  return {
    Stats: objectOf({
      now: dateTime,
      of: { type: "string", enum: ["own", "all"] },
      caller: objectOf({ is_admin: flag, scopes: listOf(text) }),
      rates: objectOf({ hour: series, day: series, week: series }),
      backlog: objectOf({
        events: { ...nullable(whole), description: "Not fanned out yet; null for one user." },
        oldest_event_at: nullable(dateTime),
        deliveries: { ...whole, description: "That could be attempted now." },
        scheduled: { ...whole, description: "That wait for their next attempt." },
        oldest_delivery_at: nullable(dateTime),
        held: whole,
        is_estimate: { ...flag, description: "A count of 1,000 stands for as many or more." },
      }),
      receivers: { ...nullable(listOf(receiver)), description: "Null without the scope webhooks." },
      processes: { ...nullable(listOf(process)), description: "For admins." },
    }),
    AuditEntry: objectOf({
      id: whole,
      occurred_at: dateTime,
      action: text,
      actor_kind: text,
      actor_id: nullable(whole),
      actor_name: nullable(text),
      token_id: nullable(whole),
      source: nullable(text),
      request_id: nullable(text),
      subject_kind: text,
      subject_id: nullable(text),
      details: anyObject,
    }),
    DeadLetter: objectOf({
      ...listedKeys(),
      user_id: nullable(whole),
      dead_lettered_at: { ...nullable(dateTime), description: "When the broker confirmed it." },
    }),
    Configuration: objectOf({
      version: text,
      hash: text,
      loaded_at: dateTime,
      resources: listOf(objectOf({ name: text, file: text, definition: anyObject, prisma_model: text })),
      settings: listOf(
        objectOf({
          key: text,
          variable: nullable(text),
          value: { description: "As service.yaml would have it; null when it is not set, or a secret." },
          default: {},
          is_secret: flag,
          is_set: flag,
          takes_restart: flag,
        }),
      ),
    }),
    Reload: objectOf({
      is_reloaded: {
        ...flag,
        description: "Every process took the files into use, or stopped meanwhile, and there was one.",
      },
      faults: { ...listOf(fault), description: "Of this host's files: nothing was reloaded then." },
      processes: listOf(
        objectOf({
          program: text,
          host: text,
          pid: whole,
          outcome: { type: "string", enum: ["reloaded", "refused", "stopped", "no_answer"] },
          configuration: text,
          faults: listOf(fault),
        }),
      ),
    }),
  };
}

const since = {
  schema: { anyOf: [dateTime, { ...text, pattern: "^[1-9][0-9]{0,8}[mhd]$", examples: ["24h"] }] },
  description: "Not older than this time, or than a duration.",
};
const action = {
  schema: { ...text, examples: ["token.created"] },
  description: "What, or the part before its dot.",
};
const party = { schema: { ...text, examples: ["user"] }, description: "A kind, or one with an id: user:7." };

export function operationOperations(maxPerPage: number): readonly Operation[] {
  return sectionOf({ tag: "Operations", scope: "admin" }, [
    {
      method: "get",
      path: "/stats",
      id: "svc.stats",
      summary: "Shows how it goes: the caller's own figures, for admins those of all",
      scope: "any",
      answers: { 200: { description: "The figures.", schema: schemaNamed("Stats") } },
    },
    {
      method: "get",
      path: "/audit",
      id: "svc.audit.list",
      summary: "Lists who changed what, newest first",
      parameters: cursorParameters(auditShape, {
        maxPerPage,
        own: {
          since,
          until: { ...since, description: "Older than this time, or than a duration." },
          action,
          actor: party,
          subject: party,
        },
      }),
      answers: { 200: { description: "A page.", schema: cursorPageSchema(schemaNamed("AuditEntry")) } },
    },
    {
      method: "get",
      path: "/dead-letters",
      id: "svc.deadLetters.list",
      summary: "Lists deliveries whose attempts are spent; a retry makes a new one",
      parameters: cursorParameters(deadLetterShape, { maxPerPage, own: { webhook_id: ofWebhook } }),
      answers: {
        200: {
          description: "A page, and how many messages the queue of dead letters holds.",
          schema: {
            allOf: [
              cursorPageSchema(schemaNamed("DeadLetter")),
              { type: "object", properties: { queued: nullable(whole) }, required: ["queued"] },
            ],
          },
        },
      },
    },
    {
      method: "get",
      path: "/configuration",
      id: "svc.configuration.show",
      summary: "Shows the configuration in effect, without secrets",
      answers: { 200: { description: "Of the process that answers.", schema: schemaNamed("Configuration") } },
    },
    {
      method: "post",
      path: "/configuration/reload",
      id: "svc.configuration.reload",
      summary: "Checks the files, and has every process load them",
      body: { schema: emptyObject, isOptional: true },
      parameters: idempotencyKey,
      answers: { 200: { description: "What became of it.", schema: schemaNamed("Reload") } },
    },
  ]);
}
