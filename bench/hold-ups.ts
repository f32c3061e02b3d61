/**
 * `npm run holdups`: about ten minutes on two cores, on private servers, which it starts and
 * removes. One user, table, resource or receiver delays deliveries, while another user's 20 changes
 * a second are delivered. The table shows the other user's latency and failures. Loopback only.
 *
 * HOLDUPS_SECONDS=5 shortens each hold-up. HOLDUPS_ONLY=poison runs those with that word in their
 * name. HOLDUPS_SCALE=1 is the full size, 0.1 a tenth of it.
 */
import { quickSizes, sizesOf } from "./hold-ups/hold-up.ts";
import { measure } from "./hold-ups/measure.ts";
import { startServers } from "./hold-ups/servers.ts";
import { holdUpRow, holdUps, holdUpTable } from "./hold-ups/table.ts";
import { type AtEnd, progress, runToEnd } from "./run-to-end.ts";

const calmMs = 5_000;

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
  console.log(holdUpTable([]));
  for (const [index, holdUp] of holdUps.entries()) {
    if (!holdUp.name.includes(only)) continue;
    progress(holdUp.name);
    const place = await makePlace(`held_up_${index}`);
    const outcome = await measure(holdUp, { place, sizes, durations: { calmMs, holdMs }, atEnd });
    console.log(holdUpRow(outcome));
    progress(`memory by ${outcome.limitKind}; longest statement: ${outcome.longest.text.slice(0, 200)}`);
    for (const ending of outcome.endings) console.error(ending);
  }
  return 0;
}

await runToEnd(main);
