import { expect } from "chai";
import { flightMs, useStoreScene } from "../support/store-scene.ts";
import { inSeconds } from "../support/work.ts";

// Deliveries of subscriptions that are gone; store.test.ts has the rest.
describe("createDeliveryStore", () => {
  const scene = useStoreScene();

  const takeDue = (): Promise<unknown> => scene.store.takeDue({ limit: 100, flightMs, sinceMs: undefined });

  const findOrphaned = async (): Promise<readonly number[]> =>
    (await scene.store.findOrphaned({ after: 0, limit: 10 })).ids;

  describe("cancelOrphans and findOrphaned", () => {
    it("cancel waiting deliveries and those in flight of a deleted subscription, and no others", async () => {
      const inHand = await scene.work.addDelivery(scene.subscription);
      await takeDue();
      const waiting = [
        await scene.work.addDelivery(scene.subscription, { due: "parked" }),
        await scene.work.addDelivery(scene.subscription, { due: inSeconds(60) }),
      ];
      const finished = await scene.work.addDelivery(scene.subscription, { status: "delivered" });
      const other = await scene.work.addDelivery(await scene.work.addSubscription());
      await takeDue();
      expect(await findOrphaned()).to.deep.equal([]);
      await scene.core.sql("DELETE FROM svc.subscriptions WHERE id = $1", [scene.subscription.id]);

      expect(await findOrphaned()).to.deep.equal([scene.subscription.id]);
      expect(await scene.store.cancelOrphans({ subscriptionId: scene.subscription.id, limit: 1 })).to.equal(
        1,
      );
      expect(await scene.store.cancelOrphans({ subscriptionId: scene.subscription.id, limit: 10 })).to.equal(
        1,
      );

      for (const { id } of [inHand, ...waiting]) {
        expect(await scene.work.deliveryOf(id)).to.include({
          status: "cancelled",
          lastError: "The subscription was deleted.",
        });
        expect(await scene.work.queued(id)).to.equal(null);
      }
      for (const { id, status } of [finished, other])
        expect(await scene.work.deliveryOf(id)).to.include({ status });
      expect(await findOrphaned()).to.deep.equal([]);
    });

    it("look up the requested number of subscriptions, and then the next", async () => {
      const others = [await scene.work.addSubscription(), await scene.work.addSubscription()];
      for (const one of [scene.subscription, ...others]) await scene.work.addDelivery(one);
      const [kept, gone] = others.map(({ id }) => id);
      await scene.core.sql("DELETE FROM svc.subscriptions WHERE id = $1", [gone]);

      expect(await scene.store.findOrphaned({ after: 0, limit: 2 })).to.deep.equal({ ids: [], last: kept });
      expect(await scene.store.findOrphaned({ after: kept ?? 0, limit: 2 })).to.deep.equal({
        ids: [gone],
        last: undefined,
      });
    });
  });
});
