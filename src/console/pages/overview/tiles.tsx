import type { JSX, ReactNode } from "react";
import type { Stats } from "../../api/types.ts";
import { formatSeconds } from "../../parts/time.tsx";
import { sum } from "../../parts/sum.ts";

/** Shows four figures of the last hour and of the current state. */
export function Tiles({ stats: { now, of, rates, backlog } }: { readonly stats: Stats }): JSX.Element {
  const deliveries = sum(rates.hour.deliveries);
  const failures = sum(rates.hour.failures);
  const share = deliveries + failures === 0 ? 0 : failures / (deliveries + failures);
  const oldest = [backlog.oldest_event_at, backlog.oldest_delivery_at].filter((time) => time !== null);
  const waiting = (backlog.events ?? 0) + backlog.deliveries;
  return (
    <div className="tiles">
      <Tile title="Changes" value={count(sum(rates.hour.changes))}>
        in the last hour
      </Tile>
      <Tile title="Delivered" value={count(deliveries)}>
        in the last hour
      </Tile>
      <Tile title="Failed attempts" value={count(failures)} isBad={share > 0.05}>
        {failures === 0 ? "in the last hour" : `${(share * 100).toFixed(1)} % of the last hour's`}
      </Tile>
      <Tile
        title={of === "all" ? "Waiting, of all users" : "Waiting"}
        value={`${count(waiting)}${backlog.is_estimate ? "+" : ""}`}
      >
        {oldest.length === 0 || waiting === 0
          ? "nothing waits"
          : `the oldest for ${formatSeconds((Date.parse(now) - Math.min(...oldest.map((time) => Date.parse(time)))) / 1_000)}`}
        {backlog.scheduled > 0 && `; ${count(backlog.scheduled)} to be tried again`}
        {backlog.held > 0 && `; ${count(backlog.held)} held`}
      </Tile>
    </div>
  );
}

function Tile({
  title,
  value,
  isBad = false,
  children,
}: {
  readonly title: string;
  readonly value: string;
  readonly isBad?: boolean;
  readonly children: ReactNode;
}): JSX.Element {
  return (
    <div className={`card tile${isBad ? " bad" : ""}`}>
      <h2 className="tile-title">{title}</h2>
      <p className="tile-value numeric">{value}</p>
      <p className="small muted">{children}</p>
    </div>
  );
}

function count(value: number): string {
  return value.toLocaleString("en");
}
