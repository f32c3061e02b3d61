import type { Definition, Definitions } from "../mapping/definition.ts";
import { messageOf } from "../kit/errors.ts";
import type { FairBudget } from "./fair-budget.ts";
import { compileFilter } from "../querying/evaluate-filter.ts";
import { outOfSteps, spend, type FilterEvaluation } from "../querying/judged-record.ts";
import { readJsonFilter, type JsonFilterFaults } from "../querying/webhook-filter.ts";
import { listShapeOf, type ListShape } from "../querying/shown-paths.ts";
import { baseQueryOf } from "../resources/query.ts";
import {
  filterAnswers,
  type FilterAnswersOptions,
  type Filtered,
  type FilteredEvent,
} from "./filter-answers.ts";
import { everyResource } from "./subscription.ts";
import { isService, serviceShape } from "./service-events.ts";
import type { Log } from "../telemetry/log.ts";

/** Checks and applies the filters of subscriptions (docs/webhooks.md, "Filters"). */
export interface WebhookFilters {
  /**
   * Returns the faults of a filter; empty without faults. A filter of every resource must fit each
   * readable resource that has one of the events.
   */
  faultsOf(filter: unknown, of: FilterUse): JsonFilterFaults;
  /**
   * Leaves out the subscriptions whose filter an event does not pass: see `filterAnswers`. An event
   * passes when the filter no longer fits the resource: an event that cannot be judged must not be
   * lost.
   *
   * @param answers Subscriptions of each event, in the events' order.
   */
  passing<C extends Filtered>(
    events: Iterable<FilteredEvent>,
    answers: readonly (readonly C[])[],
  ): Promise<readonly (readonly C[])[]>;
}

/** The resource, the events and the reader of a filter. */
export interface FilterUse {
  readonly resource: string;
  readonly events: readonly string[];
  /**
   * Returns whether the user may read a resource. Messages must not name the fields of other
   * resources.
   */
  readonly mayRead: (resource: string) => boolean;
}

/**
 * Most characters of the compiled filters of one process, which take up to 60 bytes each. A dropped
 * filter is compiled again.
 */
const mostCompiled = 1_500_000;
/** Fixed memory of a compiled filter, counted as characters. */
const charactersOfEach = 200;
/**
 * Steps for compiling a character. The real cost is higher, but at the start all 50 filters of a
 * user must compile, even the longest.
 */
const stepsOfCharacter = 8;

type Compiled = (evaluation: FilterEvaluation) => boolean | undefined;

/** Creates the filters of one configuration. Compiles each when it is first needed. */
export function createWebhookFilters({
  definitions,
  log,
  budget,
}: {
  readonly definitions: Definitions;
  readonly log: Pick<Log, "warn">;
  /** Budget of `passing` over time; undefined without a limit. */
  readonly budget?: FairBudget;
}): WebhookFilters {
  const shapes = new Map<string, ListShape | undefined>();
  const compiledOf = createCache<Compiled>(mostCompiled);
  const shapeOf = (resource: string): ListShape | undefined => {
    if (isService(definitions, resource)) return serviceShape;
    const definition = definitions.get(resource);
    if (!shapes.has(resource)) shapes.set(resource, definition && shownShape(definition, definitions));
    return shapes.get(resource);
  };
  const compile = (resource: string, text: string): Compiled => {
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
  const judge: FilterAnswersOptions["judge"] = ({ resource, record }, text, steps) => {
    try {
      const evaluate = compiledOf(`${resource} ${text}`, () => {
        spend(steps, stepsOfCharacter * text.length);
        return compile(resource, text);
      });
      return evaluate({ record, steps });
    } catch (error) {
      if (error === outOfSteps) return undefined;
      log.warn({ event: "webhook.filter_failed", resource, reason: messageOf(error) }, "filter failed");
      return true;
    }
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
    passing: (events, answers) => filterAnswers(events, answers, { judge, log, budget }),
  };
}

/**
 * Returns the shape of the resource's shown records, even if `filterable` narrows its lists: an
 * event is judged in memory, by the record that its receiver gets. Undefined with a transform in
 * code.
 */
function shownShape(definition: Definition, definitions: Definitions): ListShape | undefined {
  if (definition.code.transform !== undefined) return undefined;
  const { filterable: _, ...whole } = definition;
  return listShapeOf(whole, definitions, baseQueryOf(definition).include);
}

/**
 * Creates a cache of values by text. It drops the least recently used values first.
 *
 * @param mostCharacters Most characters of all texts together; a single text may be longer.
 */
function createCache<Value>(mostCharacters: number): (text: string, make: () => Value) => Value {
  const kept = new Map<string, Value>();
  let characters = 0;
  const forget = (text: string): void => {
    if (kept.delete(text)) characters -= text.length + charactersOfEach;
  };
  return (text, make) => {
    const value = kept.get(text) ?? make();
    forget(text);
    kept.set(text, value);
    characters += text.length + charactersOfEach;
    for (const oldest of kept.keys()) {
      if (characters <= mostCharacters || oldest === text) break;
      forget(oldest);
    }
    return value;
  };
}
