import { pageOf } from "../http/page.ts";
import { readingFault, readQuery } from "../http/query-string.ts";
import { requireScope } from "../http/scope-check.ts";
import type { ApiContext } from "../http/state.ts";
import { unknownParameter } from "../http/unknown-parameter.ts";
import { validationError } from "../kit/errors.ts";
import { questionOf } from "../kit/did-you-mean.ts";
import { isUuid } from "../kit/ids.ts";
import { includesScope } from "../kit/scopes.ts";
import { triggers } from "../mapping/definition.ts";
import { textFault } from "../mapping/storable.ts";
import { idOfUuid, type FeedQuery } from "./event-feed.ts";
import type { EventHorizon } from "./event-horizon.ts";

/** Parameters of a request to the feed. */
interface FeedParameters {
  readonly query: FeedQuery;
  /** Id after which to read. Undefined: from the beginning, or for a stream from now on. */
  readonly after: bigint | undefined;
  /** The text of `after`. */
  readonly afterText: string | undefined;
  /**
   * Id before which to read, newest first; `newest` starts at the newest event. Undefined: oldest
   * first.
   */
  readonly before: bigint | "newest" | undefined;
  readonly perPage: number;
}

const listNames = ["resource", "event", "record_id", "after", "before", "per_page"];
const streamNames = ["resource", "event", "record_id", "after"];
/** Longest key to accept, longer than any key of a resource. */
const longestKey = 4_096;

/**
 * Reads the parameters of `GET /events` and its stream.
 *
 * @param registered Names of all resources.
 * @throws AppError `validation.failed` with all faults.
 * @throws AppError `token.scope` for a resource that the token may not read, or when it may read
 *   none.
 */
export function readFeedParameters(
  ctx: ApiContext,
  {
    registered,
    maxPerPage,
    isStream,
  }: { registered: readonly string[]; maxPerPage: number; isStream: boolean },
): FeedParameters {
  const faults = new Map<string, string[]>();
  const names = isStream ? streamNames : listNames;
  const given = new Map<string, string>();
  for (const parameter of readQuery(ctx.querystring)) {
    const { name, value } = parameter;
    const fault = names.includes(name) ? readingFault(parameter, given) : unknownParameter(name, names);
    if (fault === undefined) given.set(name, value);
    else faults.set(name, [fault]);
  }
  const resource = given.get("resource");
  if (resource !== undefined && !registered.includes(resource))
    faults.set("resource", [
      `The selected resource is invalid${questionOf(resource, registered, "") || "."}`,
    ]);
  const event = given.get("event");
  const trigger = triggers.find((one) => one === event);
  if (event !== undefined && trigger === undefined)
    faults.set("event", [`The selected event is invalid; expected one of ${triggers.join(", ")}.`]);
  const recordId = given.get("record_id");
  const recordFault = recordId === undefined ? undefined : recordIdFault(recordId);
  if (recordFault !== undefined) faults.set("record_id", [`The record id field must not ${recordFault}.`]);
  const after = readPosition(given.get("after"));
  if (after === "wrong") faults.set("after", ["The after field must be the id or the UUID of an event."]);
  const before = given.has("before") ? (readPosition(given.get("before")) ?? "newest") : undefined;
  if (before === "wrong") faults.set("before", ["The before field must be the id or the UUID of an event."]);
  if (before !== undefined && after !== undefined) faults.set("before", ["There is no before beside after."]);
  if (faults.size > 0 || after === "wrong" || before === "wrong")
    throw validationError(Object.fromEntries(faults));
  const resources = readableResources(ctx, resource, registered);
  return {
    query: { resources, triggers: trigger && [trigger], recordId },
    after,
    afterText: given.get("after"),
    before,
    perPage: pageOf(given, maxPerPage).perPage,
  };
}

/**
 * Returns the resources whose events the token may read.
 *
 * @throws AppError `token.scope` when there is none.
 */
export function readableResources(
  ctx: ApiContext,
  resource: string | undefined,
  registered: readonly string[],
): readonly string[] {
  if (resource !== undefined) {
    requireScope(ctx, `${resource}:read`);
    return [resource];
  }
  const readable = registered.filter((name) => includesScope(ctx.state.grant.scopes, `${name}:read`));
  if (readable.length === 0) requireScope(ctx, "read");
  return readable;
}

/** Parses the id or the UUID of an event. Returns its id; undefined for no text. */
export function readPosition(text: string | undefined): bigint | undefined | "wrong" {
  if (text === undefined || text === "") return undefined;
  if (isUuid(text)) return idOfUuid(text);
  return /^\d{1,18}$/.test(text) ? BigInt(text) : "wrong";
}

/**
 * Refuses a UUID whose id no event has yet, such as that of a delivery: its reader would wait for
 * ever.
 *
 * @param name `after`, or the name of the header.
 * @throws AppError `validation.failed`.
 */
export async function refuseAhead(
  { latest }: Pick<EventHorizon, "latest">,
  name: string,
  text: string | undefined,
): Promise<void> {
  if (text === undefined || !isUuid(text) || idOfUuid(text) <= (await latest())) return;
  const what = `${name} ${name === "after" ? "field" : "header"}`;
  throw validationError({
    [name]: [
      `The ${what} must be the id or the UUID of an event, and no event is at this UUID. Send the id; of a webhook, send event_id, not delivery_id.`,
    ],
  });
}

function recordIdFault(recordId: string): string | undefined {
  if (recordId.length > longestKey) return `be greater than ${longestKey} characters`;
  const fault = textFault(recordId);
  return fault && `contain ${fault}`;
}
