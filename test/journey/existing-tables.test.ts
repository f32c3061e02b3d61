import { verify } from "@octokit/webhooks-methods";
import { expect } from "chai";
import { loadChinook, loadMappings, structureOf, triggersOf } from "../support/chinook.ts";
import { subscribe, unsubscribeAll } from "../support/notes.ts";
import { psql } from "../support/psql.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { modes, startService, type Answer, type TestService, type TestUser } from "../support/service.ts";

const boston = {
  invoice_id: 5,
  customer: { id: 23, name: "Gordon" },
  invoice_date: "2021-01-11T00:00:00.000+00:00",
  billing_city: "Boston",
  billing_state: "MA",
  total: "13.86",
};

for (const mode of modes) {
  describe(`existing tables (${mode})`, function () {
    this.timeout(120_000);
    let service: TestService;
    let url: string;
    let admin: TestUser;
    let original: { readonly structure: readonly string[]; readonly rows: string };

    const countRows = (): Promise<string> =>
      psql(url, {
        sql: "SELECT count(*) FROM invoice; SELECT md5(string_agg(inv::text, ' ')) FROM invoice AS inv",
      });

    before(async () => {
      service = await startService({
        mode,
        resources: await loadMappings("customers", "employees", "invoices", "tracks"),
        async prepare(prepared) {
          url = prepared;
          await loadChinook(url);
          original = { structure: await structureOf(url), rows: await countRows() };
        },
      });
      admin = await service.createUser({ isAdmin: true });
    });
    after(() => service.stop());

    /** Returns the expected list by SQL: the ids in order. */
    async function idsBySql(sql: string): Promise<readonly number[]> {
      return (await psql(url, { sql })).split("\n").filter(Boolean).map(Number);
    }

    it("are as they were after the migration, but for the capture triggers", async () => {
      expect(original.structure).to.have.length.above(100);
      expect(await structureOf(url)).to.deep.equal(original.structure);
      expect(await countRows()).to.equal(original.rows);
      expect(await triggersOf(url)).to.deep.equal([
        "customer 0_svc_capture_customers",
        "customer svc_capture_customers_truncate",
        "employee 0_svc_capture_employees",
        "invoice 0_svc_capture_invoices",
        "invoice svc_capture_invoices_truncate",
        "track 0_svc_capture_tracks",
        "track svc_capture_tracks_truncate",
      ]);
    });

    it("show a record by a key of any name, its relation included, decimals and times as they are", async () => {
      const { status, body } = await admin.request("GET", "/resources/invoices/5");

      expect(status).to.equal(200);
      expect(body).to.deep.equal(boston);
    });

    it("show null columns as null", async () => {
      const { body } = await admin.request("GET", "/resources/invoices/1");

      expect(body).to.include({ billing_city: "Stuttgart", billing_state: null, total: "1.98" });
    });

    it("follow a table that refers to itself", async () => {
      const [sales, head] = await Promise.all(
        ["/resources/employees/3", "/resources/employees/1"].map((path) => admin.request("GET", path)),
      );

      expect(sales?.body).to.deep.include({ name: "Peacock", manager: { id: 2, name: "Edwards" } });
      expect(head?.body).to.deep.include({ name: "Adams", manager: { id: null, name: null } });
    });

    it("list pages in the order of the base query, then of the key", async () => {
      const all = await idsBySql("SELECT invoice_id FROM invoice ORDER BY invoice_date DESC, invoice_id");

      const { body } = await admin.request("GET", "/resources/invoices?per_page=3&page=2");

      expect(body).to.deep.include({
        current_page: 2,
        per_page: 3,
        last_page: Math.ceil(all.length / 3),
        total: all.length,
        prev_page_url: `${service.baseUrl}/resources/invoices?per_page=3&page=1`,
        next_page_url: `${service.baseUrl}/resources/invoices?per_page=3&page=3`,
      });
      expect(body.data.map((invoice: Answer["body"]) => invoice.invoice_id)).to.deep.equal(all.slice(3, 6));
    });

    it("search the columns of searchable fields, in any case", async () => {
      const found = await idsBySql(
        "SELECT track_id FROM track WHERE name ILIKE '%angus YOUNG%' OR composer ILIKE '%angus YOUNG%' ORDER BY track_id",
      );
      const { body } = await admin.request("GET", "/resources/tracks?search=angus%20YOUNG&per_page=100");
      const nothing = await admin.request("GET", "/resources/tracks?search=%25_%25");

      expect(found).to.have.length.above(8);
      expect(body.data.map((track: Answer["body"]) => track.track_id)).to.deep.equal(found);
      expect(body.data[0]).to.deep.include({
        track_id: 1,
        title: "For Those About To Rock (We Salute You)",
        unit_price: "0.99",
      });
      expect(nothing.body.total).to.equal(0);
    });

    describe("that are written to", () => {
      let receiver: TestReceiver;
      let secret: string;

      beforeEach(async () => {
        receiver = await startReceiver();
        ({ secret } = await subscribe(admin, receiver, { resource: "invoices" }));
      });
      afterEach(async () => {
        await unsubscribeAll(admin);
        await receiver.close();
      });

      /** Returns the bodies of the next deliveries, each with a verified signature. */
      async function receive(count: number): Promise<readonly Answer["body"][]> {
        const received = await receiver.waitFor(count, { timeoutMs: 30_000 });
        expect(received).to.have.length(count);
        for (const { headers, rawBody } of received) {
          const signature = String(headers["x-service-signature"]);
          expect(await verify(secret, rawBody.toString("utf8"), signature)).to.equal(true);
        }
        return received.map(({ rawBody }) => JSON.parse(rawBody.toString("utf8")));
      }

      it("send what psql inserts, updates and deletes, signed, with the included record", async () => {
        const id = await psql(url, {
          sql: `BEGIN; SET LOCAL TIME ZONE 'Asia/Tokyo';
            INSERT INTO invoice (customer_id, invoice_date, billing_city, total) VALUES (2, '2026-01-02 03:04:05.678', 'Köln', 5) RETURNING invoice_id;
            COMMIT`,
        });
        await receiver.waitFor(1, { timeoutMs: 30_000 });
        await psql(url, {
          sql: `UPDATE invoice SET total = 1234567.8, customer_id = 4 WHERE invoice_id = ${id}`,
        });
        await receiver.waitFor(2, { timeoutMs: 30_000 });
        await psql(url, { sql: `DELETE FROM invoice WHERE invoice_id = ${id}` });
        const bodies = await receive(3);

        const inserted = {
          invoice_id: Number(id),
          customer: { id: 2, name: "Köhler" },
          invoice_date: "2026-01-02T03:04:05.678+00:00",
          billing_city: "Köln",
          billing_state: null,
          total: "5.00",
        };
        const updated = { ...inserted, customer: { id: 4, name: "Hansen" }, total: "1234567.80" };
        expect(bodies.map(({ event, resource, data }) => ({ event, resource, data }))).to.deep.equal([
          { event: "on_create", resource: "invoices", data: inserted },
          { event: "on_update", resource: "invoices", data: updated },
          { event: "on_delete", resource: "invoices", data: updated },
        ]);
      });

      it("send every row of one statement, and no unmapped column", async () => {
        const ids = await idsBySql(
          `UPDATE invoice SET billing_address = 'not mapped' WHERE invoice_id <= 3;
          UPDATE invoice SET billing_city = upper(billing_city) WHERE invoice_id <= 3 RETURNING invoice_id`,
        );

        const bodies = await receive(3);

        expect(bodies.map(({ data }) => data.invoice_id)).to.have.members(ids);
        expect(bodies.map(({ data }) => data.billing_city)).to.have.members([
          "STUTTGART",
          "OSLO",
          "BRUSSELS",
        ]);
      });

      it("create records through the API: the table's own sequence gives the key, and psql sees the row", async () => {
        const invoice = { customer_id: 23, invoice_date: "2026-03-28T14:30:00+02:00", total: 5 };
        const created = await admin.request("POST", "/resources/invoices", invoice);
        const path = `/resources/invoices/${created.body.invoice_id}`;
        await receiver.waitFor(1, { timeoutMs: 30_000 });
        const row = await psql(url, {
          sql: `SELECT customer_id, invoice_date, billing_city IS NULL, total FROM invoice WHERE invoice_id = ${created.body.invoice_id}`,
        });
        const changed = await admin.request("PUT", path, { total: "99999999.9", billing_city: "Ōsaka" });
        await receiver.waitFor(2, { timeoutMs: 30_000 });
        const removed = await admin.request("DELETE", path);
        const bodies = await receive(3);

        expect(created.status, JSON.stringify(created.body)).to.equal(201);
        expect(created.body).to.deep.include({
          customer: { id: 23, name: "Gordon" },
          invoice_date: "2026-03-28T12:30:00.000+00:00",
          billing_city: null,
          total: "5.00",
        });
        expect(row).to.equal("23|2026-03-28 12:30:00|t|5.00");
        expect(changed.status, JSON.stringify(changed.body)).to.equal(200);
        expect(changed.body).to.deep.equal({ ...created.body, billing_city: "Ōsaka", total: "99999999.90" });
        expect(removed.status).to.equal(204);
        expect(await admin.request("GET", path)).to.include({ status: 404 });
        expect(bodies.map(({ data }) => data)).to.deep.equal([created.body, changed.body, changed.body]);
      });
    });

    it("refuse bodies by the mapped types, lengths and references", async () => {
      const { status, body } = await admin.request("POST", "/resources/invoices", {
        customer_id: 999_999,
        invoice_date: "yesterday-ish",
        billing_city: "x".repeat(41),
        total: 1.234,
      });

      expect(status).to.equal(422);
      expect(body.errors).to.deep.equal({
        customer_id: ["The selected customer id is invalid."],
        invoice_date: ["The invoice date field must be a valid date."],
        billing_city: ["The billing city field must not be greater than 40 characters."],
        total: ["The total field must have 0-2 decimal places."],
      });
    });

    it("keep a record that others refer to", async () => {
      const { status, body } = await admin.request("DELETE", "/resources/customers/23");
      // invoice_line refers to it, which no resource maps.
      const unmapped = await admin.request("DELETE", "/resources/invoices/1");

      expect(status).to.equal(409);
      expect(body).to.deep.equal({
        message: "The record cannot be deleted: other records refer to it.",
        code: "record.referenced",
      });
      expect(unmapped.status).to.equal(409);
      expect(await psql(url, { sql: "SELECT count(*) FROM customer WHERE customer_id = 23" })).to.equal("1");
    });
  });
}
