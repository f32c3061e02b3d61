import type { JSX } from "react";
import type { Attempt } from "../api/webhook-types.ts";
import { formatMs } from "./attempt-sentence.ts";
import "./timing-bars.css";

interface Phase {
  readonly name: string;
  /** A colour of `tokens.css`. */
  readonly color: string;
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
  const add = (name: string, color: string, length: number | null): void => {
    if (length === null) return;
    phases.push({ name, color, from, length });
    from += length;
  };
  add("Name look-up", "--chart-changes", dns);
  add("Connect", "--warn", connect);
  add("TLS", "--info", tls);
  add("Wait", "--accent-solid", Math.max(0, (firstByte ?? duration) - from));
  if (firstByte !== null) add("Read", "--chart-deliveries", Math.max(0, duration - from));
  return phases;
}

/** Shows the durations of an attempt's phases, as bars on one scale. */
export function TimingBars({ attempt }: { readonly attempt: Attempt }): JSX.Element {
  const total = Math.max(1, attempt.duration_ms);
  const percent = (ms: number): string => `${Math.min(100, (100 * ms) / total)}%`;
  return (
    <ul className="timings" aria-label="Timing">
      {phasesOf(attempt).map(({ name, color, from, length }) => (
        <li key={name}>
          <span className="muted">{name}</span>
          <span className="timing-track" aria-hidden="true">
            <span
              className="timing-bar"
              style={{ left: percent(from), width: percent(length), background: `var(${color})` }}
            />
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
