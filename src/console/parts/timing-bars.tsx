import type { JSX } from "react";
import type { Attempt } from "../api/webhook-types.ts";
import { formatMs } from "./attempt-sentence.ts";
import "./timing-bars.css";

interface Phase {
  readonly name: string;
  readonly kind: string;
  readonly from: number;
  readonly length: number;
}

/** Splits an attempt into consecutive phases. Null phases did not happen. */
function phasesOf({
  dns_ms: dns,
  connect_ms: connect,
  tls_ms: tls,
  first_byte_ms: firstByte,
  duration_ms: duration,
}: Attempt): readonly Phase[] {
  const phases: Phase[] = [];
  let from = 0;
  const add = (name: string, kind: string, length: number | null): void => {
    if (length === null) return;
    phases.push({ name, kind, from, length });
    from += length;
  };
  add("Name look-up", "dns", dns);
  add("Connect", "connect", connect);
  add("TLS", "tls", tls);
  add("Wait", "wait", Math.max(0, (firstByte ?? duration) - from));
  if (firstByte !== null) add("Read", "read", Math.max(0, duration - from));
  return phases;
}

/** Shows the durations of an attempt's phases, as bars on one scale. */
export function TimingBars({ attempt }: { readonly attempt: Attempt }): JSX.Element {
  const total = Math.max(1, attempt.duration_ms);
  const percent = (ms: number): string => `${Math.min(100, (100 * ms) / total)}%`;
  return (
    <ul className="timings" aria-label="Timing">
      {phasesOf(attempt).map(({ name, kind, from, length }) => (
        <li key={kind}>
          <span className="muted">{name}</span>
          <span className="timing-track" aria-hidden="true">
            <span className={`timing-bar ${kind}`} style={{ left: percent(from), width: percent(length) }} />
          </span>
          <span className="numeric">{formatMs(length)}</span>
        </li>
      ))}
      <li className="timing-total">
        <span>Total</span>
        <span className="numeric">{formatMs(attempt.duration_ms)}</span>
      </li>
    </ul>
  );
}
