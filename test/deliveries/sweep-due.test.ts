import { expect } from "chai";
import { never, useSweepScene } from "../support/sweep-scene.ts";
import { until } from "../support/wait.ts";

describe("createSweep, by its statements for due deliveries", () => {
  const scene = useSweepScene();

  it("reads the whole queue at first, and then from the last due time on", async () => {
    const since: (number | undefined)[] = [];
    const takeDue: typeof scene.store.takeDue = async (options) => {
      since.push(options.sinceMs);
      return scene.store.takeDue(options);
    };

    scene.start({ store: { ...scene.store, takeDue } });
    await until(() => since.length >= 2, { what: "two turns" });

    expect(since[0]).to.equal(undefined);
    // Transactions that wrote the queue before the first read may have been committed after it.
    expect(since[1]).to.be.at.least(10_000);
  });

  it("knows how long ago the event of a delivery was", async () => {
    await scene.work.addDelivery(scene.subscription);
    await scene.core.sql("UPDATE svc.events SET occurred_at = now() - interval '1 hour'");

    scene.start();
    await scene.untilStarted(1);

    const ageMs = performance.now() - (scene.started[0]?.happenedAtMs ?? 0);
    expect(ageMs).to.be.within(3_600_000, 3_700_000);
  });

  it("begins the next turn at once when a turn leaves due deliveries", async () => {
    await scene.work.addDelivery(scene.subscription);
    let taken = 0;
    const takeDue: typeof scene.store.takeDue = async (options) => {
      taken += 1;
      return { ...(await scene.store.takeDue(options)), removed: taken <= 25 ? 200 : 0 };
    };

    // A turn has 20 batches.
    scene.start({ intervalMs: never, store: { ...scene.store, takeDue } });
    await until(() => taken > 25, { what: "the second turn" });

    expect(scene.startedIds()).to.have.length(1);
  });
});
