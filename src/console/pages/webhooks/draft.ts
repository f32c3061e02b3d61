import { faultsOf } from "../../api/api-error.ts";
import type { Json } from "../../api/types.ts";
import type { Webhook } from "../../api/webhook-types.ts";

/** A header of the receiver's own. Its id identifies the row while others are added and removed. */
export interface HeaderRow {
  readonly id: number;
  readonly name: string;
  readonly value: string;
}

/** Content of the form of a webhook. */
export interface Draft {
  readonly resource: string;
  readonly events: readonly string[];
  /** Filter as JSON; blank for none. */
  readonly filter: string;
  readonly url: string;
  readonly description: string;
  readonly headers: readonly HeaderRow[];
  readonly rateLimit: string;
  /** Secret; blank when the service creates one. */
  readonly secret: string;
}

/** Properties of each part of the form. */
export interface FieldsProps {
  readonly draft: Draft;
  readonly onChange: (changes: Partial<Draft>) => void;
  /** Error of the last answer of the service. */
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

/** Returns the form content of an existing webhook. */
export function draftOf(webhook: Webhook): Draft {
  return {
    ...emptyDraft,
    resource: webhook.resource,
    events: webhook.events,
    filter: webhook.filter === null ? "" : JSON.stringify(webhook.filter, null, 2),
    url: webhook.url,
    description: webhook.description ?? "",
    headers: Object.entries(webhook.headers).map(([name, value], id) => ({ id, name, value })),
    rateLimit: webhook.rate_limit === null ? "" : String(webhook.rate_limit),
  };
}

/** Returns whether a form differs from its initial content. */
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
 * Returns the body of a change: the fields that differ from `start`. Others may have changed the
 * rest since. The service may also refuse a stored value by now, such as a header that has become
 * reserved.
 */
export function changesOf(draft: Draft, start: Draft): Readonly<Record<string, unknown>> {
  const before = bodyOf(start);
  return Object.fromEntries(
    Object.entries(bodyOf(draft)).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]),
    ),
  );
}

/**
 * Converts a text to a number; null for a blank text. Another text stays a text, which the service
 * refuses.
 */
function numberOf(text: string): number | string | null {
  if (text.trim() === "") return null;
  return Number.isFinite(Number(text)) ? Number(text) : text;
}

/** Returns the faults of headers that cannot be sent. Blank rows are left out. */
export function headerFaults(rows: readonly HeaderRow[]): readonly string[] {
  const names = rows.map(({ name }) => name.trim().toLowerCase());
  return rows.flatMap(({ name, value }, index) => {
    const own = name.trim().toLowerCase();
    if (own === "") return value === "" ? [] : [`Header ${index + 1} has a value and no name.`];
    return names.indexOf(own) === index ? [] : [`${name.trim()} stands here twice.`];
  });
}

/** Parses the filter. Returns the reason when it is not JSON. */
export function parseFilter(text: string): { readonly value?: Json; readonly fault?: string } {
  if (text.trim() === "") return { value: null };
  try {
    return { value: JSON.parse(text) as Json };
  } catch (error) {
    return { fault: `This is no JSON yet: ${error instanceof Error ? error.message : String(error)}` };
  }
}

/** Returns whether a field of the first step has the error. */
export function isFaultOfWhat(error: unknown): boolean {
  return ["resource", "events", "filter"].some((name) => faultsOf(error, name).length > 0);
}
