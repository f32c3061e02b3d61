import { expect } from "chai";
import { createFigures, forgetOld, type Figures } from "../../src/deliveries/figures.ts";
import { useCoreScene } from "../support/core-scene.ts";
import { createMemoryLog } from "../support/http.ts";
import { until } from "../support/wait.ts";

interface Row extends Record<string, unknown> {
  readonly user_id: number;
  readonly width: string;
  readonly changes: number;
  readonly deliveries: number;
  readonly failures: number;
}

const row = (userId: number, width: string, counts: readonly number[]): Row => ({
  user_id: userId,
  width,
  changes: counts[0] ?? 0,
  deliveries: counts[1] ?? 0,
  failures: counts[2] ?? 0,
});

describe("createFigures", () => {
  const scene = useCoreScene();
  let stop: AbortController;
  let running: Promise<void> | undefined;
  let statements: string[];
  /** Number of next statements that fail. */
  let faults: number;
  /** The statement that fails, counted from 1. */
  let faultAt: number | undefined;

  beforeEach(async () => {
    await scene.core.sql("DELETE FROM svc.figures");
    stop = new AbortController();
    statements = [];
    faults = 0;
    faultAt = undefined;
  });
  afterEach(async () => {
    stop.abort();
    await running;
  });

  const open = (intervalMs = 10): Figures => {
    const figures = createFigures({
      async sql(text, values) {
        statements.push(text);
        if (faults-- > 0 || statements.length === faultAt) throw new Error("no connection");
        return scene.core.sql(text, values);
      },
      log: createMemoryLog().log,
      drained: () => Promise.resolve(),
      intervalMs,
    });
    running = figures.run(stop.signal);
    return figures;
  };
  const sums = (): Promise<readonly Row[]> =>
    scene.core.sql<Row>(
      `SELECT user_id, width, sum(changes)::int AS changes, sum(deliveries)::int AS deliveries, sum(failures)::int AS failures
       FROM svc.figures GROUP BY user_id, width ORDER BY user_id, width`,
    );
  const written = (count: number): Promise<unknown> =>
    until(async () => (await sums()).find(({ user_id: id, changes }) => id === 0 && changes >= count), {
      what: `${count} changes`,
    });

  it("adds up for each user and for all, by minute and hour", async () => {
    const figures = open();
    figures.changed(["7", null, "no user", "9999999999"]);
    figures.attempted(7, true);
    figures.attempted(8, false);
    await written(4);
    figures.changed(["7"]);
    figures.attempted(8, false);
    await written(5);

    expect(await sums()).to.deep.equal([
      row(0, "hour", [5, 1, 2]),
      row(0, "minute", [5, 1, 2]),
      row(7, "hour", [2, 1, 0]),
      row(7, "minute", [2, 1, 0]),
      row(8, "hour", [0, 0, 2]),
      row(8, "minute", [0, 0, 2]),
    ]);
  });

  it("takes one statement for all counts since the last one, and none without any", async () => {
    const figures = open(50);
    for (let count = 0; count < 10_000; count += 1) figures.attempted(1 + (count % 400), true);
    figures.changed(["1"]);
    await written(1);

    expect(statements.filter((text) => text.includes("INSERT"))).to.have.length(1);
    expect((await sums())[0]?.deliveries).to.equal(10_000);
  });

  it("writes those of more than 500 users in portions, and after a failure only the others again", async () => {
    const figures = open(50);
    faultAt = 2;
    for (let user = 1; user <= 1_100; user += 1) figures.attempted(user, true);
    figures.changed(["1100"]);
    await until(async () => (await sums()).length === 2 * 1_101, { what: "all of them" });

    const found = (await sums()).filter(({ width }) => width === "hour");
    expect(found.map(({ deliveries }) => deliveries)).to.deep.equal([1_100, ...Array(1_100).fill(1)]);
  });

  it("writes counts later after a failure, and once", async () => {
    const figures = open();
    faults = 2;
    figures.changed(["7"]);
    await until(() => faults < 0, { what: "a write after two faults" });
    await written(1);

    expect(await sums()).to.deep.include(row(7, "hour", [1, 0, 0]));
  });

  it("writes the remaining counts when it stops", async () => {
    const figures = open(60_000);
    figures.changed(["7"]);
    stop.abort();
    await running;

    expect(await sums()).to.deep.include(row(0, "minute", [1, 0, 0]));
  });

  it("forgets minutes after two hours, and hours after eight days", async () => {
    await scene.core.sql(
      `INSERT INTO svc.figures SELECT 1, width, date_trunc(width, now() - age::interval), 1, 0, 0
       FROM (VALUES ('minute', '1 hour'), ('minute', '3 hours'), ('hour', '7 days'), ('hour', '9 days')) AS given (width, age)`,
    );
    await forgetOld(scene.core.sql);

    expect(await sums()).to.deep.equal([row(1, "hour", [1, 0, 0]), row(1, "minute", [1, 0, 0])]);
  });
});
