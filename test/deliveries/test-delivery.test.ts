import { expect } from "chai";
import type { Sender } from "../../src/deliveries/attempt/send.ts";
import { createTestWebhook, type TestAnswer, type TestWebhook } from "../../src/deliveries/test-delivery.ts";
import { useCoreScene } from "../support/core-scene.ts";
import { until } from "../support/wait.ts";
import { secretBox } from "../support/work.ts";

const result = { startedAt: new Date(), durationMs: 1, statusCode: 200, isResponseTruncated: false };

const kindOf = async (answer: Promise<TestAnswer>): Promise<string> => (await answer).kind;

describe("createTestWebhook", () => {
  const scene = useCoreScene();
  let processes: readonly [TestWebhook, TestWebhook];
  let hanging: (() => void)[];
  let doesHang: boolean;

  const send: Sender["send"] = async () => {
    if (doesHang) await new Promise<void>((resolve) => hanging.push(resolve));
    return { kind: "made", result };
  };
  beforeEach(() => {
    [hanging, doesHang] = [[], false];
    const { sql, transact } = scene.core;
    const create = (): TestWebhook =>
      createTestWebhook({
        sql,
        transact,
        send,
        secretBox,
        timeoutMs: 30_000,
      });
    processes = [create(), create()];
  });

  const webhooksOf = async (count: number): Promise<readonly number[]> => {
    const user = await scene.work.addUser();
    const made = [];
    for (let index = 0; index < count; index += 1)
      made.push(await scene.work.addSubscription({ userId: user.id }));
    return made.map(({ id }) => id);
  };

  it("tests a webhook at most once a second, over all processes", async () => {
    const [id = 0] = await webhooksOf(1);
    const [one, other] = processes;

    expect(await kindOf(one(id))).to.equal("made");
    expect(await other(id)).to.deep.equal({
      kind: "tooMany",
      reason: "A webhook is tested at most once a second. Try again in 1 second.",
      retryAfterSeconds: 1,
    });
    await scene.core.sql("UPDATE svc.tests SET started_at = started_at - interval '1 second'");
    expect(await kindOf(other(id))).to.equal("made");
  });

  it("forgets tests in the future: the database's clock was set back", async () => {
    const [id = 0] = await webhooksOf(1);
    expect(await kindOf(processes[0](id))).to.equal("made");
    await scene.core.sql(
      "UPDATE svc.tests SET started_at = started_at + interval '1 hour', ends_at = ends_at + interval '1 hour'",
    );

    expect(await kindOf(processes[1](id))).to.equal("tooMany");
    expect(await kindOf(processes[1](id))).to.equal("made");
  });

  it("permits two tests of a user at a time over all processes, and tests of others beside them", async () => {
    doesHang = true;
    const ids = await webhooksOf(6);
    const [other = 0] = await webhooksOf(1);
    const asked = ids.map((id, index) => kindOf((processes[index % 2] as TestWebhook)(id)));
    await until(() => hanging.length === 2, { what: "two tests under way" });
    const kinds: string[] = [];
    for (const one of asked) void one.then((kind) => kinds.push(kind));
    await until(() => kinds.length === 4, { what: "the others to be refused" });

    expect(kinds).to.deep.equal(["tooMany", "tooMany", "tooMany", "tooMany"]);
    doesHang = false;
    expect(await kindOf(processes[0](other))).to.equal("made");
    for (const end of hanging) end();
    expect((await Promise.all(asked)).filter((kind) => kind === "made")).to.have.length(2);
    await scene.core.sql("UPDATE svc.tests SET started_at = started_at - interval '1 second'");
    expect(await kindOf(processes[1](ids[5] ?? 0))).to.equal("made");
  });

  it("counts no test of a process that has died", async () => {
    doesHang = true;
    const [first = 0, second = 0, third = 0] = await webhooksOf(3);
    void processes[0](first);
    void processes[0](second);
    await until(() => hanging.length === 2, { what: "two tests under way" });
    doesHang = false;

    const refused = await processes[1](third);
    const seconds = refused.kind === "tooMany" ? refused.retryAfterSeconds : 0;
    // A stopped process leaves it for the time-out and 15 s.
    expect(seconds).to.be.within(40, 45);
    expect(refused).to.have.property(
      "reason",
      `A user has at most 2 tests at a time, and so many are still going on. Try again in ${seconds} seconds.`,
    );
    await scene.core.sql("UPDATE svc.tests SET ends_at = ends_at - interval '45 seconds'");
    expect(await kindOf(processes[1](third))).to.equal("made");
    for (const end of hanging) end();
  });

  it("keeps no row of tests that ended long ago", async () => {
    const ids = await webhooksOf(2);
    await processes[0](ids[0] ?? 0);
    await scene.core.sql(
      "UPDATE svc.tests SET ends_at = ends_at - interval '2 minutes', started_at = started_at - interval '2 minutes'",
    );

    await processes[0](ids[1] ?? 0);

    expect(await scene.core.sql("SELECT subscription_id AS id FROM svc.tests")).to.deep.equal([
      { id: ids[1] },
    ]);
  });
});
