import { ApiError } from "../../api/api-error.ts";
import type { Json } from "../../api/types.ts";
import type { Webhook } from "../../api/webhook-types.ts";

/** A header of the receiver's own. Its id keeps its row while others come and go. */
export interface HeaderRow {
  readonly id: number;
  readonly name: string;
  readonly value: string;
}

/** What stands in the form of a webhook. */
export interface Draft {
  readonly resource: string;
  readonly events: readonly string[];
  /** JSON; blank for none. */
  readonly filter: string;
  readonly url: string;
  readonly description: string;
  readonly headers: readonly HeaderRow[];
  readonly rateLimit: string;
  /** Blank: the service makes one. */
  readonly secret: string;
}

/** What each part of the form is given. */
export interface FieldsProps {
  readonly draft: Draft;
  readonly onChange: (changes: Partial<Draft>) => void;
  /** Came with the last answer of the service. */
  readonly error: unknown;
}

export const emptyDraft: Draft = {
  resource: "",
  events: [],
  filter: "",
  url: "",
  description: "",
  headers: [],
  rateLimit: "",
  secret: "",
};

/** Returns the form of a webhook that is there. */
export function draftOf(webhook: Webhook): Draft {
  return {
    ...emptyDraft,
    resource: webhook.resource,
    events: webhook.events,
    filter: webhook.filter === null ? "" : JSON.stringify(webhook.filter, null, 2),
    url: webhook.url,
    description: webhook.description ?? "",
    headers: Object.entries(webhook.headers ?? {}).map(([name, value], id) => ({ id, name, value })),
    rateLimit: webhook.rate_limit === null ? "" : String(webhook.rate_limit),
  };
}

/** Returns whether a form differs from what it began with. */
export function isChanged(draft: Draft, start: Draft): boolean {
  return JSON.stringify(draft) !== JSON.stringify(start);
}

/** Returns the body for the API. The filter must be JSON. */
export function bodyOf(draft: Draft): Readonly<Record<string, unknown>> {
  const headers = Object.fromEntries(
    draft.headers.filter(({ name }) => name.trim() !== "").map(({ name, value }) => [name.trim(), value]),
  );
  return {
    url: draft.url.trim(),
    events: draft.events,
    filter: parseFilter(draft.filter).value ?? null,
    headers: Object.keys(headers).length === 0 ? null : headers,
    rate_limit: numberOf(draft.rateLimit),
    description: draft.description.trim() === "" ? null : draft.description,
  };
}

/**
 * Returns the body of a change: what differs from `start`. Others may have changed the rest since.
 * Or it is refused by now, such as a header that has become reserved.
 */
export function changesOf(draft: Draft, start: Draft): Readonly<Record<string, unknown>> {
  const before = bodyOf(start);
  return Object.fromEntries(
    Object.entries(bodyOf(draft)).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]),
    ),
  );
}

/** Returns null for none. What is no number stays a text, which the service refuses. */
function numberOf(text: string): number | string | null {
  if (text.trim() === "") return null;
  return Number.isFinite(Number(text)) ? Number(text) : text;
}

/** Says which headers could not be sent as they stand; blank rows are left out. */
export function headerFaults(rows: readonly HeaderRow[]): readonly string[] {
  const names = rows.map(({ name }) => name.trim().toLowerCase());
  return rows.flatMap(({ name, value }, index) => {
    const own = name.trim().toLowerCase();
    if (own === "") return value === "" ? [] : [`Header ${index + 1} has a value and no name.`];
    return names.indexOf(own) === index ? [] : [`${name.trim()} stands here twice.`];
  });
}

/** Reads the filter; with the reason where it is no JSON. */
export function parseFilter(text: string): { readonly value?: Json; readonly fault?: string } {
  if (text.trim() === "") return { value: null };
  try {
    return { value: JSON.parse(text) as Json };
  } catch (error) {
    return { fault: `This is no JSON yet: ${error instanceof Error ? error.message : String(error)}` };
  }
}

/** Returns the server's messages for a field, and for what is within it, with its place. */
export function faultsOf(error: unknown, name: string): readonly string[] {
  if (!(error instanceof ApiError)) return [];
  return Object.entries(error.fields).flatMap(([place, messages]) => {
    if (place === name) return messages;
    if (!place.startsWith(`${name}.`)) return [];
    return messages.map((message) => `${place.slice(name.length + 1)}: ${message}`);
  });
}

/** Returns whether a field of the first step has the error. */
export function isFaultOfWhat(error: unknown): boolean {
  return ["resource", "events", "filter"].some((name) => faultsOf(error, name).length > 0);
}
