import type { Caller } from "../kit/caller.ts";
import { getOrSet } from "../kit/group-by.ts";
import { createSlices } from "../kit/slices.ts";
import { createJudgedRecord, type JudgedRecord, type Steps } from "../querying/judged-record.ts";
import { idsForLog, type Log } from "../telemetry/log.ts";

/** An event with its record, as far as a filter needs them. */
export interface FilteredEvent {
  readonly resource: string;
  /** The record, or the bytes of its JSON. */
  readonly data?: unknown;
}

/** A subscription, as far as filters need it. */
export interface Filtered {
  /** JSON; null: every event. */
  readonly filter: string | null;
  readonly user: Pick<Caller, "id">;
}

/**
 * Steps that one filter may take for one event: some 12 ms at worst. A text of 1.3 MB can be looked
 * through once, one of 100 KB 38 times.
 */
const mostStepsOfFilter = 4_000_000;
/** Steps that all filters of one user may take for one event. */
const mostStepsOfUser = 2 * mostStepsOfFilter;

export interface FilterAnswersOptions {
  /** Returns undefined when the steps do not suffice to tell. */
  readonly judge: (
    event: { readonly resource: string; readonly record: JudgedRecord },
    filter: string,
    steps: Steps,
  ) => boolean | undefined;
  readonly log: Pick<Log, "warn">;
  /** In ms, never going back. */
  readonly now?: (() => number) | undefined;
}

/**
 * Leaves out the subscriptions whose filter an event does not pass. Each filter text is evaluated
 * once for an event, however many subscriptions have it. A record is parsed once, and only for an
 * event that meets a filter. An event passes a filter that takes more steps than it may, or than
 * are left of its user's.
 *
 * @param events Each is asked for when its turn has come. Where they end early, no more are judged.
 * @param answers Of each event, in the events' order.
 */
export async function filterAnswers<C extends Filtered>(
  events: Iterable<FilteredEvent>,
  answers: readonly (readonly C[])[],
  { judge, log, now }: FilterAnswersOptions,
): Promise<readonly (readonly C[])[]> {
  if (!answers.some((own) => own.some(hasFilter))) return answers;
  const whenFree = createSlices(now);
  const passed: (readonly C[])[] = [];
  const unjudged: C[] = [];
  const costly = new Set<string>();
  const given = events[Symbol.iterator]();
  for (const own of answers) {
    await whenFree();
    const next = given.next();
    if (next.done === true || !own.some(hasFilter)) {
      passed.push(own);
      continue;
    }
    const { resource, data } = next.value;
    const event = { resource, record: createJudgedRecord(parsed(data)) };
    const verdicts = new Map<string, boolean>();
    const left = new Map<number, Steps>();
    const passing: C[] = [];
    for (const one of own) {
      const { filter, user } = one;
      let verdict = filter === null || verdicts.get(filter);
      if (verdict === undefined && filter !== null) {
        await whenFree();
        verdict = judged(judge, { event, filter, total: getOrSet(left, user.id, freshSteps) });
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

/** Takes the steps of one evaluation from the total. */
function judged(
  judge: FilterAnswersOptions["judge"],
  {
    event,
    filter,
    total,
  }: { readonly event: Parameters<typeof judge>[0]; readonly filter: string; readonly total: Steps },
): boolean | undefined {
  const allowed = Math.min(mostStepsOfFilter, total.left);
  const steps = { left: allowed };
  const verdict = judge(event, filter, steps);
  total.left -= allowed - steps.left;
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
