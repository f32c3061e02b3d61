import type { WebhookFilters } from "./filters.ts";

/** An event with its record, as far as a filter needs them. */
export interface FilteredEvent {
  readonly resource: string;
  /** The record, or the bytes of its JSON. */
  readonly data?: unknown;
}

/** Longest that filters keep the process from other work at a time. */
const longestTurnMs = 10;

/**
 * Leaves out the subscriptions whose filter an event does not pass. Each filter text is evaluated
 * once for an event, however many subscriptions have it. A record is parsed once, and only for an
 * event that meets a filter.
 *
 * @param answers Of each event, in the events' order.
 */
export async function filterAnswers<C extends { readonly filter: string | null }>(
  events: readonly FilteredEvent[],
  answers: readonly (readonly C[])[],
  filters: Pick<WebhookFilters, "passes">,
): Promise<readonly (readonly C[])[]> {
  if (!answers.some((own) => own.some(hasFilter))) return answers;
  const passed: (readonly C[])[] = [];
  let turnEndsAt = performance.now() + longestTurnMs;
  for (const [index, own] of answers.entries()) {
    const event = events[index];
    passed.push(event === undefined ? own : passing(event, own, filters));
    if (performance.now() < turnEndsAt) continue;
    await new Promise((resolve) => setImmediate(resolve));
    turnEndsAt = performance.now() + longestTurnMs;
  }
  return passed;
}

function hasFilter({ filter }: { readonly filter: string | null }): boolean {
  return filter !== null;
}

function passing<C extends { readonly filter: string | null }>(
  { resource, data }: FilteredEvent,
  own: readonly C[],
  filters: Pick<WebhookFilters, "passes">,
): readonly C[] {
  const texts = new Set(own.flatMap(({ filter }) => filter ?? []));
  if (texts.size === 0) return own;
  const record: unknown = data instanceof Uint8Array ? JSON.parse(Buffer.from(data).toString()) : data;
  const passed = new Set([...texts].filter((text) => filters.passes(resource, text, record)));
  return own.filter(({ filter }) => filter === null || passed.has(filter));
}
