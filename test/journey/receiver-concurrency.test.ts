import { expect } from "chai";
import { Pool } from "pg";
import { createOwnDatabase, type OwnDatabase } from "../support/private-servers.ts";
import { admin, createProgram, type Program } from "../support/program.ts";
import { reply, startReceiver, type TestReceiver } from "../support/receiver.ts";
import { request } from "../support/service.ts";
import { until } from "../support/wait.ts";

// A delivery that waits for the sweep's interval takes seconds, which the test detects.
const service = `
webhooks:
  timeout: 5
  maxAttempts: 8
  backoff: [0.3]
  sweepInterval: 5
  receiverConcurrency: \${RECEIVER_CONCURRENCY}
  allowedNetworks: [127.0.0.0/8]
`;
const answerMs = 10;
/** Time between two polls. Every 15 ms, they took 4 s of the 29 s of CPU of these tests. */
const everyMs = 100;

/** A receiver that counts its concurrent requests. */
interface Counting {
  readonly receiver: TestReceiver;
  /** Most requests at once so far. */
  most: number;
  /** Whether it answers a request with 503; gets the number of the request. */
  refuses: (number: number) => boolean;
}

async function startCounting(): Promise<Counting> {
  const receiver = await startReceiver();
  const counting: Counting = { receiver, most: 0, refuses: () => false };
  let open = 0;
  receiver.answer = (_request, response) => {
    const status = counting.refuses(receiver.received.length) ? 503 : 200;
    open += 1;
    counting.most = Math.max(counting.most, open);
    const end = (): void => {
      response.off("close", end);
      open -= 1;
    };
    response.once("close", end);
    setTimeout(() => {
      if (response.destroyed) return;
      // Before the answer: the sender may begin the next attempt at once after it.
      end();
      reply(response, { status });
    }, answerMs);
  };
  return counting;
}

function attemptsOf(program: Program): number {
  return program.written().split('"msg":"delivery attempt').length - 1;
}

for (const limit of [1, 3])
  describe(`webhooks.receiverConcurrency of ${limit} over two dispatchers`, function () {
    this.timeout(120_000);
    let own: OwnDatabase;
    let pool: Pool;
    let api: Program;
    let dispatchers: readonly Program[];
    let counting: Counting;
    let userId: number;
    let added: number;

    before(async () => {
      added = 0;
      own = await createOwnDatabase({ service });
      const env = { ...own.env, RECEIVER_CONCURRENCY: String(limit) };
      await admin(["migrate"], env);
      const user = await admin(["create-user", "--name", "Ada", "--email", "ada@example.com"], env);
      userId = Number(user["id"]);
      pool = new Pool({ connectionString: own.url });
      // Dropping the database may cut a connection that is about to end.
      pool.on("error", () => undefined);
      api = await createProgram({ name: "api", env });
      dispatchers = await Promise.all([1, 2].map(() => createProgram({ name: "dispatcher", env })));
      await Promise.all([api, ...dispatchers].map((program) => program.start()));
      counting = await startCounting();
      const { status } = await request({
        url: `${api.origin}/svc-api/webhooks`,
        method: "POST",
        token: String(user["token"]),
        body: { url: counting.receiver.url, resource: "notes", events: ["on_create"] },
      });
      expect(status).to.equal(201);
      await untilSettled();
    });

    after(async () => {
      await Promise.all([api, ...(dispatchers ?? [])].map((program) => program?.dispose()));
      await counting?.receiver.close();
      await pool?.end();
      await own?.dispose();
    });

    const countOf = async (text: string): Promise<number> =>
      (await pool.query<{ count: number }>(`SELECT count(*)::int AS count FROM ${text}`)).rows[0]?.count ?? 0;
    /** Waits until each has seen the other, and has waited like a new one. */
    const untilSettled = (): Promise<unknown> =>
      until(
        async () =>
          (await countOf(
            "svc.processes WHERE program = 'dispatcher' AND started_at < now() - interval '7 seconds'",
          )) === 2,
        { what: "two dispatchers that know each other", timeoutMs: 20_000, everyMs },
      );
    const addNotes = async (count: number): Promise<void> => {
      added += count;
      await pool.query(
        "INSERT INTO notes (text, user_id) SELECT 'note ' || n, $1 FROM generate_series(1, $2::int) AS n",
        [userId, count],
      );
    };
    const untilDelivered = (timeoutMs: number): Promise<unknown> =>
      until(async () => (await countOf("svc.deliveries WHERE status = 'delivered'")) === added, {
        what: `${added} deliveries`,
        timeoutMs,
        everyMs,
      });
    /** Adds notes, and returns the dispatcher that makes most of the attempts. */
    const busiest = async (count: number): Promise<Program> => {
      const before = dispatchers.map(attemptsOf);
      await addNotes(count);
      await untilDelivered(40_000);
      const made = dispatchers.map((program, index) => attemptsOf(program) - (before[index] ?? 0));
      return dispatchers[made.indexOf(Math.max(...made))] as Program;
    };

    it("sends all of a burst, with retries, and never more at once", async () => {
      counting.refuses = (number) => number % 7 === 0;

      await addNotes(150);
      // Some 170 attempts of at least 10 ms. With one for each sweep, they take 14 minutes.
      await untilDelivered(40_000);

      expect(counting.most).to.equal(limit);
      expect(dispatchers.map(attemptsOf).filter((count) => count > 0)).to.have.length(Math.min(limit, 2));
    });

    it("sends single ones and their retries at once, whichever dispatcher fans them out", async () => {
      counting.refuses = (number) => number % 2 === 0;
      const waits: number[] = [];
      for (let made = 1; made <= 10; made += 1) {
        const startedAt = performance.now();
        await addNotes(1);
        await untilDelivered(10_000);
        waits.push(performance.now() - startedAt);
      }

      // Sweeps are 5 s apart: a delivery that waits for one waits nearly as long.
      expect(Math.max(...waits)).to.be.below(4_000);
    });

    it("continues when a dispatcher stops, and when it is back", async () => {
      counting.refuses = (number) => number % 7 === 0;
      const stopped = await busiest(20);
      await addNotes(40);
      await stopped.end("SIGTERM", 20_000);
      await addNotes(40);
      await untilDelivered(40_000);

      await stopped.start();
      await addNotes(40);
      await untilDelivered(40_000);
      await untilSettled();
      await addNotes(40);
      await untilDelivered(40_000);

      expect(counting.most).to.equal(limit);
    });

    it("continues when a dispatcher is killed", async () => {
      const killed = await busiest(20);
      await addNotes(40);
      await killed.end("SIGKILL");
      await addNotes(40);
      await untilDelivered(60_000);

      expect(counting.most).to.equal(limit);
    });
  });
