import { expect } from "chai";
import { useRelayScene } from "../support/relay-scene.ts";
import { until } from "../support/wait.ts";

// What a relay asks of the outbox; relay.test.ts has the rest.
describe("createRelay", () => {
  const scene = useRelayScene();
  const { start, addEvents, untilPublished } = scene;

  it("does not pass the ids of events in flight that a read cannot find", async () => {
    const { outbox } = scene;
    let known: readonly string[] = [];
    start({
      outbox: {
        ...outbox,
        read(options) {
          known = options.known;
          return outbox.read(options);
        },
      },
    });
    for (let count = 1; count <= 3; count += 1) {
      await addEvents(1);
      await untilPublished(count);
    }

    // The last transaction is where the next scan begins.
    await until(() => known.length <= 1, { what: "a read without the earlier events" });
    expect(await scene.core.sql("SELECT event_id FROM svc.outbox")).to.have.length(3);
  });
});
