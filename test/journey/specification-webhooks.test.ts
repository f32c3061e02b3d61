import { expect } from "chai";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { modes, startService, type Answer, type TestService, type TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";
import { create, shop } from "./shop.ts";

type Body = Answer["body"];

const dateTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/;
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * The value sent for a field of `kinds`, and the value shown (contract, section 4; null is shown as
 * null everywhere).
 */
const shownAs: readonly (readonly [field: string, sent: unknown, shown: unknown])[] = [
  ["due_at", "2026-03-28T14:30:00.123Z", "2026-03-28T14:30:00.123+00:00"],
  ["due_at", "2026-03-28T14:30:00.123456+02:00", "2026-03-28T12:30:00.123+00:00"],
  ["due_at", "2026-03-28", "2026-03-28T00:00:00.000+00:00"],
  ["due_at", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000+00:00"],
  ["due_at", "9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999+00:00"],
  ["price", "19.9", "19.9000"],
  ["price", 0, "0.0000"],
  ["price", "99999999999999999999999999.9999", "99999999999999999999999999.9999"],
  ["price", "-0.0001", "-0.0001"],
  ["big", 9_007_199_254_740_991, 9_007_199_254_740_991],
  ["big", "9007199254740992", "9007199254740992"],
  ["big", "-9223372036854775808", "-9223372036854775808"],
  ["big", "7", 7],
  ["small", -2_147_483_648, -2_147_483_648],
  ["small", "5", 5],
  ["small", -0, 0],
  ["ratio", 0.1, 0.1],
  ["ratio", 1e308, 1e308],
  ["ratio", 5e-324, 5e-324],
  ["data", "AAH/", "AAH/"],
  ["token", "AABBCCDD-0000-4000-8000-00000000000A", "aabbccdd-0000-4000-8000-00000000000a"],
  ["is_done", 1, true],
  ["tags", ["a", "b,c", '"d"', "{}"], ["a", "b,c", '"d"', "{}"]],
  ["tags", [], []],
  ["meta", { a: [1, "x", null, { b: true }], "": 0 }, { a: [1, "x", null, { b: true }], "": 0 }],
  ["meta", [1.5, "2026-03-28"], [1.5, "2026-03-28"]],
  ["text", "žluťoučký 🐎 \u0007 \u2028 \\ \"'", "žluťoučký 🐎 \u0007 \u2028 \\ \"'"],
];

for (const mode of modes) {
  describe(`specification of webhooks and values (${mode})`, () => {
    let service: TestService;
    let receiver: TestReceiver;
    let ada: TestUser;

    before(async () => {
      service = await startService({ mode, resources: shop, webhooks: { maxAttempts: 1 } });
      receiver = await startReceiver();
      ada = await service.createUser();
    });
    after(async () => {
      await receiver.close();
      await service.stop();
    });
    afterEach(async () => {
      for (const { id } of (await ada.request("GET", "/webhooks")).body.data)
        await ada.request("DELETE", `/webhooks/${id}`);
      receiver.answer = { status: 200 };
    });

    const subscribe = (changes: object = {}): Promise<Answer> =>
      ada.request("POST", "/webhooks", {
        url: `${receiver.url}/hook`,
        resource: "kinds",
        events: ["on_create", "on_update", "on_delete"],
        ...changes,
      });

    describe("values, in answers and in webhooks alike", () => {
      it("are shown as the contract says", async () => {
        const { id } = (await subscribe()).body;
        const records: Body[] = [];
        for (const [field, sent, shown] of shownAs) {
          const created = await create(ada, "kinds", { text: "x", [field]: sent });
          expect(created[field], `${field} ${JSON.stringify(sent)}`).to.deep.equal(shown);
          records.push(created);
        }
        const blank = await create(ada, "kinds", { text: "x" });
        expect(blank).to.deep.equal({
          kind_id: blank.kind_id,
          text: "x",
          small: null,
          big: null,
          ratio: null,
          price: null,
          is_done: false,
          due_at: null,
          meta: null,
          data: null,
          token: null,
          tags: [],
          user_id: ada.id,
        });
        records.push(blank);

        const sent = await until(
          () =>
            receiver.received.length >= records.length &&
            receiver.received.map(({ rawBody }) => JSON.parse(rawBody.toString())),
          { what: "every record's webhook" },
        );

        const byKey = (a: Body, b: Body): number => a.kind_id - b.kind_id;
        expect(sent.map(({ data }) => data).toSorted(byKey)).to.deep.equal(records.toSorted(byKey));
        expect((await ada.request("GET", `/webhook-deliveries?webhook_id=${id}`)).body.total).to.equal(
          records.length,
        );
      });
    });

    describe("/webhooks", () => {
      it("POST answers 201 with every field, and the secret unmasked", async () => {
        const { status, body } = await subscribe({ description: " for tests " });

        expect(status).to.equal(201);
        const { id, secret, standard_secret: standardSecret, created_at, updated_at, ...rest } = body;
        expect(rest).to.deep.equal({
          user_id: ada.id,
          url: `${receiver.url}/hook`,
          resource: "kinds",
          events: ["on_create", "on_update", "on_delete"],
          is_active: true,
          description: "for tests",
          filter: null,
          headers: {},
          rate_limit: null,
          previous_secret_until: null,
          disabled_at: null,
          disabled_reason: null,
          failing_since: null,
          last_attempt_at: null,
          last_success_at: null,
        });
        expect(standardSecret).to.equal(`whsec_${Buffer.from(secret).toString("base64")}`);
        expect(id).to.be.a("number");
        expect(secret).to.be.a("string");
        expect(created_at).to.match(dateTime).and.equal(updated_at);
        const shown = await ada.request("GET", `/webhooks/${id}`);
        expect([shown.status, shown.body]).to.deep.equal([
          200,
          { id, ...rest, masked_secret: `sec_****${secret.slice(-4)}`, created_at, updated_at },
        ]);
        expect((await subscribe()).body.secret).to.not.equal(secret);
      });

      it("GET lists the newest first", async () => {
        const ids = [(await subscribe()).body.id, (await subscribe()).body.id];

        const { status, body } = await ada.request("GET", "/webhooks");

        expect(status).to.equal(200);
        expect(Object.keys(body)).to.deep.equal(["data"]);
        expect(body.data.map(({ id }: Body) => id)).to.deep.equal(ids.toReversed());
      });

      it("PUT changes url, events, is_active and description, and nothing when nothing is sent", async () => {
        const { id } = (await subscribe()).body;
        const changes = {
          url: "https://example.com/",
          events: ["on_delete"],
          is_active: false,
          description: "new",
        };
        const before = (await ada.request("GET", `/webhooks/${id}`)).body;

        const unchanged = await ada.request("PUT", `/webhooks/${id}`, {});
        const changed = await ada.request("PUT", `/webhooks/${id}`, changes);
        const moved = await ada.request("PUT", `/webhooks/${id}`, { resource: "pages" });

        expect([unchanged.status, unchanged.body]).to.deep.equal([200, before]);
        expect(changed.status).to.equal(200);
        const { updated_at, disabled_at } = changed.body;
        expect(disabled_at).to.match(dateTime);
        expect(changed.body).to.deep.equal({
          ...before,
          ...changes,
          updated_at,
          disabled_at,
          disabled_reason: "owner",
        });
        expect([moved.status, Object.keys(moved.body.errors)]).to.deep.equal([422, ["resource"]]);
      });

      it("POST refuses an event that the resource does not emit", async () => {
        const { status, body } = await subscribe({ resource: "pages", events: ["on_delete", "on_create"] });

        expect([status, body]).to.deep.equal([
          422,
          {
            message: "The selected events.1 is invalid. The events of pages are on_delete.",
            code: "validation.failed",
            errors: { "events.1": ["The selected events.1 is invalid. The events of pages are on_delete."] },
          },
        ]);
      });

      it("DELETE answers 204, and the webhook is gone", async () => {
        const { id } = (await subscribe()).body;

        const answer = await ada.request("DELETE", `/webhooks/${id}`);

        expect([answer.status, answer.body]).to.deep.equal([204, undefined]);
        expect((await ada.request("GET", `/webhooks/${id}`)).status).to.equal(404);
      });
    });

    describe("/webhook-deliveries", () => {
      it("shows every field of a delivery, and with its id those of its attempts", async () => {
        receiver.answer = { status: 500, body: "not today", headers: { "X-Why": "Sunday" } };
        const { id: webhookId } = (await subscribe()).body;
        await create(ada, "kinds", { text: "x" });
        const path = `/webhook-deliveries?webhook_id=${webhookId}`;
        const listed = await until(
          async () => (await ada.request("GET", `${path}&status=failed`)).body.data[0],
          { what: "the failed delivery" },
        );

        const { status, body } = await ada.request("GET", `/webhook-deliveries/${listed.id}`);

        expect(status).to.equal(200);
        const { attempts, request: _request, ...shown } = body;
        expect(shown).to.deep.equal(listed);
        const {
          id,
          uuid: own,
          event_id,
          event_uuid,
          created_at,
          updated_at,
          last_error,
          occurred_at,
          record_id,
          ...rest
        } = shown;
        expect(occurred_at).to.match(/^\d{4}-\d\d-\d\dT[\d:]+\.\d{6}Z$/);
        expect(record_id).to.be.a("string");
        expect(rest).to.deep.equal({
          subscription_id: webhookId,
          parent_delivery_id: null,
          root_delivery_id: id,
          trigger_kind: "automatic",
          resource: "kinds",
          event: "on_create",
          status: "failed",
          attempt: 1,
          max_attempts: 1,
          url: `${receiver.url}/hook`,
          next_attempt_at: null,
        });
        expect([id, event_id].map((value) => typeof value)).to.deep.equal(["number", "number"]);
        expect([own, event_uuid].every((value) => uuid.test(value))).to.equal(true);
        expect([created_at, updated_at].every((value) => dateTime.test(value))).to.equal(true);
        expect(last_error).to.match(/500/);
        const [
          { started_at, duration_ms, response_headers, connect_ms: _connect, first_byte_ms, ...attempt },
        ] = attempts;
        expect(first_byte_ms).to.be.within(0, duration_ms + 1);
        expect(attempts).to.have.length(1);
        expect(attempt).to.deep.equal({
          number: 1,
          status_code: 500,
          error: "http",
          response_body: "not today",
          response_truncated: false,
          trigger: "scheduled",
          address: "127.0.0.1",
          dns_ms: null,
          tls_ms: null,
        });
        expect(started_at).to.match(dateTime);
        expect(duration_ms).to.be.a("number").within(0, 60_000);
        expect(response_headers).to.include({ "x-why": "Sunday" });

        const headers = receiver.received.at(-1)?.headers;
        expect([headers?.["x-service-delivery"], headers?.["x-service-event"]]).to.deep.equal([
          own,
          event_uuid,
        ]);
        for (const [filter, total] of [
          [`event_id=${event_id}`, 1],
          ["status=failed", 1],
          ["status=delivered", 0],
          [`event_id=${event_id + 1_000}`, 0],
        ] as const)
          expect((await ada.request("GET", `${path}&${filter}`)).body.total, filter).to.equal(total);
      });

      it("lists in the paginated envelope, newest first", async () => {
        const { id: webhookId } = (await subscribe()).body;
        for (const text of ["a", "b", "c"]) await create(ada, "kinds", { text });
        const path = `/webhook-deliveries?webhook_id=${webhookId}`;
        await until(async () => (await ada.request("GET", `${path}&status=delivered`)).body.total === 3, {
          what: "three deliveries",
        });

        const { body } = await ada.request("GET", `${path}&per_page=2`);

        const { data, next_page_url, ...rest } = body;
        expect(rest).to.deep.equal({
          current_page: 1,
          last_page: 2,
          per_page: 2,
          total: 3,
          prev_page_url: null,
        });
        expect(next_page_url).to.equal(`${service.baseUrl}${path}&per_page=2&page=2`);
        expect(data[0].id).to.be.greaterThan(data[1].id);
      });
    });
  });
}
