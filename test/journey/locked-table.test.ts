import { expect } from "chai";
import { Client } from "pg";
import { until } from "../support/wait.ts";
import { startService, type TestService, type TestUser } from "../support/service.ts";
import { create, shop } from "./shop.ts";

describe("a table that somebody has locked", () => {
  let service: TestService;
  let locker: Client;

  before(async () => {
    service = await startService({ mode: "servers", resources: shop });
    locker = new Client({ connectionString: service.foundation.databaseUrl });
    await locker.connect();
  });

  after(async () => {
    await locker.end();
    await service.stop();
  });

  it("keeps no more of the connections than its resource's share, however many users ask for it", async () => {
    const users = await Promise.all(Array.from({ length: 5 }, () => service.createUser({ isAdmin: true })));
    const [first, ...others] = users as [TestUser, ...TestUser[]];
    const customer = await create(first, "customers", { name: "Ada" });
    const { kind_id: id } = await create(first, "kinds", { kind_id: 1, text: "a" });
    await locker.query("BEGIN");
    await locker.query("LOCK TABLE customers IN ACCESS EXCLUSIVE MODE");
    // Twelve, for six connections.
    const waiting = others.flatMap((user) =>
      [1, 2, 3].map(() => user.request("GET", `/resources/customers/${customer.id}`)),
    );
    const waitingStatement = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    const held = async (): Promise<number> => (await locker.query(waitingStatement)).rows.length;
    let early: number | undefined;
    for (const request of waiting) void request.then(({ status }) => (early ??= status));
    await until(async () => early !== undefined || (await held()) >= 4, {
      what: "four requests",
      timeoutMs: 25_000,
    });
    expect(early, "an answer while the table is locked").to.equal(undefined);

    const changed = await first.request("PUT", `/resources/kinds/${id}`, { text: "b" });
    const whoami = await first.request("GET", "/whoami");
    const heldMeanwhile = await held();
    await locker.query("ROLLBACK");
    const answers = await Promise.all(waiting);

    expect([changed.status, whoami.status]).to.deep.equal([200, 200]);
    expect(heldMeanwhile, "while the table was locked").to.equal(4);
    expect(answers.map(({ status }) => status)).to.deep.equal(waiting.map(() => 200));
  });
});
