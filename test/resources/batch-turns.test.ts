import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { Answer } from "../support/http.ts";
import { until } from "../support/wait.ts";
import { ask, revoked, seed, apiOfSuite, startApi } from "./serving-api.ts";

const create = (reference: string): unknown => ({ method: "create", data: { reference, amount: 5 } });

describe("the turns of batches", () => {
  const { served, api } = apiOfSuite(undefined, { bodyLimitBytes: 2_000_000 });
  const as = (who: string, request: string, body?: unknown): Promise<Answer> => ask(api, who, request, body);
  const batch = (who: string, ...operations: readonly unknown[]): Promise<Answer> =>
    as(who, "POST /orders/batch", { operations });
  const addPage = (who: string, slug: string): Promise<Answer> =>
    as(who, "POST /pages/batch", { operations: [{ method: "create", data: { slug, title: slug } }] });

  beforeEach(() => seed(served));

  const references = async (): Promise<unknown[]> =>
    (await served.sql<{ reference: string }>("SELECT reference FROM orders ORDER BY id")).map(
      ({ reference }) => reference,
    );
  const waitingFor = async (table: string): Promise<number> =>
    (await served.sql("SELECT FROM pg_locks WHERE NOT granted AND relation = $1::regclass", [table])).length;

  it("give batches of a user one connection, and of all users two, in the limits of the test", async () => {
    const client = await served.database.pool.connect();
    try {
      await client.query("BEGIN; LOCK TABLE orders, site_pages IN ACCESS EXCLUSIVE MODE");
      const adas = ["Q-1", "Q-2"].map((reference) => batch("ada", create(reference)));
      await until(async () => (await waitingFor("orders")) === 1, { what: "one of Ada's" });
      const others = [addPage("bob", "b")];
      await until(async () => (await waitingFor("site_pages")) === 1, { what: "the one of Bob's" });
      others.push(addPage("root", "r"));
      // A later request has reached the database: this one would have, too, if it had begun.
      await as("ada", "GET /notices/1");

      expect([await waitingFor("orders"), await waitingFor("site_pages")]).to.deep.equal([1, 1]);
      await client.query("COMMIT");
      expect((await Promise.all([...adas, ...others])).map(({ status }) => status)).to.deep.equal([
        200, 200, 200, 200,
      ]);
    } finally {
      client.release();
    }
  });

  it("end with 503 and Retry-After for a batch that waits too long, at any holder", async () => {
    const own = await startApi(served, undefined, { batchWaitMs: 100 });
    const client = await served.database.pool.connect();
    try {
      await client.query("BEGIN; LOCK TABLE orders IN ACCESS EXCLUSIVE MODE");
      const of = (who: string, reference: string): Promise<Answer> =>
        ask(own, who, "POST /orders/batch", { operations: [create(reference)] });
      const adas = of("ada", "W-1");
      await until(async () => (await waitingFor("orders")) === 1, { what: "the first of Ada's" });
      const second = await of("ada", "W-2");
      const bobs = of("bob", "W-3");
      await until(async () => (await waitingFor("orders")) === 2, { what: "the one of Bob's" });
      const third = await of("root", "W-4");

      for (const { status, headers, json } of [second, third]) {
        expect([status, json]).to.deep.equal([503, { message: "Server Error" }]);
        expect(headers["retry-after"]).to.equal("5");
      }
      await client.query("COMMIT");
      expect([(await adas).status, (await bobs).status]).to.deep.equal([200, 200]);
      expect((await of("ada", "W-5")).status).to.equal(200);
      expect(await references()).to.have.length(6);
    } finally {
      client.release();
      await own.server.close();
    }
  });

  it("begin no batch whose token was revoked while it waited", async () => {
    const client = await served.database.pool.connect();
    try {
      await client.query("BEGIN; LOCK TABLE orders IN ACCESS EXCLUSIVE MODE");
      const first = batch("ada", create("R-1"));
      await until(async () => (await waitingFor("orders")) === 1, { what: "the first one" });
      const second = batch("ada", create("R-2"));
      await sleep(1_100);
      revoked.add("ada");
      await client.query("COMMIT");

      expect([(await first).status, (await second).status]).to.deep.equal([200, 401]);
      expect(await references())
        .to.include("R-1")
        .and.not.include("R-2");
    } finally {
      revoked.delete("ada");
      client.release();
    }
  });

  it("begin no batch whose client has left while it waited", async () => {
    const client = await served.database.pool.connect();
    try {
      await client.query("BEGIN; LOCK TABLE orders IN ACCESS EXCLUSIVE MODE");
      const first = batch("ada", create("G-1"));
      await until(async () => (await waitingFor("orders")) === 1, { what: "the first one" });
      const leaving = new AbortController();
      const left = fetch(`http://127.0.0.1:${api.server.port}/svc-api/resources/orders/batch`, {
        method: "POST",
        headers: { authorization: "Bearer ada", "content-type": "application/json" },
        body: JSON.stringify({ operations: [create("G-2")] }),
        signal: leaving.signal,
      }).catch(() => "left");
      // A later request has reached the database: this one waits.
      await as("ada", "GET /notices/1");
      leaving.abort();
      expect(await left).to.equal("left");
      await until(() => api.lines.some(({ isAborted }) => isAborted === true), {
        what: "the server to know",
      });
      await client.query("COMMIT");

      expect((await first).status).to.equal(200);
      expect((await batch("ada", create("G-3"))).status).to.equal(200);
      expect(await references()).not.to.include("G-2");
    } finally {
      client.release();
    }
  });
});
