/**
 * `npm run chaos -- --seconds 120 --seed 1 --rate 60`: the whole service on servers of its own,
 * under load and a schedule of faults that the seed decides, and then a ledger: exit 1 when
 * something was lost or invented, or did not drain. The ledger goes to stdout (`--json` for
 * programs), progress to stderr. Loopback only.
 *
 * `--one-by-one` lets each fault wait until the system has recovered from the one before, for the
 * times to recover; `--drain-seconds 180` is how long the rest may take to arrive.
 */
import { parseArgs } from "node:util";
import { chaosReportOf } from "./chaos/report.ts";
import { runChaos } from "./chaos/run.ts";
import { type AtEnd, progress, runToEnd } from "./run-to-end.ts";

function numberOf(name: string, text: string): number {
  const number = Number(text);
  if (number > 0) return number;
  throw new Error(`--${name}: expected a number above 0, got ${text}`);
}

async function main(atEnd: AtEnd): Promise<number> {
  const { values } = parseArgs({
    options: {
      seconds: { type: "string", default: "120" },
      seed: { type: "string", default: String(Math.ceil(Math.random() * 1_000_000)) },
      rate: { type: "string", default: "60" },
      "drain-seconds": { type: "string", default: "180" },
      "one-by-one": { type: "boolean", default: false },
      json: { type: "boolean", default: false },
    },
  });
  const result = await runChaos({
    seed: numberOf("seed", values.seed),
    durationMs: numberOf("seconds", values.seconds) * 1000,
    ratePerSecond: numberOf("rate", values.rate),
    isOneByOne: values["one-by-one"],
    drainLimitMs: numberOf("drain-seconds", values["drain-seconds"]) * 1000,
    atEnd,
    progress,
  });
  console.log(values.json ? JSON.stringify(result, undefined, 2) : chaosReportOf(result));
  return result.isPassed ? 0 : 1;
}

await runToEnd(main);
