import { type Attack, clearUp } from "./attack.ts";
import { createAttacker } from "./attacker.ts";
import type { Scene } from "./scene.ts";
import type { VictimReport } from "./victim.ts";

/** One row of the table. */
export interface Outcome {
  readonly name: string;
  /** Requests and answers of the attacker. */
  readonly cost: string;
  readonly answers: Readonly<Record<string, number>>;
  readonly before: VictimReport;
  readonly during: VictimReport;
  readonly after: VictimReport;
  readonly peakBytes: number | undefined;
  /** Time from the end of the attack until requests are answered as before. */
  readonly recoveryMs: number;
  /** The end of the service and its last output; undefined when it survived. */
  readonly death: string | undefined;
  /** Number of acknowledged creates of the other user that are missing. */
  readonly lost: number;
}

/**
 * Runs the other user before, during and after the attack.
 *
 * @param beforeMs Duration of the run before, with which the others are compared.
 */
export async function measure(
  scene: Scene,
  attack: Attack,
  durationMs: number,
  beforeMs = durationMs / 2,
): Promise<Outcome> {
  await attack.prepare?.(scene);
  await scene.settle();
  await scene.settleAttacker();
  const before = await scene.observe(beforeMs);
  scene.resetPeak();
  const attacker = createAttacker(scene);
  const ending = new AbortController();
  const attacking = attack.run(attacker, ending.signal);
  const during = await scene.observe(durationMs);
  ending.abort();
  attacker.close();
  await attacking;
  const peakBytes = scene.peakBytes();
  const death = scene.death();
  await scene.revive();
  const recoveryMs = await scene.settle();
  const after = await scene.observe(durationMs / 2);
  const lost = await scene.countLost([...before.created, ...during.created, ...after.created]);
  await clearUp(scene);
  const { name } = attack;
  return {
    name,
    cost: attacker.cost(),
    answers: attacker.outcomes(),
    before,
    during,
    after,
    peakBytes,
    death,
    lost,
    recoveryMs,
  };
}
