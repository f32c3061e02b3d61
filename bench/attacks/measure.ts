import { type Attack, clearUp } from "./attack.ts";
import { createAttacker } from "./attacker.ts";
import type { Scene } from "./scene.ts";
import type { VictimReport } from "./victim.ts";

/** One row of the table. */
export interface Outcome {
  readonly name: string;
  /** What the attacker did, and was answered. */
  readonly cost: string;
  readonly answers: Readonly<Record<string, number>>;
  readonly before: VictimReport;
  readonly during: VictimReport;
  readonly after: VictimReport;
  readonly peakBytes: number | undefined;
  /** From the end of the attack until requests are answered as before. */
  readonly recoveryMs: number;
  /** How the service ended, and what it wrote last; undefined when it lived through it. */
  readonly death: string | undefined;
  /** Creates of the other user that were acknowledged and are not there. */
  readonly lost: number;
}

/** Has the other user work before, during and after the attack. */
export async function measure(scene: Scene, attack: Attack, durationMs: number): Promise<Outcome> {
  await attack.prepare?.(scene);
  await scene.settle();
  await scene.settleAttacker();
  const before = await scene.observe(durationMs / 2);
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
