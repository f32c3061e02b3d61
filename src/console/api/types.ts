export interface CursorPage<T> {
  readonly data: readonly T[];
  readonly per_page: number;
  readonly next_cursor: string | null;
  readonly prev_cursor: string | null;
}

export interface Caller {
  readonly id: number;
  readonly name: string;
  readonly email: string;
}

export interface ResourceEntry {
  readonly name: string;
  readonly model: string;
  readonly triggers: readonly string[];
}

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

export type JsonRecord = { readonly [key: string]: Json };

export interface Delivery {
  readonly id: number;
  readonly uuid: string;
  readonly event_uuid: string;
  readonly subscription_id: number;
  readonly resource: string;
  readonly event: string;
  readonly record_id: string;
  readonly occurred_at: string;
  readonly status: string;
  readonly attempt: number;
  readonly max_attempts: number;
  readonly url: string;
  readonly next_attempt_at: string | null;
  readonly last_error: string | null;
  readonly trigger_kind: string;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface ServiceEvent {
  readonly id: number;
  readonly uuid: string;
  readonly event: string;
  readonly resource: string;
  readonly record_id: string;
  readonly occurred_at: string;
  readonly data: JsonRecord | null;
  readonly problem?: string;
}

/** Series of counts over one time span, oldest first. */
export interface Series {
  readonly step_seconds: number;
  readonly from: string;
  readonly changes: readonly number[];
  readonly deliveries: readonly number[];
  readonly failures: readonly number[];
}

export interface ReceiverState {
  readonly webhook_id: number;
  readonly user_id: number;
  /** Scheme and host; null when the URL is not valid. */
  readonly receiver: string | null;
  readonly resource: string;
  readonly state: string;
  readonly since: string | null;
  readonly reason: string | null;
  readonly waiting: number | null;
}

export interface ProcessState {
  readonly id: string;
  readonly program: string;
  readonly host: string | null;
  readonly pid: number | null;
  readonly version: string | null;
  readonly configuration: string;
  /** Faults that keep the process from using the configuration on disk. */
  readonly reload_faults: readonly string[];
  readonly started_at: string;
  readonly seen_at: string;
}

/** The answer of `GET /stats`. */
export interface Stats {
  readonly now: string;
  readonly of: "own" | "all";
  readonly caller: { readonly is_admin: boolean; readonly scopes: readonly string[] };
  readonly rates: { readonly hour: Series; readonly day: Series; readonly week: Series };
  readonly backlog: {
    /** Changes that have no deliveries yet; null for a user's own figures. */
    readonly events: number | null;
    readonly oldest_event_at: string | null;
    readonly deliveries: number;
    readonly oldest_delivery_at: string | null;
    /** Retries that are scheduled for later. */
    readonly scheduled: number;
    readonly held: number;
    /** Whether there may be more, because counts end at 1,000. */
    readonly is_estimate: boolean;
  };
  /** Null for a token without the scope webhooks. */
  readonly receivers: readonly ReceiverState[] | null;
  readonly processes: readonly ProcessState[] | null;
}
