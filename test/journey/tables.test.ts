import { expect } from "chai";
import { deliveredBodies } from "../support/delivered.ts";
import { psql } from "../support/psql.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { subscribe, unsubscribeAll } from "../support/notes.ts";
import { modes, request, startService, type TestService, type TestUser } from "../support/service.ts";
import { tableFiles, tableSql, totalsByPage } from "./tables.ts";

for (const mode of modes) {
  describe(`tables as they are (${mode})`, function () {
    this.timeout(120_000);
    let service: TestService;
    let url: string;
    let admin: TestUser;
    let receiver: TestReceiver;

    before(async () => {
      service = await startService({
        mode,
        resources: tableFiles,
        async prepare(prepared) {
          url = prepared;
          await psql(url, { sql: tableSql });
        },
      });
      admin = await service.createUser({ isAdmin: true });
      receiver = await startReceiver();
    });
    after(async () => {
      await receiver.close();
      await service.stop();
    });
    afterEach(() => unsubscribeAll(admin));

    /** Returns the events of a statement, one per line. */
    const eventsOf = async (sql: string): Promise<string> => {
      await psql(url, { sql: "DELETE FROM svc.events WHERE resource = 'readings'" });
      await psql(url, { sql });
      return psql(url, {
        sql: "SELECT trigger, record_id, snapshot ->> 'value' FROM svc.events WHERE resource = 'readings' AND id IN (SELECT event_id FROM svc.outbox UNION SELECT event_id FROM svc.deliveries UNION SELECT id FROM svc.events) ORDER BY id",
      });
    };

    describe("keys of several fields", () => {
      it("lead through every route, and are the same in events and addresses", async () => {
        await subscribe(admin, receiver, { resource: "prices" });
        const price = { sku: "A,1/ö", day: "2026-03-28", amount: "9.50", note: "first" };

        const made = await admin.request("POST", "/resources/prices", price);
        const id = "A%2C1%2F%C3%B6,2026-03-28";
        const shown = await admin.request("GET", `/resources/prices/${id}`);
        const encoded = await admin.request("GET", `/resources/prices/${encodeURIComponent(id)}`);
        const changed = await admin.request("PATCH", `/resources/prices/${id}`, { amount: "8.25" });
        const again = await admin.request("POST", "/resources/prices", { ...price, note: "second" });
        const gone = await admin.request("DELETE", `/resources/prices/${id}`);
        const missing = await admin.request("GET", `/resources/prices/${id}`);
        const bodies = await deliveredBodies(receiver, 3);
        const ids = await psql(url, {
          sql: "SELECT DISTINCT record_id FROM svc.events WHERE resource = 'prices'",
        });

        expect([made.status, made.body]).to.deep.equal([201, price]);
        expect(made.headers.get("location")).to.equal(`${service.baseUrl}/resources/prices/${id}`);
        expect([shown.status, shown.body]).to.deep.equal([200, price]);
        expect(encoded.body).to.deep.equal(price);
        expect([changed.status, changed.body]).to.deep.equal([200, { ...price, amount: "8.25" }]);
        expect([again.status, again.body.errors]).to.deep.equal([
          422,
          { sku: ["The sku has already been taken."], day: ["The day has already been taken."] },
        ]);
        expect(gone.status).to.equal(204);
        expect([missing.status, missing.body.message]).to.deep.equal([
          404,
          `The prices record ${id} could not be found.`,
        ]);
        expect(Object.fromEntries(bodies.map((body) => [body["event"], body["data"]]))).to.deep.equal({
          on_create: price,
          on_update: { ...price, amount: "8.25" },
          on_delete: { ...price, amount: "8.25" },
        });
        expect(ids.trim()).to.equal(id);
      });

      it("exclude ids that no record can have", async () => {
        const ids = [
          "A",
          "A,2026-03-28,x",
          "A,2026-02-30",
          ",2026-03-28",
          "%E0%A4%A,2026-03-28",
          "A,2026-3-28",
        ];
        const answers = await Promise.all(ids.map((id) => admin.request("GET", `/resources/prices/${id}`)));

        expect(answers.map(({ status }) => status)).to.deep.equal(ids.map(() => 404));
      });

      it("accept conditions, and batches by their ids", async () => {
        const { headers } = await admin.request("POST", "/resources/prices", {
          sku: "B",
          day: "2026-01-01",
          amount: "1",
        });
        const put = (tag: string): ReturnType<typeof request> =>
          request({
            url: `${service.baseUrl}/resources/prices/B,2026-01-01`,
            method: "PUT",
            token: admin.token,
            body: { amount: "2" },
            headers: { "If-Match": tag },
          });

        const stale = await put('"other"');
        const fresh = await put(headers.get("etag") ?? "");
        const batch = await admin.request("POST", "/resources/prices/batch", {
          operations: [
            { method: "update", id: "B,2026-01-01", data: { note: "batched" } },
            { method: "create", data: { sku: "B", day: "2026-01-02", amount: "3" } },
            { method: "delete", id: "B,2026-01-02" },
          ],
        });
        const fault = await admin.request("POST", "/resources/prices/batch", {
          operations: [{ method: "delete", id: "B" }],
        });

        expect([stale.status, fresh.status]).to.deep.equal([412, 200]);
        expect(batch.body.data.map((one: { status: number }) => one.status)).to.deep.equal([200, 201, 204]);
        expect(batch.body.data[0].record).to.include({ amount: "2.00", note: "batched" });
        expect([fault.status, Object.keys(fault.body.errors)]).to.deep.equal([404, ["operations.0.id"]]);
        expect((await admin.request("DELETE", "/resources/prices/B,2026-01-01")).status).to.equal(204);
      });

      it("exclude the record itself where a rule requires a unique value", async () => {
        const one = await admin.request("POST", "/resources/prices", {
          sku: "U",
          day: "2026-01-01",
          amount: "1",
          note: "n",
        });
        const other = await admin.request("POST", "/resources/prices", {
          sku: "U",
          day: "2026-01-02",
          amount: "1",
        });

        const same = await admin.request("PUT", "/resources/prices/U,2026-01-01", { note: "n" });
        const taken = await admin.request("PUT", "/resources/prices/U,2026-01-02", { note: "n" });

        expect([one.status, other.status, same.status]).to.deep.equal([201, 201, 200]);
        expect([taken.status, taken.body.errors]).to.deep.equal([
          422,
          { note: ["The note has already been taken."] },
        ]);
        await psql(url, { sql: "DELETE FROM prices" });
      });

      it("end the order of lists, so that pages and cursors meet every record once", async () => {
        await psql(url, {
          sql: "INSERT INTO prices (sku, day, amount) SELECT 'L' || n % 3, date '2026-01-01' + n, 1 FROM generate_series(1, 25) AS n",
        });
        const found: string[] = [];
        let path: string | undefined = "/resources/prices?sort=amount&per_page=7&cursor=";
        while (path !== undefined) {
          const { body } = await admin.request("GET", path);
          found.push(...body.data.map(({ sku, day }: Record<string, string>) => `${sku},${day}`));
          path = body.next_page_url?.replace(service.baseUrl, "");
        }

        expect(found).to.have.length(25);
        expect(found).to.deep.equal(found.toSorted());
        await psql(url, { sql: "DELETE FROM prices" });
      });

      it("support a join table between two resources, with relations from both sides", async () => {
        const [order, product] = await Promise.all([
          admin.request("POST", "/resources/carts", { name: "one" }),
          admin.request("POST", "/resources/goods", { name: "two" }),
        ]);
        const line = { cart_id: order.body.id, good_id: product.body.id, quantity: 3 };

        const made = await admin.request("POST", "/resources/cart-goods", line);
        const listed = await admin.request("GET", "/resources/carts?include=cart_goods&fields=name");
        const filtered = await admin.request("GET", "/resources/cart-goods?filter[good.name]=two");
        const refused = await admin.request("POST", "/resources/cart-goods", { ...line, good_id: 99 });

        expect([made.status, made.body]).to.deep.equal([201, { ...line, good: { name: "two" } }]);
        expect(made.headers.get("location")).to.match(new RegExp(`/${line.cart_id},${line.good_id}$`));
        expect(listed.body.data).to.deep.equal([
          { name: "one", cart_goods: [{ ...line, good: { name: "two" } }] },
        ]);
        expect(filtered.body.total).to.equal(1);
        expect(refused.body.errors).to.deep.equal({ good_id: ["The selected good id is invalid."] });
      });
    });

    describe("days, times, durations and native types", () => {
      const shift = { place: "hall", day: "2026-03-28", starts: "08:30:00.25", lasts: "P1DT-2H" };

      it("are texts in requests, answers and events", async () => {
        await subscribe(admin, receiver, { resource: "shifts" });
        const before = receiver.received.length;
        const extra = { host: "10.0.0.1", hosts: ["10.0.0.1", "::1"], spot: "(1,2)", days: ["2026-01-01"] };

        const made = await admin.request("POST", "/resources/shifts", { ...shift, ...extra, words: "b a" });
        const least = await admin.request("POST", "/resources/shifts", { place: "yard", day: "2026-04-01" });
        const changed = await admin.request("PUT", `/resources/shifts/${made.body.id}`, { lasts: "P1M" });
        const bodies = await deliveredBodies(receiver, before + 3);

        const shown = { id: made.body.id, ...shift, lasts: "P1DT-2H", ...extra, words: "'a' 'b'" };
        expect([made.status, made.body]).to.deep.equal([201, shown]);
        expect(least.body).to.deep.include({
          starts: "08:30:00",
          lasts: "PT8H",
          host: null,
          hosts: [],
          days: [],
        });
        expect(changed.body).to.deep.equal({ ...shown, lasts: "P1M" });
        const data = bodies.filter(({ resource }) => resource === "shifts").map((body) => body["data"]);
        expect(data).to.deep.include(shown).and.deep.include(least.body).and.deep.include(changed.body);
      });

      it("are refused by field where they are invalid", async () => {
        const wrong = { place: "x", day: "2026-02-30", starts: "24:01", lasts: "1 day", days: ["today"] };

        const { status, body } = await admin.request("POST", "/resources/shifts", wrong);
        const natives = await Promise.all(
          [{ host: "nowhere" }, { spot: "here" }, { words: "'" }].map((one) =>
            admin.request("POST", "/resources/shifts", { ...shift, place: "y", ...one }),
          ),
        );

        expect([status, body.errors]).to.deep.equal([
          422,
          {
            day: ["The day field must match the format Y-m-d."],
            "days.0": ["The days.0 field must match the format Y-m-d."],
          },
        ]);
        const later = await admin.request("POST", "/resources/shifts", {
          ...wrong,
          day: "2026-01-01",
          days: [],
        });
        expect(later.body.errors).to.deep.equal({
          starts: ["The starts field must be a time, such as 14:30:00."],
          lasts: ["The lasts field must be a duration of ISO 8601, such as P1DT12H."],
        });
        expect(natives.map((answer) => answer.status)).to.deep.equal([422, 422, 422]);
      });

      it("are filtered and sorted by their values", async () => {
        await psql(url, {
          sql: `TRUNCATE staff.shifts CASCADE;
            INSERT INTO staff.shifts (place, day, starts, lasts, host, spot, hosts) VALUES
            ('a', '2026-05-01', '09:00', 'P1M', '10.0.0.9', '(1,1)', '{10.0.0.9}'),
            ('b', '2026-05-02', '08:59:59.999999', 'P29D', '10.0.0.10', '(2,2)', '{}'), ('c', 'infinity', '00:00', 'PT0S', NULL, NULL, '{}')`,
        });
        const found = async (query: string): Promise<string> => {
          const { status, body } = await admin.request("GET", `/resources/shifts?${query}`);
          return status === 200
            ? body.data.map(({ place }: { place: string }) => place).join("")
            : body.message;
        };

        expect(await found("sort=host")).to.equal("abc");
        expect(await found("sort=-starts")).to.equal("abc");
        expect(await found("sort=lasts")).to.equal("cba");
        expect(await found("filter[lasts][gt]=P29D")).to.equal("a");
        expect(await found("filter[day][between]=2026-05-01,2026-05-02&sort=-day")).to.equal("ba");
        expect(await found("filter[starts][lt]=09:00&filter[host][null]=false")).to.equal("b");
        expect(await found("filter[host]=10.0.0.9,10.0.0.8")).to.equal("a");
        expect(await found("filter[host][gte]=10.0.0.10")).to.equal("b");
        expect(await found("filter[host][ends_with]=.9")).to.equal("a");
        expect(await found("filter[hosts][has]=10.0.0.9")).to.equal("a");
        expect(await found("filter[spot]=(2\\,2)")).to.equal("b");
        expect(await found("filter[day]=infinity")).to.equal("c");
        expect(await found("filter[day]=2026-13-01")).to.equal(
          "The value of day must be a day, such as 2026-03-28.",
        );
        expect(await found("filter[host]=nowhere")).to.equal("The column cannot hold this value.");
        expect(await found("sort=spot")).to.match(
          /^The field spot cannot be sorted: it is of the native type point/,
        );
        const pages = await admin.request("GET", "/resources/shifts?sort=-lasts&per_page=2&cursor=");
        const next = await admin.request("GET", pages.body.next_page_url.replace(service.baseUrl, ""));
        expect(next.body.data).to.have.length(1);
        expect(next.body.data[0]).to.include({ place: "c", day: "infinity", lasts: "PT0S" });
      });

      it("decide on access, and are in the events of records that refer to them", async () => {
        const user = await service.createUser();
        const mine = await startReceiver();
        await subscribe(user, mine, { resource: "shifts" });
        await subscribe(admin, receiver, { resource: "breaks", events: ["on_create"] });
        const before = receiver.received.length;

        await psql(url, {
          sql: "INSERT INTO staff.shifts (place, day) VALUES ('old', '2020-01-01'), ('new', '2026-06-01')",
        });
        const { body } = await user.request("GET", "/resources/shifts?filter[place]=old,new");
        const made = await admin.request("POST", "/resources/breaks", { shift_id: body.data[0].id });
        const [event] = await deliveredBodies(mine, 1);
        await receiver.waitFor(before + 1);

        expect(body.data.map(({ place }: { place: string }) => place)).to.deep.equal(["new"]);
        expect(event).to.deep.include({ event: "on_create", data: body.data[0] });
        expect(made.body.shift).to.deep.equal({
          day: "2026-06-01",
          starts: "08:30:00",
          lasts: "PT8H",
          host: null,
        });
        expect((await deliveredBodies(receiver, before + 1))[before]?.["data"]).to.deep.equal(made.body);
        await unsubscribeAll(user);
        await mine.close();
      });

      it("are reported for TRUNCATE of a table in a schema of its own, and a unique list by all its fields", async () => {
        const again = { place: "twice", day: "2026-07-01" };
        await admin.request("POST", "/resources/shifts", again);
        const refused = await admin.request("POST", "/resources/shifts", again);
        await psql(url, { sql: "TRUNCATE staff.shifts CASCADE" });
        const deleted = await psql(url, {
          sql: "SELECT count(*) FROM svc.events WHERE resource = 'shifts' AND trigger = 'on_delete' AND snapshot ->> 'place' = 'twice'",
        });

        expect([refused.status, refused.body.errors]).to.deep.equal([
          422,
          { place: ["The place has already been taken."], day: ["The day has already been taken."] },
        ]);
        expect(deleted.trim()).to.equal("1");
      });
    });

    describe("tables that others made", () => {
      it("keep generated columns, identities, domains, enums and odd names", async () => {
        const made = await admin.request("POST", "/resources/entries", {
          kind: "Big One",
          amount: 7,
          order: 2,
        });
        const wide = await admin.request("POST", "/resources/entries", { kind: "small", amount: 1000 });
        const ignored = await admin.request("PUT", `/resources/entries/${made.body.id}`, {
          twice: 1,
          amount: 8,
        });
        const filtered = await admin.request("GET", "/resources/entries?filter[kinds][has]=small&sort=order");

        expect([made.status, made.body]).to.deep.equal([
          201,
          { id: 1, kind: "Big One", kinds: ["small"], amount: 7, twice: 14, code: made.body.code, order: 2 },
        ]);
        expect(made.body.code).to.match(/^[0-9a-f]{32}$/);
        expect(wide.status).to.equal(422);
        expect(ignored.body).to.include({ amount: 8, twice: 16 });
        expect(filtered.body.total).to.equal(1);
      });

      it("are shown by views, a row without a key last and once, which refuse every change", async () => {
        const shown = await admin.request("GET", "/resources/totals/Big%20One");
        const methods = ["PUT", "PATCH", "DELETE"];
        const refused = await Promise.all([
          admin.request("POST", "/resources/totals", {}),
          ...methods.map((method) => admin.request(method, "/resources/totals/small", {})),
          admin.request("POST", "/resources/totals/batch", {}),
        ]);

        expect([shown.status, shown.body]).to.deep.equal([200, { Kind: "Big One", sum: 8 }]);
        expect(refused.map(({ status, headers }) => [status, headers.get("allow")])).to.deep.equal(
          refused.map(() => [405, "GET, HEAD"]),
        );
        for (const sort of ["Kind", "-Kind"])
          expect(await totalsByPage(admin, sort)).to.deep.equal(["Big One", null, "Big One"]);
      });

      it("report a row that moves between partitions as a change", async () => {
        const made = await eventsOf("INSERT INTO readings VALUES (1, 'north', 5), (2, 'north', 6)");
        const moved = await eventsOf("UPDATE readings SET region = 'south', value = value + 1");
        const within = await eventsOf("UPDATE readings SET value = 0 WHERE sensor = 1");
        const again = await eventsOf(
          "BEGIN; DELETE FROM readings WHERE sensor = 1; INSERT INTO readings VALUES (1, 'north', 9) ON CONFLICT (sensor, region) DO UPDATE SET value = 1; COMMIT",
        );
        const merged = await eventsOf(
          `MERGE INTO readings AS t USING (VALUES (1, 'x'), (2, 'x'), (3, 'x')) AS s (id, word) ON t.sensor = s.id
           WHEN MATCHED AND id = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET value = 3 WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'north', 1)`,
        );

        expect([made, moved, within, again, merged].map((text) => text.trim().split("\n"))).to.deep.equal([
          ["on_create|1,north|5", "on_create|2,north|6"],
          ["on_update|1,south|6", "on_update|2,south|7"],
          ["on_update|1,south|0"],
          ["on_delete|1,south|0", "on_create|1,north|9"],
          ["on_delete|1,north|9", "on_update|2,south|3", "on_create|3,north|1"],
        ]);
      });
    });
  });
}
