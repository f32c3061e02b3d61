import { expect } from "chai";
import { createRates } from "../../src/deliveries/admission/rates.ts";
import { deliveryMessage } from "../../src/deliveries/messages.ts";
import { never, useSweepScene } from "../support/sweep-scene.ts";
import { until } from "../support/wait.ts";

// Deliveries that a person requested; sweep.test.ts has the rest.
describe("createSweep", () => {
  const scene = useSweepScene();
  const { start, untilStarted, watchTurns } = scene;

  it("retries a manual retry soon, one after the other, and never parks it", async () => {
    let refusal: "busy" | "silent" = "silent";
    scene.admission.refuses = () => refusal;
    for (let count = 0; count < 2; count += 1)
      await scene.work.addDelivery(scene.subscription, { status: "retrying" });
    await scene.core.sql("UPDATE svc.deliveries SET updated_at = now() - interval '1000 hours'");
    await scene.core.sql("UPDATE svc.delivery_queue SET is_hurried = true");
    start({ intervalMs: 200 });
    await until(() => scene.returns.length >= 2, { what: "the returns" });

    expect(scene.returns.map(({ delayMs }) => delayMs)).to.deep.equal([1_000, 1_100]);
    refusal = "busy";
    await until(() => scene.returns.length >= 4, { what: "the next returns" });
    scene.admission.refuses = () => undefined;
    await untilStarted(2);

    expect(scene.started.map(({ trigger }) => trigger)).to.deep.equal(["manual", "manual"]);
    expect(scene.outcomes).to.deep.equal([]);
  });

  it("tries a manual retry when its rate permits it", async () => {
    await scene.core.sql("UPDATE svc.subscriptions SET rate_limit = 0.1");
    await scene.work.addDelivery(scene.subscription, { status: "retrying" });
    await scene.core.sql("UPDATE svc.delivery_queue SET is_hurried = true");
    const none = new Map([[scene.subscription.id, 0]]);
    start({ intervalMs: never, rates: { take: async () => none, waitMs: () => 9_000 } });
    await until(() => scene.returns.length > 0, { what: "the return" });

    expect(scene.returns[0]).to.include({ delayMs: 9_000, isHurried: true });
  });

  it("leaves a manual retry due when only others have slots, and takes it no more", async () => {
    scene.admission.refuses = () => "silent";
    scene.admission.isForOthers = true;
    const { id, uuid } = await scene.work.addDelivery(scene.subscription, { status: "retrying" });
    await scene.core.sql("UPDATE svc.delivery_queue SET is_hurried = true");
    const turns = watchTurns();
    const sweep = start({ intervalMs: never, store: turns.store });
    await until(async () => (await scene.work.queued(id)) !== null && scene.returns.length > 0, {
      what: "the return",
    });

    for (let turn = 0; turn < 2; turn += 1) {
      const next = turns.next(0);
      await scene.broker.publish([deliveryMessage({ id: String(id), uuid }, "retry")]);
      await next;
    }
    expect(scene.returns).to.deep.equal([
      { id: String(id), delayMs: 0, isHurried: true, uuidForOthers: uuid },
    ]);
    expect(await scene.work.queued(id)).to.include({ isHurried: true });

    scene.admission.refuses = () => undefined;
    scene.admission.isForOthers = false;
    sweep.onShares();
    await untilStarted(1);

    expect(scene.started[0]?.trigger).to.equal("manual");
  });

  it("gives a manual retry the next attempt of its rate, before those that wait for a slot", async () => {
    await scene.core.sql("UPDATE svc.subscriptions SET rate_limit = 1");
    for (let count = 0; count < 5; count += 1)
      await scene.work.addDelivery(scene.subscription, { due: "parked" });
    await scene.work.addDelivery(scene.subscription, { status: "retrying" });
    await scene.core.sql("UPDATE svc.delivery_queue SET is_hurried = true WHERE due_at IS NOT NULL");
    const rates = createRates({
      sql: scene.core.sql,
      now: () => performance.now(),
      onWait: () => undefined,
    });
    await rates.take([{ subscriptionId: scene.subscription.id, rateLimit: 1, count: 1 }]);
    start({ intervalMs: 1_500, rates });

    await untilStarted(2);

    expect(scene.started.map(({ trigger }) => trigger)).to.deep.equal(["manual", "scheduled"]);
  });
});
