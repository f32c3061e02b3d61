/**
 * `npm run attack`: about four minutes on two cores, on private servers, which it starts and
 * removes. One hostile user attacks `svc api`, which has the memory of a container, while another
 * user works. The table shows the other user's latency and failures. Loopback only.
 *
 * ATTACK_SECONDS=2 shortens each attack. ATTACK_ONLY=search,batches runs the attacks with one of
 * these words in their name.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { setPriority } from "node:os";
import { startPrivatePostgres } from "../test/support/postgres.ts";
import { startPrivateRabbitMq } from "../test/support/rabbitmq.ts";
import { attacks } from "./attacks/attacks.ts";
import { measure, type Outcome } from "./attacks/measure.ts";
import { createScene } from "./attacks/scene.ts";
import { countsText, markdownRow, megabytes } from "./markdown.ts";
import { containerBytes } from "./memory-limit.ts";
import { createYardstick } from "./attacks/yardstick.ts";
import { type AtEnd, progress, runToEnd } from "./run-to-end.ts";

function rowOf({ name, cost, before, during, after, peakBytes, death, lost, recoveryMs }: Outcome): string {
  const p99 = [before, during, after].map(({ latencyMs }) => latencyMs.p99.toFixed(0)).join(" / ");
  return markdownRow([
    name,
    cost,
    p99,
    countsText(during.failures) || "0",
    lost,
    megabytes(peakBytes ?? Number.NaN),
    death === undefined ? `${(recoveryMs / 1000).toFixed(1)} s` : "DIED",
  ]);
}

/** Returns whether a log line has the cause of a failed request, other than an overload. */
const isCause = (line: string): boolean => line.includes('"request failed"');

/**
 * Gives this session the lowest priority, because a real attacker has a separate machine. Linux
 * divides the processors among sessions first. Each server here has its own session, so the
 * priority of this process alone would change nothing. At the end, the session of a terminal gets
 * its priority back.
 */
function leaveProcessorsToOthers(atEnd: AtEnd): void {
  setPriority(19);
  const ofSession = "/proc/self/autogroup";
  if (!existsSync(ofSession)) return;
  const [, before = "0"] = /nice (-?\d+)/.exec(readFileSync(ofSession, "utf8")) ?? [];
  atEnd(() => writeFileSync(ofSession, before));
  writeFileSync(ofSession, "19");
}

async function main(atEnd: AtEnd): Promise<number> {
  const durationMs = Number(process.env["ATTACK_SECONDS"] ?? 8) * 1000;
  const only = (process.env["ATTACK_ONLY"] ?? "").split(",");
  progress("starting PostgreSQL and RabbitMQ");
  const postgres = await startPrivatePostgres();
  atEnd(() => postgres.dispose());
  const rabbitMq = await startPrivateRabbitMq();
  atEnd(() => rabbitMq.dispose());
  const scene = await createScene({ databaseUrl: postgres.url, amqpUrl: rabbitMq.url });
  atEnd(() => scene.dispose());
  await scene.observe(2000);
  const yardstick = createYardstick(atEnd);
  leaveProcessorsToOthers(atEnd);

  console.log(
    `svc api in ${megabytes(containerBytes)} MB (${scene.limitKind}); the other user sends 50 requests a second.\n`,
  );
  console.log(
    "| attack | the attacker's requests | p99 of the other user, ms: before / during / after | its failures | lost | peak MB | recovered after |",
  );
  console.log("|---|---|---|---|---|---|---|");
  let printed = 0;
  for (const attack of [yardstick, ...attacks].filter(({ name }) =>
    only.some((part) => name.includes(part)),
  )) {
    progress(attack.name);
    const outcome = await measure(scene, attack, durationMs);
    console.log(rowOf(outcome));
    progress(outcome.death ?? scene.memoryUsage());
    const log = scene.log();
    const causes = log.slice(printed).split("\n").filter(isCause);
    for (const cause of causes) progress(cause);
    printed = log.length;
  }
  return 0;
}

await runToEnd(main);
