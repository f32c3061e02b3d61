import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { useStoreScene } from "../support/store-scene.ts";

// Concurrent changes to an event; store.test.ts has the rest.
describe("createDeliveryStore, insert", () => {
  const scene = useStoreScene();
  const { newDelivery, insert } = scene;

  it("writes a portion of an event's deliveries after another fan-out of the event has failed", async () => {
    const event = await scene.work.addEvent();
    const [first, last] = [
      newDelivery(event),
      newDelivery(event, { subscriptionId: scene.subscription.id + 1 }),
    ];
    const other = await scene.core.database.pool.connect();
    try {
      await other.query("BEGIN");
      await other.query("SELECT FROM svc.outbox FOR UPDATE");
      const portion = insert([event], [first], false);
      // Time in which it could skip the event.
      await Promise.race([portion, sleep(200)]);
      await other.query("ROLLBACK");
      await portion;
      await insert([event], [last]);
    } finally {
      other.release();
    }

    expect((await scene.work.deliveries()).map(({ uuid }) => uuid)).to.have.members([first.uuid, last.uuid]);
    expect(await scene.work.outbox()).to.deep.equal([]);
  });

  it("makes nothing of an event that the database lost in a crash, and keeps the one that got its id", async () => {
    const event = await scene.work.addEvent();
    const lost = { ...event, uuid: randomUUID() };

    expect((await insert([lost], [newDelivery(lost)])).ids.size).to.equal(0);
    expect(await scene.work.outbox()).to.deep.equal([event.id]);
  });

  it("does not wait for another dispatcher that handles the event, and leaves the event to it", async () => {
    const event = await scene.work.addEvent();
    const other = await scene.core.database.pool.connect();
    try {
      await other.query("BEGIN");
      await other.query("DELETE FROM svc.outbox WHERE event_id = $1", [String(event.id)]);

      expect((await insert([event], [newDelivery(event)])).ids.size).to.equal(0);
      await other.query("ROLLBACK");
    } finally {
      other.release();
    }
    expect((await insert([event], [newDelivery(event)])).ids.size).to.equal(1);
  });
});
