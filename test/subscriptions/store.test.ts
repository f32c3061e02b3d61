import { expect } from "chai";
import { createSubscriptionStore } from "../../src/subscriptions/store.ts";
import { testOperator as actor } from "../support/actors.ts";
import { useCoreScene } from "../support/core-scene.ts";
import { secretBox } from "../support/work.ts";

describe("createSubscriptionStore", () => {
  const scene = useCoreScene();

  it("changes, rotates and deletes nothing of another user, and cancels none of its deliveries", async () => {
    const { work, core } = scene;
    const { sql, transact } = core;
    const store = createSubscriptionStore({ sql, transact, secretBox, maxPerUser: 5 });
    const subscription = await work.addSubscription();
    await work.addDelivery(subscription);
    const inHand = await work.addDelivery(subscription, { due: "nowhere" });
    await sql("INSERT INTO svc.flights (delivery_ids, ends_at) VALUES (ARRAY[$1::bigint], now())", [
      String(inHand.id),
    ]);
    const stored = (): Promise<readonly object[]> =>
      sql(`SELECT (SELECT json_agg(own) FROM svc.subscriptions AS own)::text AS subscriptions,
        (SELECT json_agg(own ORDER BY id) FROM svc.deliveries AS own)::text AS deliveries,
        (SELECT json_agg(own) FROM svc.delivery_queue AS own)::text AS queue`);
    const before = await stored();
    const { id } = subscription;
    const other = await work.addUser();

    const answers = [
      await store.update(id, other.id, { isActive: false }, actor),
      await store.rotate(id, other.id, { graceSeconds: 0, actor }),
      await store.delete(id, other.id, actor),
    ];

    expect(answers).to.deep.equal([undefined, undefined, false]);
    expect(await stored()).to.deep.equal(before);
  });
});
