import { expect } from "chai";
import { queues } from "../../src/broker/topology.ts";
import { groupBy } from "../../src/kit/group-by.ts";
import { useRelayScene } from "../support/relay-scene.ts";
import { until } from "../support/wait.ts";

describe("createRelay, of costly resources", () => {
  const scene = useRelayScene();
  const { start, addEvents, fanOut, published, untilPublished, untilTurns } = scene;
  const routingKeys = (): readonly string[] => scene.broker.published.map(({ routingKey }) => routingKey);
  /** Returns the numbers of messages of a resource, by owner. */
  const ownersOf = (resource: string): ReadonlyMap<unknown, number> => {
    const own = scene.broker.published.filter(({ routingKey }) => routingKey.startsWith(`${resource}.`));
    const groups = groupBy(own, ({ headers }) => headers?.["x-svc-owner"]);
    return new Map([...groups].map(([owner, messages]) => [owner, messages.length]));
  };

  it("leaves as many of the 200 places of a costly resource free as an owner has, and other room too", async () => {
    await addEvents(1_500, "papers", "1");
    start({ costly: ["papers"], batchSize: 500 });
    await untilPublished(100);
    await addEvents(3, "notes");
    await addEvents(60, "papers", "2");
    await until(() => ownersOf("papers").get("2") === 50, { what: "those of another owner" });
    await until(() => routingKeys().includes("notes.on_create"), { what: "those of another resource" });
    await untilTurns(5);
    expect(ownersOf("papers")).to.deep.equal(
      new Map([
        ["1", 100],
        ["2", 50],
      ]),
    );

    await fanOut();
    await untilPublished(1_563);
    expect(new Set(scene.broker.published.map(({ messageId }) => messageId)).size).to.equal(1_563);
  });

  it("continues with an owner's events left over while many of its costly events are not fanned out", async () => {
    await addEvents(100, "papers", "1");
    await addEvents(150, "notes", "1");
    const text = "DELETE FROM svc.outbox WHERE event_id = $1 AND resource = 'notes'";
    await scene.broker.consume({
      queue: queues.fanout,
      prefetch: 1_000,
      onMessage: (message) =>
        void scene.core.sql(text, [message.headers["x-svc-id"]]).then(() => message.ack()),
    });
    start({ costly: ["papers"], batchSize: 100 });

    await until(() => new Set(routingKeys()).size === 2 && new Set(published()).size === 150, {
      what: "all notes",
    });
    expect(await scene.core.sql("SELECT FROM svc.outbox WHERE resource = 'papers'")).to.have.length(100);
  });
});
