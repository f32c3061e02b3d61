import type { Caller } from "../kit/caller.ts";
import type { FairBudget, FairBudgetOptions } from "./fair-budget.ts";
import { getOrSet } from "../kit/group-by.ts";
import { inParts, isTimeOver, type Steps as Parts } from "../kit/parts.ts";
import { createJudgedRecord, type JudgedRecord, type Steps } from "../querying/judged-record.ts";
import { idsForLog, type Log } from "../telemetry/log.ts";

/** The parts of an event that a filter needs. */
export interface FilteredEvent {
  readonly resource: string;
  /** The record, or the bytes of its JSON. */
  readonly data?: unknown;
}

/** The parts of a subscription that filters need. */
export interface Filtered {
  /** JSON of the filter; null for every event. */
  readonly filter: string | null;
  readonly user: Pick<Caller, "id">;
}

/**
 * Most steps of one filter for one event: about 12 ms at worst. A text of 1.3 MB can be searched
 * once, one of 100 KB 38 times.
 */
const mostStepsOfFilter = 4_000_000;
/** Most steps of all filters of one user for one event. */
const mostStepsOfUser = 2 * mostStepsOfFilter;
/**
 * Least cost of an evaluation without a result, in steps, because the exceptions of its conditions
 * take time.
 */
const stepsOfUnjudged = 20_000;
/**
 * Most steps of the filters of all users in one dispatcher: a tenth of a core. Without it, 50
 * costly filters of one user stopped the fan-out at 40 events a second.
 */
export const stepsOfDispatcher: Pick<FairBudgetOptions, "perSecond" | "burst"> = {
  perSecond: 16_000_000,
  burst: mostStepsOfUser,
};

/** Options of `filterAnswers`: how filters are judged, and at what cost. */
export interface FilterAnswersOptions {
  /** Returns whether the event passes; undefined when the steps do not suffice. */
  readonly judge: (
    event: { readonly resource: string; readonly record: JudgedRecord },
    filter: string,
    steps: Steps,
  ) => boolean | undefined;
  readonly log: Pick<Log, "warn">;
  /**
   * Budget of steps over time, by user. Without a budget, all subscriptions have the same user,
   * whose evaluations take turns with other long work.
   */
  readonly budget?: FairBudget | undefined;
}

/**
 * Leaves out the subscriptions whose filter an event does not pass. Each filter text is evaluated
 * once for an event, however many subscriptions have it. A record is parsed once, and only for an
 * event that meets a filter. An event passes a filter that needs more steps than allowed. It also
 * passes when the user has too few steps left, for this event or in the budget.
 *
 * @param events Read one at a time. When they end early, the filters of the rest are not applied.
 * @param answers Subscriptions of each event, in the events' order.
 */
export async function filterAnswers<C extends Filtered>(
  events: Iterable<FilteredEvent>,
  answers: readonly (readonly C[])[],
  options: FilterAnswersOptions,
): Promise<readonly (readonly C[])[]> {
  const first = answers.find((own) => own.some(hasFilter))?.find(hasFilter);
  if (first === undefined) return answers;
  const userId = options.budget === undefined ? first.user.id : undefined;
  return inParts(userId, filterInParts(events, answers, options));
}

function* filterInParts<C extends Filtered>(
  events: Iterable<FilteredEvent>,
  answers: readonly (readonly C[])[],
  { judge, log, budget }: FilterAnswersOptions,
): Parts<readonly (readonly C[])[]> {
  const passed: (readonly C[])[] = [];
  const unjudged: C[] = [];
  const costly = new Set<string>();
  const given = events[Symbol.iterator]();
  for (const own of answers) {
    if (isTimeOver()) yield;
    const next = given.next();
    if (next.done === true || !own.some(hasFilter)) {
      passed.push(own);
      continue;
    }
    const { resource, data } = next.value;
    let record: JudgedRecord | undefined;
    const verdicts = new Map<string, boolean>();
    const left = new Map<number, Steps>();
    const passing: C[] = [];
    for (const one of own) {
      const { filter, user } = one;
      let verdict = filter === null || verdicts.get(filter);
      if (verdict === undefined && filter !== null) {
        if (isTimeOver()) yield;
        // The first filter with steps left parses the record.
        const event = { resource, record: () => (record ??= createJudgedRecord(parsed(data))) };
        verdict = judged({ judge, budget }, event, {
          filter,
          user,
          total: getOrSet(left, user.id, freshSteps),
        });
        if (verdict !== undefined) verdicts.set(filter, verdict);
      }
      if (verdict !== false) passing.push(one);
      if (verdict !== undefined) continue;
      unjudged.push(one);
      costly.add(resource);
    }
    passed.push(passing);
  }
  if (unjudged.length > 0) warn(log, unjudged, costly);
  return passed;
}

function hasFilter({ filter }: Filtered): boolean {
  return filter !== null;
}

function parsed(data: unknown): unknown {
  return data instanceof Uint8Array ? JSON.parse(Buffer.from(data).toString()) : data;
}

function freshSteps(): Steps {
  return { left: mostStepsOfUser };
}

/** Evaluates one filter, and takes its steps from the total and from the budget. */
function judged(
  { judge, budget }: Pick<FilterAnswersOptions, "judge" | "budget">,
  { resource, record }: { readonly resource: string; readonly record: () => JudgedRecord },
  {
    filter,
    user,
    total,
  }: { readonly filter: string; readonly user: Filtered["user"]; readonly total: Steps },
): boolean | undefined {
  const budgeted = budget?.left(user.id) ?? Infinity;
  if (budgeted < stepsOfUnjudged) return undefined;
  const allowed = Math.min(mostStepsOfFilter, total.left, budgeted);
  const steps = { left: allowed };
  const verdict = judge({ resource, record: record() }, filter, steps);
  const spent = allowed - steps.left;
  total.left -= spent;
  budget?.spend(user.id, verdict === undefined ? Math.max(spent, stepsOfUnjudged) : spent);
  return verdict;
}

function warn(log: Pick<Log, "warn">, unjudged: readonly Filtered[], resources: ReadonlySet<string>): void {
  log.warn(
    {
      event: "webhook.filter_costly",
      passed: unjudged.length,
      resources: idsForLog([...resources]),
      userIds: idsForLog([...new Set(unjudged.map(({ user }) => String(user.id)))]),
    },
    "filters of webhooks take too many steps for a record; its events pass them",
  );
}
