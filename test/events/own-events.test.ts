import { EventEmitter, once } from "node:events";
import { expect } from "chai";
import { createBatchedSql, type SqlOf } from "../../src/db/batched-sql.ts";
import { openDatabase, type Database } from "../../src/db/client.ts";
import { createStatementNames } from "../../src/db/text-sql.ts";
import type { Outbox, OutboxEvent } from "../../src/events/outbox.ts";
import type { RelayOptions } from "../../src/events/relay-state.ts";
import type { Relay } from "../../src/events/relay.ts";
import { until } from "../support/wait.ts";
import { never, present, useRelayScene } from "../support/relay-scene.ts";

describe("createOwnEvents", () => {
  const scene = useRelayScene();
  const { published, untilPublished } = scene;
  let database: Database;
  let writes: SqlOf<number>;
  let relay: Relay;
  let reads: number;

  before(async () => {
    database = await openDatabase({ url: scene.core.url, poolSize: 4, isEmbedded: false });
  });
  after(() => database.close());
  beforeEach(() => (reads = 0));

  /** Starts a relay that looks into the outbox once, and then when it is woken. */
  async function startRelay(overrides: Partial<RelayOptions> = {}): Promise<void> {
    const outbox: Outbox = {
      ...scene.outbox,
      async read(options) {
        const read = await scene.outbox.read(options);
        reads += 1;
        return read;
      },
    };
    const shares = {
      beat: async () => ({ name: database.name, others: [], index: 0 }),
      leave: async () => undefined,
    };
    relay = scene.start({ outbox, shares, pollIntervalMs: never, batchSize: 100, ...overrides });
    const options = { pool: database.pool, names: createStatementNames(false), keyOf: String };
    writes = createBatchedSql<number>({ ...options, kind: "writes", last: relay.ownEvents });
    await until(() => reads > 0 || !scene.broker.connected, { what: "the relay" });
  }

  const text = `INSERT INTO svc.events (resource, trigger, record_id, snapshot, previous, owner_id, traceparent)
    VALUES ($1, 'on_update', $2, $3::text::jsonb, $4::text::jsonb, $5, $6)`;
  /** Writes an event as the capture trigger does, and wakes the relay as routes do. */
  async function write(recordId: string, resource = "notes", snapshot = "{}"): Promise<void> {
    await writes(1)(text, [resource, recordId, snapshot, '{"a": 1}', null, "00-1-2-01"]);
    relay.wake();
  }

  it("publishes the event of a write without a read of the outbox, once", async () => {
    await startRelay();
    await write("1");
    await untilPublished(1);
    expect(reads).to.equal(1);

    relay.wake();
    await until(() => reads === 2, { what: "the next read" });
    expect(published()).to.deep.equal(["1"]);
  });

  it("gives the event as a read of the outbox does", async () => {
    const given: OutboxEvent[] = [];
    await startRelay({
      present: (resource, events) => {
        given.push(...events);
        return present(resource, events);
      },
    });
    await write("1", "notes", '{"n": 12345678901234567890, "text": "é"}');
    await untilPublished(1);

    const [own] = given;
    const [found] = await scene.outbox.find([own?.id ?? ""]);
    expect(own).to.deep.equal(found);
    expect(own?.previous).to.deep.equal({ a: 1 });
  });

  it("publishes the events of writes that go to the server together", async () => {
    await startRelay();
    await Promise.all([write("1"), write("2"), write("3", "papers")]);
    await untilPublished(3);
    expect([...published()].toSorted()).to.deep.equal(["1", "2", "3"]);
    expect(reads).to.equal(1);
  });

  it("publishes nothing of a write that fails, and what the others of its batch wrote", async () => {
    await startRelay();
    const results = await Promise.allSettled([write("1"), write("2", "notes", "{"), write("3")]);
    expect(results.map(({ status }) => status)).to.deep.equal(["fulfilled", "rejected", "fulfilled"]);
    await untilPublished(2);
    relay.wake();
    await until(() => reads > 1, { what: "the next read" });
    expect([...published()].toSorted()).to.deep.equal(["1", "3"]);
  });

  it("leaves large events to the relay, and wakes it", async () => {
    await startRelay();
    const large = JSON.stringify({ text: Array.from({ length: 20_000 }, (_, n) => n).join(" ") });
    await Promise.all([write("1"), write("2", "notes", large)]);
    await untilPublished(2);
    expect(published()).to.deep.equal(["1", "2"]);
    expect(reads).to.be.greaterThan(1);
  });

  it("leaves to the relay what another process is to publish", async () => {
    await startRelay({
      shares: {
        beat: async () => ({ name: "svc api other", others: [database.name], index: 0 }),
        leave: async () => undefined,
      },
    });
    await write("1");
    await until(() => reads === 2, { what: "the read of the woken relay" });
    expect(published()).to.deep.equal([]);
  });

  it("leaves to the relay an event of a resource that is being presented", async () => {
    const gate = new EventEmitter();
    const first = once(gate, "open");
    await startRelay({
      async present(resource, events) {
        if (events.some(({ recordId }) => recordId === "1")) await first;
        return present(resource, events);
      },
    });
    await write("1");
    await write("2");
    await write("3", "papers");
    await untilPublished(1);
    expect(published()).to.deep.equal(["3"]);
    gate.emit("open");
    await untilPublished(2);
    relay.wake();
    await untilPublished(3);
    expect(published()).to.deep.equal(["3", "1", "2"]);
  });

  it("reads nothing within writes while events are gathered, or nothing can be published", async () => {
    await startRelay();
    expect(relay.ownEvents.next()).to.include({ name: "svc_own_events" });

    scene.broker.connected = false;
    expect(relay.ownEvents.next()).to.equal(undefined);
    scene.broker.connected = true;

    for (let n = 0; n < 40; n += 1) await write(String(n));
    expect(relay.ownEvents.next()).to.equal(undefined);
    await untilPublished(40);
    expect(new Set(published()).size).to.equal(40);
    scene.skewMs += 1_000;
    expect(relay.ownEvents.next()).to.include({ name: "svc_own_events" });

    await scene.stop();
    expect(relay.ownEvents.next()).to.equal(undefined);
  });

  it("publishes once what a read of the outbox has found in the meantime", async () => {
    await startRelay();
    await write("1");
    await untilPublished(1);
    const [row] = await scene.core.sql<{ id: string; transaction: string }>(
      "SELECT event_id AS id, transaction_id AS transaction FROM svc.outbox",
    );
    const event = (await scene.outbox.find([row?.id ?? ""]))[0];
    const { snapshot, previous, uuid = "" } = event ?? {};
    const json = [JSON.stringify(snapshot), JSON.stringify(previous)];
    const columns = [uuid, "notes", "on_update", "1", null, ...json, null, ""];
    relay.ownEvents.onRows([[row?.id ?? "", row?.transaction ?? "", "10", "1", ...columns]], 1);
    relay.wake();
    relay.wake();
    await until(() => reads === 2, { what: "the read of the second wake" });
    expect(published()).to.deep.equal(["1"]);
  });
});
