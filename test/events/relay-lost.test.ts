import { expect } from "chai";
import { useRelayScene } from "../support/relay-scene.ts";

describe("createRelay, after a fail-over that lost events", () => {
  const scene = useRelayScene();

  it("publishes an event that has the row id of a lost one", async () => {
    await scene.addEvents(1);
    scene.start();
    await scene.untilPublished(1);
    await scene.core.sql("DELETE FROM svc.outbox");
    await scene.core.sql("DELETE FROM svc.events");
    await scene.core.sql(
      `INSERT INTO svc.events (id, resource, trigger, record_id, snapshot) OVERRIDING SYSTEM VALUE
       SELECT last_value, 'notes', 'on_create', 'other', '{}' FROM svc.events_id_seq`,
    );

    await scene.untilChecks(1);
    scene.skewMs += 1_000;

    await scene.untilPublished(2);
    expect(scene.published()).to.deep.equal(["1", "other"]);
  });
});
