import { Pool } from "pg";
import { createSeal } from "../../src/broker/seal.ts";
import { queues } from "../../src/broker/topology.ts";
import type { Presented } from "../../src/events/event-presenter.ts";
import type { NoticeListener } from "../../src/db/notices.ts";
import { createSql } from "../../src/db/sql.ts";
import { createOutbox, type Outbox } from "../../src/events/outbox.ts";
import { createRelayShares } from "../../src/events/relay-shares.ts";
import type { RelayOptions } from "../../src/events/relay-state.ts";
import { createRelay } from "../../src/events/relay.ts";
import type { Worker } from "../../src/kit/worker.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import type { Mutable } from "./core-scene.ts";
import { until } from "./wait.ts";
import { useWorkerScene, type WorkerScene } from "./worker-scene.ts";

/** Exceeds every test, so that only a wake ends such a wait. */
export const never = 600_000;
export const requeueAfterMs = 60_000;
/** Longest time between two checks of the events in flight. */
const checkMs = 1_000;
export const seal = createSeal(Buffer.alloc(32, 1));

export const presented = (data: unknown): Presented => ({ kind: "presented", data });
/** Presents every event as its snapshot. */
export const present: RelayOptions["present"] = async (_, events) => ({
  kind: "each",
  answers: events.map(({ snapshot }) => presented(snapshot)),
});
/** Returns the numbers from 1 on, as texts. */
export const numbers = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => String(index + 1));

/** A relay with a clock, an outbox and a broker that a test can watch and change. */
interface RelayScene extends WorkerScene {
  /** Offset of the relay's clock. */
  skewMs: number;
  /** Time at which the real clock is stopped; undefined while it runs. */
  stoppedAtMs: number | undefined;
  readonly outbox: Outbox;
  readonly start: (overrides?: Partial<RelayOptions>) => Worker;
  /** Gives the relay the details of messages of a transaction, as the capture sends them. */
  readonly announce: (...details: readonly string[]) => void;
  /** Adds events whose record ids are the numbers from 1 on. */
  readonly addEvents: (count: number, resource?: string, ownerId?: string) => Promise<unknown>;
  /** Removes events from the outbox as soon as they are published, like the fan-out. */
  readonly fanOut: () => Promise<unknown>;
  /** Returns the record ids that were given to the broker, in order. */
  readonly published: () => readonly string[];
  readonly untilPublished: (count: number) => Promise<unknown>;
  readonly untilLine: (name: string) => Promise<Record<string, unknown>>;
  /** Waits for reads of the outbox. */
  readonly untilTurns: (count: number) => Promise<unknown>;
  /** Returns the number of checks of the events in flight. */
  readonly checks: () => number;
  /** Waits for checks of the events in flight, while the clock advances. */
  readonly untilChecks: (count: number) => Promise<unknown>;
}

/** Registers the hooks of the surrounding `describe`. */
export function useRelayScene(): RelayScene {
  const realNow = performance.now.bind(performance);
  let pool: Pool;
  let reads = 0;
  let checks = 0;
  let announce: NoticeListener | undefined;
  const scene: Mutable<RelayScene> = Object.assign(useWorkerScene() as RelayScene, {
    skewMs: 0,
    stoppedAtMs: undefined,
    start(overrides: Partial<RelayOptions> = {}) {
      const relay = createRelay({
        outbox: counted(),
        shares: createRelayShares({ sql: scene.core.sql, name: "svc", resources: ["notes", "papers"] }),
        resources: ["notes", "papers"],
        present,
        broker: scene.broker,
        notices: { listen: (listener) => ((announce = listener), () => (announce = undefined)) },
        seal,
        log: scene.log,
        metrics: createMetrics().events,
        pollIntervalMs: 5,
        batchSize: 5,
        requeueAfterMs,
        ...overrides,
      });
      scene.run(relay);
      return relay;
    },
    announce: (...details: readonly string[]) => announce?.(details),
    addEvents: (count: number, resource = "notes", ownerId: string | null = null) =>
      scene.core.sql(
        `INSERT INTO svc.events (resource, trigger, record_id, owner_id, snapshot)
         SELECT $2, 'on_create', n, $3, jsonb_build_object('n', n) FROM generate_series(1, $1::int) AS n ORDER BY n`,
        [count, resource, ownerId],
      ),
    fanOut: () =>
      scene.broker.consume({
        queue: queues.fanout,
        prefetch: 1_000,
        onMessage: (message) =>
          void scene.core
            .sql("DELETE FROM svc.outbox WHERE event_id = $1", [message.headers["x-svc-id"]])
            .then(() => message.ack()),
      }),
    published: () =>
      scene.broker.published.map(
        ({ body }) => (JSON.parse(body.toString()) as { record_id: string }).record_id,
      ),
    untilPublished: (count: number) =>
      until(() => scene.broker.published.length >= count, {
        what: `${count} messages`,
        // Nearly the time of a test: a busy machine took 10 s for 1,503 of them.
        timeoutMs: 50_000,
      }),
    untilLine: (name: string) =>
      until(() => scene.lines.find(({ event }) => event === name), { what: `a line ${name}` }),
    untilTurns(count: number) {
      const goal = reads + count;
      return until(() => reads >= goal, { what: `${count} turns` });
    },
    checks: () => checks,
    untilChecks(count: number) {
      const goal = checks + count;
      let seen = checks;
      let leftMs = checkMs;
      return until(
        () => {
          // Advances only as far as the next check needs: on a slow machine, events in flight would
          // otherwise count as lost.
          if (checks > seen) [seen, leftMs] = [checks, checkMs];
          if (leftMs > 0) [scene.skewMs, leftMs] = [scene.skewMs + 100, leftMs - 100];
          return checks >= goal;
        },
        { what: `${count} checks`, timeoutMs: never },
      );
    },
  });

  function counted(): Outbox {
    return {
      ...scene.outbox,
      waiting(ids) {
        checks += 1;
        return scene.outbox.waiting(ids);
      },
      read(options) {
        reads += 1;
        return scene.outbox.read(options);
      },
    };
  }

  before(() => {
    performance.now = () => (scene.stoppedAtMs ?? realNow()) + scene.skewMs;
    // One connection: an answer of a second session would make the relay read everything again.
    pool = new Pool({ connectionString: scene.core.url, max: 1 });
    pool.on("error", () => undefined);
    scene.outbox = createOutbox({
      sql: createSql({ pool, isEmbedded: false }),
      shownAsCaptured: ["papers"],
    });
  });
  beforeEach(() => {
    scene.stoppedAtMs = undefined;
  });
  after(async () => {
    performance.now = realNow;
    await pool.end();
  });
  return scene;
}
