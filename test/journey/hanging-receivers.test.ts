import { expect } from "chai";
import type { Config } from "../../src/config/load.ts";
import { notesYaml, subscribe } from "../support/notes.ts";
import { hang, startReceiver, type TestReceiver } from "../support/receiver.ts";
import { modes, startService, type TestService, type TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";

for (const mode of modes) {
  describe(`receivers that hang (${mode})`, () => {
    let service: TestService;
    let hanging: TestReceiver;
    let quick: TestReceiver;
    let ada: TestUser;
    let bob: TestUser;

    const start = async (webhooks: Partial<Config["webhooks"]>): Promise<void> => {
      service = await startService({ mode, resources: { "notes.yaml": notesYaml }, webhooks });
      [ada, bob] = [await service.createUser(), await service.createUser()];
      [hanging, quick] = [await startReceiver(), await startReceiver()];
      hanging.answer = hang;
      await subscribe(ada, hanging);
      await subscribe(bob, quick);
    };

    afterEach(async () => {
      // Ends the attempts in flight, for which the stop would wait.
      await Promise.all([hanging.close(), quick.close()]);
      await service.stop();
    });

    const addNotes = (user: TestUser, count: number): Promise<unknown> =>
      service.infrastructure.sql(
        "INSERT INTO notes (text, user_id) SELECT 'note ' || n, $1 FROM generate_series(1, $2) AS n",
        [user.id, count],
      );
    const countOf = async (user: TestUser, condition: string): Promise<number> => {
      const [row] = await service.infrastructure.sql<{ count: number }>(
        `SELECT count(*)::int AS count FROM svc.deliveries WHERE user_id = $1 AND ${condition}`,
        [user.id],
      );
      return row?.count ?? 0;
    };
    /** Returns the number of deliveries that wait for a slot. */
    const waitingOf = async (user: TestUser): Promise<number> => {
      const [row] = await service.infrastructure.sql<{ count: number }>(
        "SELECT count(*)::int AS count FROM svc.delivery_queue WHERE user_id = $1 AND due_at IS NULL",
        [user.id],
      );
      return row?.count ?? 0;
    };
    const shown = (): Promise<string> => service.infrastructure.metrics.scrape();
    /** Counts the service's statements about deliveries from this call on. */
    const watchStatements = (): (() => number) => {
      const { dispatcher: pool } = service.infrastructure.database;
      const query = pool.query.bind(pool) as (...args: unknown[]) => unknown;
      let count = 0;
      const counted = (...args: unknown[]): unknown => {
        if (JSON.stringify(args[0]).includes("svc.deliveries")) count += 1;
        return query(...args);
      };
      pool.query = counted as typeof pool.query;
      return () => count;
    };

    it("delay no other receiver: 2,000 deliveries to one that never answers, and 100 to one that does", async () => {
      await start({ timeoutMs: 60_000 });
      const statements = watchStatements();
      await addNotes(ada, 2_000);
      await hanging.waitFor(12);

      await addNotes(bob, 100);

      await quick.waitFor(100);
      await until(async () => (await waitingOf(ada)) > 1_000, {
        what: "the others to wait in the database",
      });
      await until(async () => (await countOf(bob, "status = 'delivered'")) === 100, {
        what: "the quick ones to be recorded",
      });
      // The quick ones may have passed some of them.
      await until(async () => (await countOf(ada, "status = 'pending' AND attempt = 0")) === 2_000, {
        what: "all of the others to be there, and none attempted",
      });
      expect(hanging.received).to.have.length(12);
      // In batches: otherwise 2,000 alone. The sweep runs 20 times a second.
      expect(statements()).to.be.below(1_000);
      // Includes the start of the service, on a busy machine.
    }).timeout(120_000);

    it("are switched off after ten attempts, and get everything once they answer", async () => {
      await start({ timeoutMs: 1_000 });
      await addNotes(ada, 200);
      await until(async () => (await shown()).includes('svc_receiver_breakers{state="open"} 1'), {
        what: "an open breaker",
        timeoutMs: 30_000,
      });
      await until(async () => (await waitingOf(ada)) > 100, {
        what: "deliveries that wait for the receiver",
      });
      const before = hanging.received.length;
      // Those in flight when it opened, the retries' share, and one or two probes.
      expect(before).to.be.below(40);

      hanging.answer = { status: 204 };

      await until(async () => (await countOf(ada, "status = 'delivered'")) === 200, {
        what: "all to be delivered",
        timeoutMs: 30_000,
      });
      expect(await shown()).to.include('svc_receiver_breakers{state="open"} 0');
    }).timeout(120_000);
  });
}
