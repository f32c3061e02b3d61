import { expect } from "chai";
import { readDeliveryBacklog } from "../../src/deliveries/delivery-backlog.ts";
import { useCoreScene } from "../support/core-scene.ts";

describe("readDeliveryBacklog", () => {
  const scene = useCoreScene();
  const hourAgo = new Date(Date.now() - 3_600_000);

  it("counts the age of a delivery that waits for a slot, but not for a receiver that fails", async () => {
    const failing = await scene.work.addSubscription();
    await scene.core.prisma.subscriptionState.upsert({
      where: { subscriptionId: failing.id },
      create: { subscriptionId: failing.id, failingSince: hourAgo },
      update: { failingSince: hourAgo },
    });
    await scene.work.addDelivery(failing, { due: "parked", updatedAt: hourAgo });

    const ofFailing = await readDeliveryBacklog(scene.core.sql);
    const fine = await scene.work.addSubscription();
    await scene.work.addDelivery(fine, { due: "parked", updatedAt: new Date(Date.now() - 60_000) });
    const ofBoth = await readDeliveryBacklog(scene.core.sql);

    expect(ofFailing).to.include({ due: 1, oldestDueMs: null });
    expect(ofBoth.due).to.equal(2);
    expect(ofBoth.oldestDueMs).to.be.within(59_000, 600_000);
  });

  it("counts the age of a retry from its due time, not from its last attempt", async () => {
    const subscription = await scene.work.addSubscription();
    const due = new Date(Date.now() - 60_000);
    await scene.work.addDelivery(subscription, { status: "retrying", due, updatedAt: hourAgo });

    const { oldestDueMs } = await readDeliveryBacklog(scene.core.sql);

    expect(oldestDueMs).to.be.within(59_000, 600_000);
  });

  it("counts no age of a delivery that waits for the rate limit of its webhook, which its user has set", async () => {
    const limited = await scene.work.addSubscription({ rateLimit: 0.1 });
    await scene.work.addDelivery(limited, { due: "parked", updatedAt: hourAgo });

    expect(await readDeliveryBacklog(scene.core.sql)).to.include({ due: 1, oldestDueMs: null });
  });
});
