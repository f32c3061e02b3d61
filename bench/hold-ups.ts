/**
 * `npm run holdups`: some ten minutes on two cores, on servers of its own, which it starts and removes. One user, table, resource or receiver holds
 * up the way from a commit to the receiver, while another user's 20 changes a second are delivered; the table says what that one notices. Loopback only.
 *
 * HOLDUPS_SECONDS=5 shortens each hold-up; HOLDUPS_ONLY=poison runs those with that word in their name; HOLDUPS_SCALE=1 makes them larger, 0.1
 * a tenth of that.
 */
import { bulk, dump, hanging, slow } from "./hold-ups/bursts.ts";
import { quickSizes, sizesOf } from "./hold-ups/hold-up.ts";
import { largeCreate, largeRows } from "./hold-ups/large.ts";
import { measure, type Outcome } from "./hold-ups/measure.ts";
import { lock, poison, subscriptions } from "./hold-ups/resources-held-up.ts";
import { startServers } from "./hold-ups/servers.ts";
import { phases } from "./hold-ups/phases.ts";
import { backlog, held } from "./hold-ups/waiting-deliveries.ts";
import { type AtEnd, progress, runToEnd } from "./run-to-end.ts";

const holdUps = [
  largeCreate,
  largeRows,
  subscriptions,
  backlog,
  poison,
  lock,
  held,
  slow,
  hanging,
  dump,
  bulk,
];
const calmMs = 5_000;

const megabytes = (bytes: number): string => String(Math.round(bytes / 1024 ** 2));

function failuresOf({ failures }: Outcome["victim"]): string {
  const parts = Object.entries(failures).map(([what, times]) => `${what}: ${times}`);
  return parts.length === 0 ? "0" : parts.join(", ");
}

function rowOf({ name, note, victim, peakBytes, endings, longest, deadlocks }: Outcome): string {
  const spread = (key: "p50" | "p99"): string =>
    phases.map((phase) => victim.phases[phase].latencyMs[key].toFixed(0)).join(" / ");
  const { cameMeanwhile, made } = victim.phases.during;
  const cells = [
    name,
    note,
    spread("p50"),
    spread("p99"),
    `${cameMeanwhile} of ${made}`,
    failuresOf(victim),
    victim.lost,
    victim.doubled,
    `${megabytes(peakBytes.api)} / ${megabytes(peakBytes.dispatcher)}${endings.length === 0 ? "" : `, DIED ${endings.length} times`}`,
    longest.ms.toFixed(0),
    deadlocks,
  ];
  return `| ${cells.join(" | ")} |`;
}

async function main(atEnd: AtEnd): Promise<number> {
  const holdMs = Number(process.env["HOLDUPS_SECONDS"] ?? 15) * 1000;
  const only = process.env["HOLDUPS_ONLY"] ?? "";
  const scale = process.env["HOLDUPS_SCALE"];
  const sizes = scale === undefined ? quickSizes : sizesOf(Number(scale));
  progress("starting PostgreSQL and RabbitMQ");
  const makePlace = await startServers(atEnd);
  console.log(
    "svc api and svc dispatcher in 512 MB each; the other user makes 20 changes a second. From change to receipt in ms: before / during / after.\n",
  );
  console.log(
    "| hold-up | of it | p50 | p99 | came meanwhile | refused | lost | doubled | peak MB: api / dispatcher | longest statement, ms | deadlocks |",
  );
  console.log("|---|---|---|---|---|---|---|---|---|---|---|");
  for (const [index, holdUp] of holdUps.entries()) {
    if (!holdUp.name.includes(only)) continue;
    progress(holdUp.name);
    const place = await makePlace(`held_up_${index}`);
    const outcome = await measure(holdUp, { place, sizes, durations: { calmMs, holdMs }, atEnd });
    console.log(rowOf(outcome));
    progress(`memory by ${outcome.limitKind}; longest statement: ${outcome.longest.text.slice(0, 200)}`);
    for (const ending of outcome.endings) console.error(ending);
  }
  return 0;
}

await runToEnd(main);
