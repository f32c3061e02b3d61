import type { Definition, Definitions } from "../mapping/definition.ts";
import { setBounded } from "../kit/bounded-map.ts";
import { messageOf } from "../kit/errors.ts";
import { compileFilter } from "../querying/evaluate-filter.ts";
import { readJsonFilter, type JsonFilterFaults } from "../querying/json-filter.ts";
import { listShapeOf, type ListShape } from "../querying/shown-paths.ts";
import { baseQueryOf } from "../resources/query.ts";
import { everyResource } from "./subscription.ts";
import { isService, serviceShape } from "./service-events.ts";
import type { Log } from "../telemetry/log.ts";

/** Filters of subscriptions (docs/webhooks.md, "Filters"), by the resources that they judge. */
export interface WebhookFilters {
  /**
   * Returns what is wrong with a filter; empty for nothing. A filter of every resource must fit
   * each one with one of the events that the user may read.
   */
  faultsOf(filter: unknown, of: FilterUse): JsonFilterFaults;
  /**
   * Returns whether an event passes a filter. True where the filter does not fit the resource any
   * more: an event that cannot be judged is not lost.
   *
   * @param text The filter's JSON.
   * @param data The record as the resource's transform gave it.
   */
  passes(resource: string, text: string, data: unknown): boolean;
}

/** What a filter is for. */
export interface FilterUse {
  readonly resource: string;
  readonly events: readonly string[];
  /** Messages must not name what other resources show. */
  readonly mayRead: (resource: string) => boolean;
}

/** Compiled filters of one process; one that is dropped is compiled again. */
const mostCompiled = 5_000;

export function createWebhookFilters({
  definitions,
  log,
}: {
  readonly definitions: Definitions;
  readonly log: Pick<Log, "warn">;
}): WebhookFilters {
  const shapes = new Map<string, ListShape | undefined>();
  const compiled = new Map<string, (data: unknown) => boolean>();
  const shapeOf = (resource: string): ListShape | undefined => {
    if (isService(definitions, resource)) return serviceShape;
    const definition = definitions.get(resource);
    if (!shapes.has(resource)) shapes.set(resource, definition && shownShape(definition, definitions));
    return shapes.get(resource);
  };
  const compile = (resource: string, text: string): ((data: unknown) => boolean) => {
    const shape = shapeOf(resource);
    const read = shape && readJsonFilter(JSON.parse(text), shape.filterable);
    if (read !== undefined && "filter" in read) return compileFilter(read.filter, shape?.places ?? new Map());
    log.warn(
      { event: "webhook.filter_unfit", resource },
      "a filter of webhooks does not fit the resource any more; it lets all events pass",
    );
    return () => true;
  };
  const faultsFor = (resource: string, filter: unknown): JsonFilterFaults => {
    const shape = shapeOf(resource);
    if (shape === undefined)
      return new Map([["", `The events of ${resource} cannot be filtered: its transform is code.`]]);
    const read = readJsonFilter(filter, shape.filterable);
    return "faults" in read ? read.faults : new Map<string, string>();
  };
  return {
    faultsOf(filter, { resource, events, mayRead }) {
      if (resource !== everyResource) return faultsFor(resource, filter);
      for (const { name, triggers } of definitions.values()) {
        if (!triggers.some((trigger) => events.includes(trigger)) || !mayRead(name)) continue;
        const faults = faultsFor(name, filter);
        if (faults.size > 0)
          return new Map([...faults].map(([place, fault]) => [place, `In ${name}: ${fault}`]));
      }
      return new Map();
    },
    passes(resource, text, data) {
      const key = `${resource} ${text}`;
      const known = compiled.get(key) ?? compile(resource, text);
      setBounded(compiled, [key, known], mostCompiled);
      try {
        return known(data);
      } catch (error) {
        log.warn({ event: "webhook.filter_failed", resource, reason: messageOf(error) }, "filter failed");
        return true;
      }
    },
  };
}

/**
 * Returns what the resource shows, also where `filterable` narrows its lists: an event is judged in
 * memory, by what its receiver is sent. Undefined with a transform in code.
 */
function shownShape(definition: Definition, definitions: Definitions): ListShape | undefined {
  if (definition.code.transform !== undefined) return undefined;
  const { filterable: _, ...whole } = definition;
  return listShapeOf(whole, definitions, baseQueryOf(definition).include);
}
