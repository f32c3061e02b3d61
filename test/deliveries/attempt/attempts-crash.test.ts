import { openSigning } from "../../../src/subscriptions/signing.ts";
import { expect } from "chai";
import { openDatabase, type Database } from "../../../src/db/client.ts";
import { createSql, type Sql } from "../../../src/db/sql.ts";
import type { Done, Reservation } from "../../../src/deliveries/admission/admission.ts";
import { createAttempts, type Attempts } from "../../../src/deliveries/attempt/attempts.ts";
import type { DeliveryInFlight } from "../../../src/deliveries/attempt/delivery-in-flight.ts";
import type { AttemptResult } from "../../../src/deliveries/delivery.ts";
import { createDeliveryStore, type DeliveryStore } from "../../../src/deliveries/store.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { inFlight } from "../../support/attempts-scene.ts";
import { migrateCore } from "../../support/core-database.ts";
import { createMemoryLog } from "../../support/http.ts";
import { startPrivatePostgres, type PrivatePostgres } from "../../support/postgres.ts";
import { until } from "../../support/wait.ts";
import { createWatchedBroker, type WatchedBroker } from "../../support/watched-broker.ts";
import { createWork, secretBox, success, type Work } from "../../support/work.ts";
import { createCoreClient } from "../../support/core-client.ts";

const free: Reservation = {
  enter: ({ begin }) => begin((() => undefined) satisfies Done),
  leave: () => undefined,
};

// The commit of an outcome does not wait for the disk: a crash of PostgreSQL can undo a write that
// this process counts as done.
describe("createAttempts, when a crash of PostgreSQL undoes a write of one delivery of a flight", () => {
  let postgres: PrivatePostgres;
  let database: Database;
  let sql: Sql;
  let work: Work;
  let store: DeliveryStore;
  let broker: WatchedBroker;
  let attempts: Attempts;
  let answers: Map<string, () => void>;
  let ids: readonly [string, string];
  let byId: ReadonlyMap<string, DeliveryInFlight>;

  before(async () => {
    // Only a commit that waits, or a checkpoint, writes the log within the test.
    postgres = await startPrivatePostgres({
      fsync: true,
      settings: { wal_writer_delay: "10s", bgwriter_lru_maxpages: "0" },
    });
    database = await openDatabase({ url: postgres.url, poolSize: 4, isEmbedded: false });
    await migrateCore(database.pool);
    sql = createSql({ pool: database.pool, isEmbedded: false });
    work = createWork(createCoreClient(database.pool));
    store = createDeliveryStore({ sql });
  });

  beforeEach(async () => {
    await work.clear();
    const subscription = await work.addSubscription();
    const [one, other] = [await work.addDelivery(subscription), await work.addDelivery(subscription)];
    ids = [String(one.id), String(other.id)];
    const taken = inFlight(await takeDue());
    await sql("CHECKPOINT");
    byId = new Map(taken.map((delivery) => [delivery.id, { ...delivery, data: Buffer.from("{}") }]));
    answers = new Map();
    broker = createWatchedBroker();
    attempts = createAttempts({
      broker,
      store,
      send: ({ headers }) =>
        new Promise((resolve) =>
          answers.set(String(headers["X-Service-Delivery"]), () =>
            resolve({ kind: "made", result: success() satisfies AttemptResult }),
          ),
        ),
      health: { note: () => undefined },
      figures: { attempted: () => undefined },
      openSigning: (sealed) => openSigning(secretBox, sealed, Date.now()),
      scheduleOf: () => ({ maxAttempts: 3, backoffMs: [60_000] }),
      jitter: 0,
      flightMs: 60_000,
      metrics: createMetrics().deliveries,
      log: createMemoryLog().log,
      onQueued: () => undefined,
      announce: () => undefined,
      onFree: () => undefined,
      random: () => 0.5,
    });
  });

  afterEach(() => broker.close());

  after(async () => {
    await database.close();
    await postgres.dispose();
  });

  const takeDue = (): ReturnType<DeliveryStore["takeDue"]> =>
    store.takeDue({ limit: 100, flightMs: 60_000, sinceMs: undefined });
  const deliveryOf = (id: string): DeliveryInFlight => byId.get(id) as DeliveryInFlight;
  const posted = (id: string): Promise<() => void> =>
    until(() => answers.get(deliveryOf(id).uuid), { what: "the POST" });
  const answer = async (id: string): Promise<void> => (await posted(id))();

  async function crash(): Promise<void> {
    await postgres.crash();
    await postgres.start();
    await until(
      () =>
        sql("SELECT 1").then(
          () => true,
          () => false,
        ),
      { what: "the database" },
    );
  }

  it("makes the delivery due when the others of its flight are written", async () => {
    const [lost, last] = ids;
    for (const id of ids) attempts.start(deliveryOf(id), free);
    await answer(lost);
    await until(async () => (await work.deliveryOf(BigInt(lost))).status === "delivered", {
      what: "the write",
    });

    await posted(last);
    await crash();
    expect(await work.deliveryOf(BigInt(lost))).to.include({ status: "pending", attempt: 0 });
    await answer(last);
    await attempts.drain();

    expect((await work.deliveryOf(BigInt(last))).status).to.equal("delivered");
    expect(await work.flights()).to.deep.equal([]);
    expect((await takeDue()).deliveries.map(({ id }) => id)).to.deep.equal([lost]);
  });

  it("makes a delivery due whose return to the queue was undone", async () => {
    const [lost, last] = ids;
    attempts.start(deliveryOf(last), free);
    await posted(last);
    attempts.putBack(deliveryOf(lost), { id: lost, delayMs: undefined });
    await until(async () => (await work.queued(BigInt(lost))) !== null, { what: "the return" });

    await crash();
    expect(await work.queued(BigInt(lost))).to.equal(null);
    await answer(last);
    await attempts.drain();

    expect(await work.flights()).to.deep.equal([]);
    expect((await takeDue()).deliveries.map(({ id }) => id)).to.deep.equal([lost]);
  });
});
