import { nearest } from "../kit/did-you-mean.ts";
import type { FieldErrors } from "../kit/errors.ts";
import type { Trigger } from "../mapping/definition.ts";
import { textFault } from "../mapping/storable.ts";
import { compileRules, validate, type CompiledRules } from "../resources/rules.ts";
import { messageFor } from "../validation/messages.ts";
import type { NewSubscription, SubscriptionChanges } from "./subscription.ts";

/** What the rules below need from the resources and the settings. */
export interface SubscriptionRules {
  /** Undefined when no such resource is registered. */
  readonly triggersOf: (resource: string) => readonly Trigger[] | undefined;
  /** Why no webhook may go to a URL, as a sentence; undefined when it may. */
  readonly refusalOfUrl: (url: string) => string | undefined;
  /** Returns why a webhook of the user would never fire, as a sentence; undefined when it may. */
  readonly refusalOfResource: (resource: string) => string | undefined;
}

export type Checked<T> =
  | { readonly kind: "valid"; readonly value: T }
  | { readonly kind: "invalid"; readonly errors: FieldErrors };

type Body = Readonly<Record<string, unknown>>;

/** The rules of a new subscription. They hold for the fields of a change, too. */
export const subscriptionRules = {
  url: "bail|required|string|max:2048|url:http,https",
  resource: "bail|required|string|exists:resources,name",
  events: "bail|required|array|max:20",
  is_active: "boolean",
  description: "nullable|bail|string|max:255",
} as const;

const fields = Object.keys(subscriptionRules) as readonly (keyof typeof subscriptionRules)[];
/** Fields of the answers that a body may send back, and that it cannot set. */
const readOnly = ["id", "user_id", "masked_secret", "created_at", "updated_at"];
/** Most unknown keys that one answer names. */
const mostUnknown = 20;

const newRules = compileRules(subscriptionRules);
const changeRules = compileRules(
  Object.fromEntries(
    fields
      .filter((name) => name !== "resource")
      .map((name) => [name, `sometimes|${subscriptionRules[name]}`]),
  ),
);

/** Checks the body of a POST. */
export async function checkNewSubscription(
  body: Body,
  rules: SubscriptionRules,
): Promise<Checked<NewSubscription>> {
  const errors = await errorsIn({ body, compiled: newRules, rules, resource: body["resource"] });
  addUnknown(errors, body, [...fields, ...readOnly]);
  if (errors.size > 0) return invalid(errors);
  const value = { isActive: true, description: null, ...changesIn(body), resource: textOf(body["resource"]) };
  return { kind: "valid", value: value as NewSubscription };
}

/**
 * Checks the body of a PUT: the fields that it has, by the rules of a POST. A client may send back
 * what it has read, but not another resource.
 *
 * @param resource Resource of the subscription.
 */
export async function checkSubscriptionChanges(
  body: Body,
  resource: string,
  rules: SubscriptionRules,
): Promise<Checked<SubscriptionChanges>> {
  const errors = await errorsIn({ body, compiled: changeRules, rules, resource });
  if (Object.hasOwn(body, "resource") && body["resource"] !== resource)
    errors.set("resource", [messageFor({ rule: "prohibited", field: "resource", sizeKind: "string" })]);
  addUnknown(errors, body, [...fields, ...readOnly]);
  return errors.size > 0 ? invalid(errors) : { kind: "valid", value: changesIn(body) };
}

type Errors = Map<string, readonly string[]>;

/** Returns the errors in the order of the fields. */
async function errorsIn({
  body,
  compiled,
  rules: { triggersOf, refusalOfUrl, refusalOfResource },
  resource,
}: {
  readonly body: Body;
  readonly compiled: CompiledRules;
  readonly rules: SubscriptionRules;
  readonly resource: unknown;
}): Promise<Errors> {
  const exists = async (): Promise<boolean> => triggersOf(String(body["resource"])) !== undefined;
  const checked = await validate(compiled, body, { lookup: { exists } });
  const found: Errors = new Map(checked.kind === "valid" ? [] : Object.entries(checked.errors));
  const isFine = (name: string): boolean => !found.has(name) && hasValue(body, name);

  if (isFine("url")) {
    const refusal = urlFault(textOf(body["url"])) ?? refusalOfUrl(textOf(body["url"]));
    if (refusal !== undefined) found.set("url", [refusal]);
  }
  if (isFine("description")) {
    const description = textOf(body["description"]);
    const fault = description.includes("\0") ? "null characters" : textFault(description);
    if (fault !== undefined) found.set("description", [`The description field must not contain ${fault}.`]);
  }
  if (isFine("resource")) {
    const refusal = refusalOfResource(textOf(body["resource"]));
    if (refusal !== undefined) found.set("resource", [refusal]);
  }
  if (isFine("events") && !found.has("resource"))
    for (const [name, messages] of await eventErrors(body["events"], textOf(resource), triggersOf))
      found.set(name, messages);

  return new Map([...found].toSorted(([one], [other]) => placeOf(one) - placeOf(other)));
}

function placeOf(name: string): number {
  return fields.findIndex((field) => field === name.split(".")[0]);
}

/**
 * The rule `url` lets half a surrogate pair through, which would be stored as another character.
 */
function urlFault(text: string): string | undefined {
  return textFault(text) === undefined
    ? undefined
    : messageFor({ rule: "url", field: "url", sizeKind: "string" });
}

async function eventErrors(
  given: unknown,
  resource: string,
  triggersOf: SubscriptionRules["triggersOf"],
): Promise<Errors> {
  // The rule `array` takes objects too.
  if (!Array.isArray(given))
    return new Map([["events", [messageFor({ rule: "array", field: "events", sizeKind: "array" })]]]);
  const allowed = triggersOf(resource) ?? [];
  const rules = compileRules({
    "events.*": ["bail", { in: allowed.length > 0 ? allowed : [""] }, "distinct"],
  });
  const checked = await validate(rules, { events: given }, { lookup: { exists: async () => true } });
  return new Map(checked.kind === "valid" ? [] : Object.entries(checked.errors));
}

/** Returns the values of a body without errors, as far as it has them. */
function changesIn(body: Body): SubscriptionChanges {
  const isActive = body["is_active"];
  return {
    ...(Object.hasOwn(body, "url") ? { url: textOf(body["url"]) } : {}),
    ...(Object.hasOwn(body, "events") ? { events: eventsIn(body) } : {}),
    ...(isActive === undefined ? {} : { isActive: isActive === true || Number(isActive) === 1 }),
    ...(Object.hasOwn(body, "description") ? { description: textOf(body["description"]) || null } : {}),
  };
}

function eventsIn(body: Body): readonly Trigger[] {
  return (body["events"] as readonly string[]).map((event) => event.trim() as Trigger);
}

/** Returns a text without the blanks around it; empty for any other value. */
function textOf(value: unknown): string {
  return typeof value === "string" ? value.trim() : "";
}

function hasValue(body: Body, name: string): boolean {
  return Object.hasOwn(body, name) && body[name] !== null;
}

function addUnknown(errors: Errors, body: Body, known: readonly string[]): void {
  const unknown = Object.keys(body).filter((name) => !known.includes(name));
  for (const name of unknown.slice(0, mostUnknown)) {
    const meant = nearest(name, fields);
    const advice = meant === undefined ? `the fields are ${fields.join(", ")}.` : `did you mean ${meant}?`;
    errors.set(name, [`There is no field ${name}; ${advice}`]);
  }
}

function invalid(errors: Errors): Checked<never> {
  return { kind: "invalid", errors: Object.fromEntries(errors) };
}
