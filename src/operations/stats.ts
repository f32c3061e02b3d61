import { getRow, type Sql } from "../db/sql.ts";
import { allUsersId } from "../deliveries/figures.ts";
import { formatDateTime } from "../kit/date-time.ts";
import { parseUrl } from "../kit/parse-url.ts";
import { listLiveProcesses, presentProcess } from "./processes.ts";
import {
  backlogOfAllText,
  backlogOfUserText,
  countLimit,
  figuresText,
  receiverCountLimit,
  receiversOfAllText,
  receiversOfUserText,
} from "./stats-texts.ts";

export type StatsRow = Readonly<Record<string, unknown>>;

/** The answer to `GET /stats`. */
export interface Stats extends StatsRow {
  readonly backlog: StatsRow;
  /** Null for a token that may not see webhooks. */
  readonly receivers: readonly StatsRow[] | null;
  /** Null for a user who is no admin. */
  readonly processes: readonly StatsRow[] | null;
}

interface FigureRow {
  readonly width: "minute" | "hour";
  readonly since: Date;
  readonly changes: number;
  readonly deliveries: number;
  readonly failures: number;
}

interface BacklogRow {
  readonly now: Date;
  readonly events: number | null;
  readonly oldestEventAt: Date | null;
  readonly deliveries: number;
  readonly scheduled: number;
  readonly oldestDeliveryAt: Date | null;
  readonly held: number;
}

interface ReceiverRow {
  readonly webhookId: number;
  readonly state: "failing" | "off" | "waiting";
  readonly userId: number;
  readonly url: string;
  readonly resource: string;
  readonly disabledReason: string | null;
  readonly isLimited: boolean | null;
  readonly since: Date;
  readonly lastError: string | null;
  readonly waiting: number;
}

/**
 * Reads the figures of all users for an admin, otherwise those of one user. Every statement reads a
 * bounded number of rows, for any history.
 *
 * @param sql SQL that uses only indexes.
 * @param showsWebhooks Whether the token may see webhooks; otherwise `receivers` is null.
 */
export async function readStats(
  sql: Sql,
  {
    caller,
    showsWebhooks,
  }: { readonly caller: { id: number; isAdmin: boolean }; readonly showsWebhooks: boolean },
): Promise<Stats> {
  const ofUser = caller.isAdmin ? [] : [caller.id];
  const figures = await sql<FigureRow>(figuresText, [caller.isAdmin ? allUsersId : caller.id]);
  const text = caller.isAdmin ? backlogOfAllText : backlogOfUserText;
  const backlog = await getRow<BacklogRow>(sql, text, ofUser);
  const receivers = showsWebhooks
    ? await sql<ReceiverRow>(caller.isAdmin ? receiversOfAllText : receiversOfUserText, ofUser)
    : undefined;
  const processes = caller.isAdmin ? await listLiveProcesses(sql) : undefined;
  const { now } = backlog;
  return {
    now: formatDateTime(now),
    of: caller.isAdmin ? "all" : "own",
    rates: {
      hour: seriesOf(figures, now, "minute", 60),
      day: seriesOf(figures, now, "hour", 24),
      week: seriesOf(figures, now, "hour", 168),
    },
    backlog: presentBacklog(backlog),
    receivers: receivers?.map(presentReceiver) ?? null,
    processes: processes?.map(presentProcess) ?? null,
  };
}

/** Converts rows to lists of equal length, the oldest first. The last item is still growing. */
function seriesOf(
  rows: readonly FigureRow[],
  now: Date,
  width: FigureRow["width"],
  points: number,
): Readonly<Record<string, unknown>> {
  const stepSeconds = { minute: 60, hour: 3600 }[width];
  const stepMs = stepSeconds * 1_000;
  const last = Math.floor(now.getTime() / stepMs);
  const series = (name: "changes" | "deliveries" | "failures"): readonly number[] => {
    const counts = Array.from({ length: points }, () => 0);
    for (const row of rows) {
      const index = points - 1 - (last - Math.floor(row.since.getTime() / stepMs));
      if (row.width === width && index >= 0 && index < points) counts[index] = row[name];
    }
    return counts;
  };
  return {
    step_seconds: stepSeconds,
    from: formatDateTime(new Date((last - points + 1) * stepMs)),
    changes: series("changes"),
    deliveries: series("deliveries"),
    failures: series("failures"),
  };
}

function presentBacklog(row: BacklogRow): Readonly<Record<string, unknown>> {
  const { events, oldestEventAt, deliveries, scheduled, oldestDeliveryAt, held } = row;
  return {
    events,
    oldest_event_at: formatDateTime(oldestEventAt),
    deliveries,
    scheduled,
    oldest_delivery_at: formatDateTime(oldestDeliveryAt),
    held,
    is_estimate: [events ?? 0, deliveries, scheduled, held].some((count) => count >= countLimit),
  };
}

function presentReceiver(row: ReceiverRow): Readonly<Record<string, unknown>> {
  const { webhookId, userId, url, resource, state, since, waiting } = row;
  return {
    webhook_id: webhookId,
    user_id: userId,
    // Leaves out the path, which may contain a secret. The webhook itself shows it.
    receiver: parseUrl(url)?.origin ?? null,
    resource,
    state,
    since: formatDateTime(since),
    reason: reasonOf(row),
    waiting: Math.min(waiting, receiverCountLimit),
  };
}

function reasonOf({ state, disabledReason, lastError, isLimited }: ReceiverRow): string | null {
  if (state === "off") return disabledReason;
  if (state === "failing") return lastError;
  return isLimited === true ? "rate_limit" : "no_slot";
}
