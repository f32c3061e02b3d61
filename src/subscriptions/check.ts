import { questionOf } from "../kit/did-you-mean.ts";
import type { FieldErrors } from "../kit/errors.ts";
import { unknownFields } from "../kit/refuse-fields.ts";
import type { EventKind } from "../events/event.ts";
import { textFault } from "../mapping/storable.ts";
import { compileRules, validate } from "../validation/validate.ts";
import { messageFor } from "../validation/messages.ts";
import { isEmpty, toDecimal } from "../validation/values.ts";
import type { JsonFilterFaults } from "../querying/webhook-filter.ts";
import type { FilterUse } from "./filters.ts";
import { readHeaders } from "./own-headers.ts";
import { subscriptionShape } from "./own-subscriptions.ts";
import { everyResource, type NewSubscription, type SubscriptionChanges } from "./subscription.ts";

/** Rules of the checks that depend on the resources and the settings. */
export interface SubscriptionRules {
  /**
   * Returns the events that a resource, or `*`, can have. Undefined when no such resource is
   * registered.
   */
  readonly triggersOf: (resource: string) => readonly EventKind[] | undefined;
  /** The registered resources, for the message about another one. */
  readonly resourceNames: readonly string[];
  /** Returns the faults of a filter, by place: see `WebhookFilters`. */
  readonly filterFaults: (filter: unknown, of: Pick<FilterUse, "resource" | "events">) => JsonFilterFaults;
  /**
   * Returns the reason why no webhook may go to a URL, as a sentence; undefined when webhooks may.
   */
  readonly refusalOfUrl: (url: string) => string | undefined;
  /**
   * Returns the reason why a webhook of the user would never fire, as a sentence; undefined when it
   * may fire.
   */
  readonly refusalOfResource: (resource: string) => string | undefined;
}

/** The outcome of a check: the values to store, or the errors by field. */
export type Checked<T> =
  | { readonly kind: "valid"; readonly value: T }
  | { readonly kind: "invalid"; readonly errors: FieldErrors };

type Body = Readonly<Record<string, unknown>>;

/** The rules of a new subscription. They also hold for the fields of a change. */
export const subscriptionRules = {
  url: "bail|required|string|max:2048|url:http,https",
  resource: "bail|required|string",
  events: "bail|required|array|max:20",
  rate_limit: "nullable|bail|numeric|between:0.1,1000",
  is_active: "boolean",
  description: "nullable|bail|string|max:255",
} as const;

const shortestSecret = "24";

/** A rule for new subscriptions only. */
export const secretRule = `nullable|bail|string|min:${shortestSecret}|max:128`;

/** Every field that a body can set, in the order of their errors. */
const fields = [
  "url",
  "resource",
  "events",
  "filter",
  "headers",
  "rate_limit",
  "secret",
  "is_active",
  "description",
];
const changeable = fields.filter((name) => name !== "resource" && name !== "secret");
/** Fields of the answers, which a body may send back. */
const shown = [...subscriptionShape.places.keys()];

const newRules = compileRules({ ...subscriptionRules, secret: secretRule });
const changeRules = compileRules(
  Object.fromEntries(
    Object.entries(subscriptionRules)
      .filter(([name]) => name !== "resource")
      .map(([name, rule]) => [name, `sometimes|${rule}`]),
  ),
);
const nothing = { headerNames: [], events: [], filter: null };

export async function checkNewSubscription(
  body: Body,
  rules: SubscriptionRules,
): Promise<Checked<NewSubscription>> {
  const errors = await errorsIn({ body, rules, resource: body["resource"] });
  addUnknown(errors, body, fields);
  if (errors.size > 0) return invalid(errors);
  const value = {
    filter: null,
    headers: new Map(),
    rateLimit: null,
    isActive: true,
    description: null,
    ...changesIn(body, nothing),
    resource: trimmedText(body["resource"]),
    secret: typeof body["secret"] === "string" ? body["secret"] : undefined,
  };
  return { kind: "valid", value: value as NewSubscription };
}

/**
 * Checks the present fields of a PUT body by the rules of a POST. A client may send back all that
 * it has read, but must not change the resource.
 *
 * @param stored The subscription as it is.
 */
export async function checkSubscriptionChanges(
  body: Body,
  stored: Stored & { readonly resource: string },
  rules: SubscriptionRules,
): Promise<Checked<SubscriptionChanges>> {
  const { resource } = stored;
  const errors = await errorsIn({ body, rules, resource, stored });
  if (Object.hasOwn(body, "resource") && body["resource"] !== resource)
    errors.set("resource", [messageFor({ rule: "prohibited", field: "resource", sizeKind: "string" })]);
  for (const name of ["secret", "standard_secret"])
    if (Object.hasOwn(body, name)) errors.set(name, [secretMessage]);
  addUnknown(errors, body, changeable, ["secret", "standard_secret"]);
  return errors.size > 0 ? invalid(errors) : { kind: "valid", value: changesIn(body, stored) };
}

