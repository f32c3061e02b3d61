import type { FieldErrors } from "../kit/errors.ts";
import type { Trigger } from "../mapping/definition.ts";
import type { NewSubscription, SubscriptionChanges } from "./subscription.ts";

/** What a body is checked against besides itself. */
export interface SubscriptionRules {
  /** Undefined when no such resource is registered. */
  readonly triggersOf: (resource: string) => readonly Trigger[] | undefined;
  /** Why no webhook may go to a URL, as a sentence; undefined when it may. */
  readonly refusalOfUrl: (url: string) => string | undefined;
}

export type Checked<T> =
  | { readonly kind: "valid"; readonly value: T }
  | { readonly kind: "invalid"; readonly errors: FieldErrors };

type Body = Readonly<Record<string, unknown>>;

const maxUrlLength = 2048;
const maxDescriptionLength = 255;
/** More than any resource has triggers: a list of thousands is refused with one message, not with thousands. */
const maxEvents = 20;

/** Checks the body of a creation. Unknown keys are ignored. */
export function checkNewSubscription(body: Body, rules: SubscriptionRules): Checked<NewSubscription> {
  const resource = checkResource(body["resource"], rules);
  // Beside a refused resource any event passes: one message about one mistake.
  const allowed = resource.kind === "valid" ? rules.triggersOf(resource.value) : undefined;
  return combine<NewSubscription>({
    url: checkUrl(body["url"], rules),
    resource,
    events: checkEvents(body["events"], allowed),
    isActive: checkIsActive(Object.hasOwn(body, "is_active") ? body["is_active"] : true),
    description: checkDescription(body["description"]),
  });
}

/**
 * Checks the body of a change: what is there, by the rules of the creation. The resource may be repeated, so that what
 * was read can be sent back, but not changed.
 *
 * @param resource The subscription's own.
 */
export function checkSubscriptionChanges(
  body: Body,
  resource: string,
  rules: SubscriptionRules,
): Checked<SubscriptionChanges> {
  const has = (name: string): boolean => Object.hasOwn(body, name);
  const isResourceChanged = has("resource") && body["resource"] !== resource;
  return combine<SubscriptionChanges>({
    ...(has("url") ? { url: checkUrl(body["url"], rules) } : {}),
    ...(isResourceChanged ? { resource: refuse("resource", "The resource field is prohibited.") } : {}),
    ...(has("events") ? { events: checkEvents(body["events"], rules.triggersOf(resource) ?? []) } : {}),
    ...(has("is_active") ? { isActive: checkIsActive(body["is_active"]) } : {}),
    ...(has("description") ? { description: checkDescription(body["description"]) } : {}),
  });
}

function checkUrl(value: unknown, { refusalOfUrl }: SubscriptionRules): Checked<string> {
  if (isBlank(value)) return refuse("url", "The url field is required.");
  if (typeof value !== "string") return refuse("url", "The url field must be a string.");
  const url = value.trim();
  if (url.length > maxUrlLength) {
    return refuse("url", `The url field must not be greater than ${maxUrlLength} characters.`);
  }
  // The parser of URLs mends what it can: it drops line breaks inside, and adds and drops slashes. What is stored is what was meant.
  if (!/^https?:\/\/[^\s\p{Cc}\p{Cs}/\\][^\s\p{Cc}\p{Cs}]*$/iu.test(url) || !URL.canParse(url)) {
    return refuse("url", "The url field must be a valid URL.");
  }
  const refusal = refusalOfUrl(url);
  return refusal === undefined ? { kind: "valid", value: url } : refuse("url", refusal);
}

function checkResource(value: unknown, { triggersOf }: SubscriptionRules): Checked<string> {
  if (isBlank(value)) return refuse("resource", "The resource field is required.");
  if (typeof value !== "string") return refuse("resource", "The resource field must be a string.");
  if (triggersOf(value) === undefined) return refuse("resource", "The selected resource is invalid.");
  return { kind: "valid", value };
}

function checkEvents(value: unknown, allowed: readonly Trigger[] | undefined): Checked<readonly Trigger[]> {
  if (isBlank(value) || (Array.isArray(value) && value.length === 0)) {
    return refuse("events", "The events field is required.");
  }
  if (!Array.isArray(value)) return refuse("events", "The events field must be an array.");
  if (value.length > maxEvents) {
    return refuse("events", `The events field must not have more than ${maxEvents} items.`);
  }
  const events: readonly unknown[] = value;
  const isAllowed = (event: unknown): event is Trigger =>
    allowed === undefined || allowed.some((trigger) => trigger === event);
  const errors: FieldErrors = Object.fromEntries(
    events.flatMap((event, index) => {
      const name = `events.${index}`;
      if (!isAllowed(event)) return [[name, [`The selected ${name} is invalid.`]]];
      const isRepeated = events.indexOf(event) !== events.lastIndexOf(event);
      return isRepeated ? [[name, [`The ${name} field has a duplicate value.`]]] : [];
    }),
  );
  if (Object.keys(errors).length > 0) return { kind: "invalid", errors };
  return { kind: "valid", value: events.filter(isAllowed) };
}

/** What the rule `boolean` of resources accepts too. */
function checkIsActive(value: unknown): Checked<boolean> {
  if (value === true || value === 1 || value === "1") return { kind: "valid", value: true };
  if (value === false || value === 0 || value === "0") return { kind: "valid", value: false };
  return refuse("is_active", "The is active field must be true or false.");
}

function checkDescription(value: unknown): Checked<string | null> {
  if (isBlank(value)) return { kind: "valid", value: null };
  if (typeof value !== "string") return refuse("description", "The description field must be a string.");
  const description = value.trim();
  // PostgreSQL has no text with a NUL in it.
  if (description.includes("\0")) {
    return refuse("description", "The description field must not contain null characters.");
  }
  // It would be stored as another character.
  if (/\p{Surrogate}/u.test(description)) {
    return refuse("description", "The description field must not contain half a surrogate pair.");
  }
  // Code points, as PostgreSQL counts.
  if (Array.from(description).length > maxDescriptionLength) {
    return refuse(
      "description",
      `The description field must not be greater than ${maxDescriptionLength} characters.`,
    );
  }
  return { kind: "valid", value: description };
}

function isBlank(value: unknown): boolean {
  return value === undefined || value === null || (typeof value === "string" && value.trim() === "");
}

function refuse(field: string, message: string): { readonly kind: "invalid"; readonly errors: FieldErrors } {
  return { kind: "invalid", errors: { [field]: [message] } };
}

/** All values, or all errors. */
function combine<T>(
  fields: Readonly<Record<string, Checked<unknown>>> & { readonly [K in keyof T]: Checked<T[K]> },
): Checked<T> {
  const values: Record<string, unknown> = {};
  const errors: Record<string, readonly string[]> = {};
  for (const [name, checked] of Object.entries(fields)) {
    if (checked.kind === "valid") values[name] = checked.value;
    else Object.assign(errors, checked.errors);
  }
  return Object.keys(errors).length > 0 ? { kind: "invalid", errors } : { kind: "valid", value: values as T };
}
