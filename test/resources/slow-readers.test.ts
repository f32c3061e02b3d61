import { expect } from "chai";
import { createMemoryBudget } from "../../src/http/memory-budget.ts";
import { openRaw } from "../support/raw.ts";
import { openSlowReader, type SlowReader } from "../support/slow-reader.ts";
import { until } from "../support/wait.ts";
import { apiOfSuite, ask, startApi, type Api } from "./serving-api.ts";

const memoryBudgetBytes = 40_000_000;
const limitOfUser = memoryBudgetBytes / 2;

/** More than the kernel buffers: 1.5 million letters of three bytes each. */
const largeText = "repeat('漢', 1500000)";
const largeBytes = 4_500_000;

describe("memory of answers that nobody reads", () => {
  const { served, api } = apiOfSuite(undefined, {
    memoryBudget: createMemoryBudget({ limitBytes: memoryBudgetBytes }),
  });
  let readers: SlowReader[];

  before(async () => {
    await served.sql(
      `INSERT INTO orders (reference, amount, remarks, user_id)
       SELECT 'L-' || i, 0, ${largeText}, 7 FROM generate_series(1, 8) AS i`,
    );
  });

  beforeEach(() => {
    readers = [];
  });

  afterEach(() => {
    for (const reader of readers) reader.leave();
  });

  async function open(
    request: string,
    { body = "", who = "ada", at = api }: { body?: string; who?: string; at?: Api } = {},
  ): Promise<SlowReader> {
    const [method, path] = request.split(" ");
    const headers = { Authorization: `Bearer ${who}` };
    const target = `${method} /svc-api/resources${path}`;
    const reader = await openSlowReader(at.server.port, target, { headers, body });
    readers.push(reader);
    return reader;
  }

  const statuses = (): Record<number, number> => {
    const counts: Record<number, number> = {};
    for (const { status } of readers) counts[status] = (counts[status] ?? 0) + 1;
    return counts;
  };

  for (const [request, fits] of [
    ["GET /orders?per_page=2", 2],
    ["GET /orders?per_page=2&cursor=", 2],
    ["GET /orders/7", 4],
  ] as const) {
    it(`stays within the user's half, by bytes: ${request}`, async () => {
      await Promise.all(Array.from({ length: 6 }, () => open(request)));

      expect(statuses()).to.deep.equal({ 200: fits, 503: 6 - fits });
      const answered = readers.filter(({ status }) => status === 200);
      const bytes = answered.reduce((sum, { headers }) => sum + Number(headers["content-length"]), 0);
      expect(bytes).to.be.within(fits * largeBytes, limitOfUser);
      for (const { status, headers } of readers)
        if (status === 503) {
          expect(headers["retry-after"]).to.equal("1");
          expect(headers).not.to.have.property("etag");
        }
      expect((await ask(api, "root", request)).status).to.equal(200);

      for (const reader of readers) reader.leave();
      await until(async () => (await ask(api, "ada", request)).status === 200, {
        what: "the memory to be given back",
      });
    });
  }

  describe("of two users who hold all of it, is given to a third one", () => {
    let patient: Api;

    beforeEach(async () => {
      const memoryBudget = createMemoryBudget({ limitBytes: memoryBudgetBytes, patienceMs: 300 });
      patient = await startApi(served, undefined, { memoryBudget, bodyLimitBytes: 2_000_000 });
    });
    afterEach(() => patient.server.close({ limitMs: 0 }));

    const untilServed = (): Promise<unknown> =>
      until(async () => (await ask(patient, "root", "GET /orders?per_page=2")).status === 200, {
        what: "an answer to the third user",
      });
    const lost = (): readonly unknown[] =>
      patient.lines.filter(({ errorCode, userId }) => errorCode === "server.overloaded" && userId !== 1);

    it("when they do not read their answers", async () => {
      await served.sql("UPDATE orders SET user_id = 8 WHERE id > 4");
      for (const who of ["ada", "ada", "bob", "bob"])
        await open("GET /orders?per_page=2", { who, at: patient });
      expect(statuses()).to.deep.equal({ 200: 4 });

      await untilServed();

      await until(() => lost().length === 1, { what: "the line of the answer that was cut" });
      await served.sql("UPDATE orders SET user_id = 7");
    });

    it("when their bodies do not come", async () => {
      const senders = await Promise.all(["ada", "bob"].map(() => openRaw(patient.server.port)));
      senders.forEach((sender, index) =>
        sender.send(
          `POST /svc-api/resources/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${index === 0 ? "ada" : "bob"}\r\n` +
            "Content-Type: application/json\r\nContent-Length: 1600000\r\n\r\n{",
        ),
      );

      await untilServed();

      const refused = (await Promise.race(senders.map((sender) => sender.untilAnswers(1))))[0];
      expect([refused?.status, refused?.headers["retry-after"]]).to.deep.equal([503, "1"]);
      for (const sender of senders) sender.socket.destroy();
    });
  });

  it("is reserved before a write begins: a write without it is not begun", async () => {
    for (let id = 1; id <= 6; id += 1) await open(`PATCH /orders/${id}`, { body: '{"amount":1}' });

    // The fifth exceeds the half.
    expect(readers.map(({ status }) => status)).to.deep.equal([200, 200, 200, 200, 200, 503]);
    expect(readers[5]?.headers["retry-after"]).to.equal("1");
    const written = await served.sql<{ id: number }>("SELECT id FROM orders WHERE amount = 1 ORDER BY id");
    expect(written.map(({ id }) => id)).to.deep.equal([1, 2, 3, 4, 5]);

    for (const reader of readers) reader.leave();
    await until(async () => (await ask(api, "ada", "GET /orders?per_page=2")).status === 200, {
      what: "the memory to be given back",
    });
  });
});
