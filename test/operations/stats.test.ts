import { expect } from "chai";
import { readStats } from "../../src/operations/stats.ts";
import { useCoreScene } from "../support/core-scene.ts";

/** The fields that the tests read. */
interface Shown {
  readonly of: string;
  readonly now: string;
  readonly rates: Readonly<Record<"hour" | "day" | "week", Series>>;
  readonly backlog: Readonly<Record<string, unknown>>;
  readonly receivers: readonly Readonly<Record<string, unknown>>[] | null;
  readonly processes: readonly Readonly<Record<string, unknown>>[] | null;
}

interface Series {
  readonly step_seconds: number;
  readonly from: string;
  readonly changes: readonly number[];
  readonly deliveries: readonly number[];
  readonly failures: readonly number[];
}

const sum = (counts: readonly number[]): number => counts.reduce((all, one) => all + one, 0);

/** Returns `date_trunc` of the current time, less `steps` steps. */
const ago = (width: string, steps: number): string =>
  `date_trunc('${width}', now(), 'UTC') - interval '${steps} ${width}'`;

describe("readStats", () => {
  const scene = useCoreScene();

  const read = async (userId: number, isAdmin = false, showsWebhooks = true): Promise<Shown> => {
    const stats = await readStats(scene.core.sql, { caller: { id: userId, isAdmin }, showsWebhooks });
    return stats as unknown as Shown;
  };
  const figures = (rows: string): Promise<unknown> =>
    scene.core.sql(`INSERT INTO svc.figures VALUES ${rows}`);
  beforeEach(() => scene.core.sql("DELETE FROM svc.figures"));

  it("groups figures by minute, hour and week, the newest last, with zeros for gaps", async () => {
    await figures(
      `(7, 'minute', ${ago("minute", 0)}, 1, 2, 3), (7, 'minute', ${ago("minute", 59)}, 4, 0, 0), (7, 'minute', ${ago("minute", 60)}, 99, 0, 0),
       (7, 'hour', ${ago("hour", 0)}, 5, 6, 7), (7, 'hour', ${ago("hour", 23)}, 8, 0, 0), (7, 'hour', ${ago("hour", 24)}, 16, 0, 0),
       (7, 'hour', ${ago("hour", 167)}, 32, 0, 0), (7, 'hour', ${ago("hour", 168)}, 99, 0, 0),
       (0, 'minute', ${ago("minute", 0)}, 1000, 0, 0), (8, 'minute', ${ago("minute", 0)}, 500, 0, 0)`,
    );

    const { of, now, rates } = await read(7);
    const { hour, day, week } = rates;

    expect(of).to.equal("own");
    expect([hour, day, week].map(({ step_seconds: step, changes }) => [step, changes.length])).to.deep.equal([
      [60, 60],
      [3600, 24],
      [3600, 168],
    ]);
    expect([hour.changes.at(-1), hour.deliveries.at(-1), hour.failures.at(-1)]).to.deep.equal([1, 2, 3]);
    expect([hour.changes[0], sum(hour.changes)]).to.deep.equal([4, 5]);
    expect([day.changes[0], day.changes.at(-1), sum(day.changes)]).to.deep.equal([8, 5, 13]);
    expect([week.changes[0], sum(week.changes)]).to.deep.equal([32, 61]);
    for (const { step_seconds: step, from, changes } of [hour, day, week]) {
      const end = Date.parse(from) + step * 1_000 * changes.length;
      expect(end - Date.parse(now)).to.be.within(0, step * 1_000);
    }
  });

  it("shows an admin the figures of all users", async () => {
    await figures(
      `(0, 'minute', ${ago("minute", 0)}, 1000, 0, 0), (7, 'minute', ${ago("minute", 0)}, 1, 0, 0)`,
    );

    const { of, rates } = await read(7, true);

    expect(of).to.equal("all");
    expect(sum(rates.hour.changes)).to.equal(1000);
  });

  it("counts waiting deliveries: of all users for an admin, of one user for another", async () => {
    const [mine, other] = [await scene.work.addSubscription(), await scene.work.addSubscription()];
    const [hourAgo, dayAgo] = [new Date(Date.now() - 3_600_000), new Date(Date.now() - 24 * 3_600_000)];
    const [createdAt, updatedAt] = [dayAgo, dayAgo];
    await scene.work.addDelivery(mine, { status: "retrying", createdAt, updatedAt, due: hourAgo });
    await scene.work.addDelivery(mine, { due: "parked" });
    const due = new Date(Date.now() + 60_000);
    await scene.work.addDelivery(mine, { status: "retrying", createdAt, updatedAt, due });
    await scene.work.addDelivery(mine, { status: "delivered" });
    await scene.work.addDelivery(other);
    await scene.work.addEvent();

    const [own, all] = [await read(mine.userId), await read(mine.userId, true)];

    expect(own.backlog).to.deep.include({
      events: null,
      deliveries: 2,
      scheduled: 1,
      held: 0,
      is_estimate: false,
    });
    for (const { backlog } of [own, all])
      expect(Date.parse(String(backlog["oldest_delivery_at"]))).to.equal(hourAgo.getTime());
    expect(all.backlog).to.deep.include({ events: 1, deliveries: 3, scheduled: 1, held: 0 });
    expect(Date.parse(String(all.backlog["oldest_event_at"]))).to.be.closeTo(Date.now(), 60_000);
  });

  it("names receivers that fail, are off or wait, the worst first, with time and reason", async () => {
    const user = await scene.work.addUser();
    const add = (url: string, more = {}): ReturnType<typeof scene.work.addSubscription> =>
      scene.work.addSubscription({ userId: user.id, url, ...more });
    const failing = await add("https://user:secret@failing.example.com/hook?token=secret");
    const gone = await add("https://gone.example.com/hook", { isActive: false, disabledReason: "gone" });
    const waiting = await add("https://waiting.example.com/hook");
    const paused = await add("https://paused.example.com/hook", { isActive: false });
    await add("https://well.example.com/hook");
    await scene.core.sql(
      "UPDATE svc.subscription_state SET failing_since = now() - interval '2 hours', last_success_at = NULL WHERE subscription_id = $1",
      [failing.id],
    );
    await scene.work.addDelivery(failing, {
      status: "retrying",
      attempt: 1,
      lastError: "The receiver answered 500.",
    });
    await scene.work.addDelivery(waiting, { due: "parked" });

    for (const isAdmin of [false, true]) {
      const { receivers } = await read(user.id, isAdmin);
      const shown = receivers?.map(({ since, ...rest }) => ({ ...rest, hours: hoursSince(since) }));

      expect(shown, `admin: ${isAdmin}`).to.deep.equal([
        {
          webhook_id: failing.id,
          user_id: user.id,
          receiver: "https://failing.example.com",
          resource: failing.resource,
          state: "failing",
          reason: "The receiver answered 500.",
          waiting: 1,
          hours: 2,
        },
        {
          webhook_id: gone.id,
          user_id: user.id,
          receiver: "https://gone.example.com",
          resource: gone.resource,
          state: "off",
          reason: "gone",
          waiting: 0,
          hours: 0,
        },
        {
          webhook_id: waiting.id,
          user_id: user.id,
          receiver: "https://waiting.example.com",
          resource: waiting.resource,
          state: "waiting",
          reason: "no_slot",
          waiting: 1,
          hours: 0,
        },
        {
          webhook_id: paused.id,
          user_id: user.id,
          receiver: "https://paused.example.com",
          resource: paused.resource,
          state: "off",
          reason: "owner",
          waiting: 0,
          hours: 0,
        },
      ]);
    }
    expect((await read(user.id + 1)).receivers).to.deep.equal([]);
    expect((await read(user.id, false, false)).receivers).to.equal(null);
  });

  it("shows an admin the live processes, with version and configuration", async () => {
    await scene.core.sql("DELETE FROM svc.processes");
    await scene.core.sql(
      `INSERT INTO svc.processes (id, program, host, pid, configuration, reload_faults, version, seen_at) VALUES
         (gen_random_uuid(), 'api', 'a', 1, 'abc', '{}', '1.2.3', now()),
         (gen_random_uuid(), 'dispatcher', 'b', 2, 'abd', '{"x.yaml:1:1: bad"}', NULL, now()),
         (gen_random_uuid(), 'api', 'dead', 3, 'abc', '{}', '1.2.3', now() - interval '1 minute')`,
    );

    const { processes } = await read(1, true);

    expect(
      processes?.map(({ program, version, configuration, reload_faults: faults }) => ({
        program,
        version,
        configuration,
        faults,
      })),
    ).to.deep.equal([
      { program: "api", version: "1.2.3", configuration: "abc", faults: [] },
      { program: "dispatcher", version: null, configuration: "abd", faults: ["x.yaml:1:1: bad"] },
    ]);
    expect((await read(1)).processes).to.equal(null);
  });
});

function hoursSince(time: unknown): number {
  return Math.floor((Date.now() + 1_000 - Date.parse(String(time))) / 3_600_000);
}
