import type { Caller } from "../../kit/caller.ts";
import { fixedShape } from "../../querying/fixed-shape.ts";
import type { OwnList } from "../../querying/own-list.ts";
import { webhookIdFault } from "../list-filter.ts";
import { replayStates } from "./replay.ts";

const isState = (text: string): boolean => replayStates.some((state) => state === text);

export const replayShape = fixedShape(
  [
    { name: "id", type: "BigInt" },
    { name: "webhook_id", type: "Int" },
    { name: "since", type: "DateTime" },
    { name: "until", type: "DateTime" },
    { name: "status", type: "String", isList: true, fault: "a list" },
    { name: "events", type: "String", isList: true, isOptional: true, fault: "a list" },
    { name: "resource", type: "String", isOptional: true },
    { name: "state", type: "String" },
    { name: "reason", type: "String", isOptional: true },
    { name: "done", type: "BigInt" },
    { name: "total", type: "BigInt" },
    { name: "is_estimate", type: "Boolean" },
    { name: "failed", type: "BigInt" },
    { name: "created_at", type: "DateTime" },
    { name: "updated_at", type: "DateTime" },
  ],
  {
    own: {
      webhook_id: webhookIdFault,
      state: (text) => (text.split(",").every(isState) ? undefined : "The selected state is invalid."),
    },
  },
);

/** Returns the list of a user's replays, newest first; for an admin, of all users' replays. */
export function replaysOf({ id, isAdmin }: Pick<Caller, "id" | "isAdmin">): OwnList {
  return {
    name: "webhook-replays",
    shape: replayShape,
    direction: "desc",
    source(parameters, given) {
      const [webhookId, states] = [given.get("webhook_id"), given.get("state")?.split(",")];
      const conditions = [
        isAdmin ? [] : `user_id = ${parameters.add(id)}`,
        webhookId === undefined ? [] : `subscription_id = ${parameters.add(Number(webhookId))}`,
        states === undefined ? [] : `state = ANY(${parameters.add(states)}::text[])`,
      ].flat();
      return `SELECT id, subscription_id AS webhook_id, (asked->>'since')::timestamptz AS since, (asked->>'until')::timestamptz AS until,
          asked->'status' AS status, nullif(asked->'events', 'null') AS events, asked->>'resource' AS resource,
          state, reason, done, total, is_estimate, failed, created_at, updated_at
        FROM svc.replays WHERE ${["true", ...conditions].join(" AND ")}`;
    },
  };
}
