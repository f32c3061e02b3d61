/**
 * `npm run chaos -- --seconds 120 --seed 1 --rate 60`: runs the whole service on private servers,
 * under load and a schedule of faults from the seed. Then it makes a ledger, and exits with 1 when
 * a change was lost or invented, or deliveries remained. The ledger goes to stdout (`--json` for
 * programs), progress to stderr. Loopback only.
 *
 * With `--one-by-one`, each fault waits until the system has recovered from the previous one, which
 * gives exact recovery times. `--drain-seconds 180` limits the time until the remaining deliveries
 * arrive.
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