const secretMessage = "A secret is changed with POST /webhooks/{id}/rotate-secret only.";

/** The parts of the stored subscription that the check of a change needs. */
interface Stored {
  readonly events: readonly string[];
  readonly filter: unknown;
  readonly headerNames: readonly string[];
}

type Errors = Map<string, readonly string[]>;

/** Rules whose values are in no record need no look-up. */
const withoutLookup = { lookup: { exists: async () => true } };

/**
 * Returns the errors in the order of the fields.
 *
 * @param stored The subscription to change. Undefined for a new one.
 */
async function errorsIn({
  body,
  rules,
  resource,
  stored,
}: {
  readonly body: Body;
  readonly rules: SubscriptionRules;
  readonly resource: unknown;
  readonly stored?: Stored;
}): Promise<Errors> {
  const { triggersOf, filterFaults, refusalOfUrl, refusalOfResource } = rules;
  const before = stored ?? nothing;
  const checked = await validate(stored === undefined ? newRules : changeRules, body, withoutLookup);
  const found: Errors = new Map(checked.kind === "valid" ? [] : Object.entries(checked.errors));
  const isFine = (name: string): boolean => !found.has(name) && hasValue(body, name);

  if (isFine("url")) {
    const refusal = urlFault(trimmedText(body["url"])) ?? refusalOfUrl(trimmedText(body["url"]));
    if (refusal !== undefined) found.set("url", [refusal]);
  }
  if (isFine("description")) {
    const description = trimmedText(body["description"]);
    const fault = description.includes("\0") ? "null characters" : textFault(description);
    if (fault !== undefined) found.set("description", [`The description field must not contain ${fault}.`]);
  }
  if (isFine("resource")) {
    const unknown = stored === undefined ? unknownResource(body["resource"], rules) : undefined;
    const refusal = unknown ?? refusalOfResource(trimmedText(body["resource"]));
    if (refusal !== undefined) found.set("resource", [refusal]);
  }
  if (isFine("events") && !found.has("resource"))
    for (const [name, messages] of Object.entries(
      await checkEvents(body["events"], trimmedText(resource), triggersOf),
    ))
      found.set(name, messages);

  for (const [name, message] of filterErrors(body, resource, before, filterFaults)) {
    if (!found.has("resource") && !found.has("events")) found.set(name, [message]);
  }
  if (isFine("secret")) {
    const fault = secretFault(String(body["secret"]));
    if (fault !== undefined) found.set("secret", [fault]);
  }
  if (Object.hasOwn(body, "headers")) {
    const read = readHeaders(body["headers"], before.headerNames);
    if ("errors" in read) for (const [name, message] of read.errors) found.set(name, [message]);
  }

  return new Map([...found].toSorted(([one], [other]) => placeOf(one) - placeOf(other)));
}

/** Returns the fault of the resource of a new subscription; undefined when it is registered. */
function unknownResource(
  given: unknown,
  { triggersOf, resourceNames }: SubscriptionRules,
): string | undefined {
  if (triggersOf(String(given)) !== undefined) return undefined;
  return `The selected resource is invalid${questionOf(trimmedText(given), resourceNames, "") || "."}`;
}

/**
 * Checks the events that a subscription lists against those that its resource has.
 *
 * @returns The errors by field: `events`, or `events.0` for an item.
 */
async function checkEvents(
  given: unknown,
  resource: string,
  triggersOf: SubscriptionRules["triggersOf"],
): Promise<FieldErrors> {
  // The rule `array` also accepts objects.
  if (!Array.isArray(given))
    return { events: [messageFor({ rule: "array", field: "events", sizeKind: "array" })] };
  const events = triggersOf(resource);
  const allowed = events ?? [];
  const rules = compileRules({
    "events.*": ["bail", { in: allowed.length > 0 ? allowed : [""] }, "distinct"],
  });
  const checked = await validate(rules, { events: given }, withoutLookup);
  if (checked.kind === "valid") return {};
  const isKnown = (index: number): boolean => allowed.some((one) => one === trimmedText(given[index]));
  return Object.fromEntries(
    Object.entries(checked.errors).map(([name, messages]) =>
      isKnown(Number(name.split(".")[1]))
        ? [name, messages]
        : [name, messages.map((message) => `${message} ${eventsOf(resource, events)}`)],
    ),
  );
}

