import { expect } from "chai";
import { deliveredBodies } from "../support/delivered.ts";
import { psql } from "../support/psql.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { subscribe, unsubscribeAll } from "../support/notes.ts";
import { modes, request, startService, type TestService, type TestUser } from "../support/service.ts";
import { tableFiles, tableSql } from "./tables.ts";

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

    describe("keys of several fields", () => {
      it("lead through every route, and stand in events as they do in addresses", async () => {
        await subscribe(admin, receiver, { resource: "prices" });
        const price = { sku: "A,1/ö", day: "2026-03-28", amount: "9.50", note: "first" };

        const made = await admin.request("POST", "/resources/prices", price);
        const id = "A%2C1%2F%C3%B6,2026-03-28";
        const shown = await admin.request("GET", `/resources/prices/${id}`);
        const encoded = await admin.request("GET", `/resources/prices/${encodeURIComponent(id)}`);
        const changed = await admin.request("PATCH", `/resources/prices/${id}`, { amount: "8.25" });
        const again = await admin.request("POST", "/resources/prices", price);
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

      it("tell ids apart that no record can have", async () => {
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

      it("take conditions, and batches by their ids", async () => {
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

      it("hold a join table between two resources, with relations from both sides", async () => {
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
  });
}
