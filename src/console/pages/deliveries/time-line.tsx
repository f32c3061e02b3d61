import type { JSX, ReactNode } from "react";
import type { Attempt, DeliveryDetail } from "../../api/webhook-types.ts";
import { AttemptBadge, AttemptView } from "../../parts/attempt.tsx";
import { Badge, StatusBadge } from "../../parts/badge.tsx";
import { formatSeconds, secondsBetween, Time } from "../../parts/time.tsx";
import "../../parts/time-line.css";

const triggers: Readonly<Record<string, string>> = {
  scheduled: "on schedule",
  manual: "by hand",
  replay: "by a replay",
};

/** Shows the steps of a delivery, from the event to its end or its next attempt. */
export function TimeLine({ delivery }: { readonly delivery: DeliveryDetail }): JSX.Element {
  const { attempts, next_attempt_at: next, status } = delivery;
  return (
    <ol className="time-line">
      <Step kind="done" title="The event happened" time={delivery.occurred_at} />
      <Step
        kind="done"
        title={
          delivery.trigger_kind === "manual" ? "The delivery was created by hand" : "The delivery was created"
        }
        time={delivery.created_at}
        wait={secondsBetween(delivery.occurred_at, delivery.created_at)}
      />
      {attempts.map((attempt, index) => (
        <AttemptStep
          key={attempt.number}
          attempt={attempt}
          wait={secondsBetween(endOf(attempts[index - 1]) ?? delivery.created_at, attempt.started_at)}
        />
      ))}
      {next !== null && status === "retrying" && (
        <Step kind="next" title={`Attempt ${delivery.attempt + 1} is due`} time={next} />
      )}
      {next === null && (status === "pending" || status === "retrying") && (
        <Step
          kind="next"
          title={attempts.length === 0 ? "The first attempt is under way" : "The next attempt is under way"}
        />
      )}
      {(status === "failed" || status === "cancelled" || status === "held") && (
        <Step kind={status} title="" time={delivery.updated_at} badge={<StatusBadge status={status} />}>
          {delivery.last_error !== null && <p className="break">{delivery.last_error}</p>}
        </Step>
      )}
    </ol>
  );
}

function AttemptStep({ attempt, wait }: { readonly attempt: Attempt; readonly wait: number }): JSX.Element {
  return (
    <Step
      kind={attempt.error === null ? "delivered" : "failed"}
      title={`Attempt ${attempt.number}`}
      time={attempt.started_at}
      wait={wait}
      badge={
        <>
          <AttemptBadge attempt={attempt} />
          {attempt.trigger !== "scheduled" && <Badge>{triggers[attempt.trigger] ?? attempt.trigger}</Badge>}
        </>
      }
    >
      <AttemptView attempt={attempt} />
    </Step>
  );
}

function Step({
  kind,
  title,
  time,
  wait = 0,
  badge,
  children,
}: {
  readonly kind: string;
  readonly title: string;
  readonly time?: string;
  /** Seconds since the previous step. */
  readonly wait?: number;
  readonly badge?: ReactNode;
  readonly children?: ReactNode;
}): JSX.Element {
  return (
    <li className={kind}>
      <div className="row step-head">
        {title !== "" && <h3>{title}</h3>}
        {badge}
        {time !== undefined && (
          <span className="muted small">
            <Time value={time} isExact />
            {wait >= 1 && ` · ${formatSeconds(wait)} later`}
          </span>
        )}
      </div>
      {children}
    </li>
  );
}

function endOf(attempt: Attempt | undefined): string | undefined {
  if (attempt === undefined) return undefined;
  return new Date(Date.parse(attempt.started_at) + attempt.duration_ms).toISOString();
}