/**
 * Returns a sentence about the events of the resource, which follows a message about an unknown
 * event.
 */
function eventsOf(resource: string, allowed: readonly string[] | undefined): string {
  if (allowed === undefined) return `The resource ${resource} is not in the mapping files any more.`;
  if (allowed.length === 0)
    return `The resource ${resource} has no events: its mapping file lists no triggers.`;
  return resource === everyResource
    ? `The events of the resources are ${allowed.join(", ")}.`
    : `The events of ${resource} are ${allowed.join(", ")}.`;
}

/** Most characters of a filter as JSON. */
const longestFilter = 16_384;

/** Checks the filter together with the events, when the body has either. */
function filterErrors(
  body: Body,
  resource: unknown,
  stored: Stored,
  filterFaults: SubscriptionRules["filterFaults"],
): ReadonlyMap<string, string> {
  if (!Object.hasOwn(body, "filter") && !Object.hasOwn(body, "events")) return new Map();
  const filter = Object.hasOwn(body, "filter") ? body["filter"] : stored.filter;
  if (filter === null || filter === undefined) return new Map();
  const isLonger = (text: string): boolean => text.length > longestFilter;
  if (isLonger(JSON.stringify(filter)) || isLonger(JSON.stringify(filter, asStored)))
    return new Map([["filter", `The filter field must not have more than ${longestFilter} characters.`]]);
  const given = body["events"];
  const events = Array.isArray(given) ? given.map(trimmedText) : stored.events;
  const faults = filterFaults(filter, { resource: trimmedText(resource), events });
  return new Map([...faults].map(([place, fault]) => [place === "" ? "filter" : `filter.${place}`, fault]));
}

/**
 * Writes out a small number like jsonb, where `1e-300` has 302 characters. Omits two of them, for
 * the quotes of a text.
 */
function asStored(_key: string, value: unknown): unknown {
  const isSmall = typeof value === "number" && Math.abs(value) < 1e-6;
  return isSmall && value !== 0 ? toDecimal(String(value)).toFixed().slice(2) : value;
}

function placeOf(name: string): number {
  return fields.findIndex((field) => field === name.split(".")[0]);
}

/** Returns the fault of a secret. A blank secret counts as none for the rules. */
function secretFault(secret: string): string | undefined {
  const blanks = { min: shortestSecret };
  if (secret.trim() === "") return messageFor({ rule: "min", field: "secret", sizeKind: "string", blanks });
  if (/^[!-~]+$/.test(secret)) return undefined;
  return "The secret field must have visible ASCII characters only, without blanks.";
}

/** Refuses half a surrogate pair, which the rule `url` accepts but the database cannot store. */
function urlFault(text: string): string | undefined {
  return textFault(text) === undefined
    ? undefined
    : messageFor({ rule: "url", field: "url", sizeKind: "string" });
}

/** Returns the values of the present fields of a body without errors. */
function changesIn(body: Body, { headerNames }: Stored): SubscriptionChanges {
  const { events, rate_limit: rateLimit, is_active: isActive } = body;
  const has = (name: string): boolean => Object.hasOwn(body, name);
  return {
    ...(has("url") && { url: trimmedText(body["url"]) }),
    ...(has("events") && { events: (events as readonly string[]).map((one) => one.trim() as EventKind) }),
    ...(has("headers") && readHeaders(body["headers"], headerNames)),
    ...(has("filter") && { filter: (body["filter"] ?? null) as NewSubscription["filter"] }),
    ...(rateLimit !== undefined && { rateLimit: isEmpty(rateLimit) ? null : Number(rateLimit) }),
    ...(isActive !== undefined && { isActive: isActive === true || Number(isActive) === 1 }),
    ...(has("description") && { description: trimmedText(body["description"]) || null }),
  };
}

function hasValue(body: Body, name: string): boolean {
  return Object.hasOwn(body, name) && body[name] !== null;
}

/**
 * Adds an error for each unknown field.
 *
 * @param others Known fields that have their own message here.
 */
function addUnknown(
  errors: Errors,
  body: Body,
  known: readonly string[],
  others: readonly string[] = [],
): void {
  for (const [name, messages] of Object.entries(unknownFields(body, known, [...shown, ...others])))
    errors.set(name, messages);
}

function invalid(errors: Errors): Checked<never> {
  return { kind: "invalid", errors: Object.fromEntries(errors) };
}

/** Returns a text without the blanks around it; empty for any other value. */
function trimmedText(value: unknown): string {
  return typeof value === "string" ? value.trim() : "";
}
