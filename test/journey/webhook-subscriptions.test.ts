import { verify } from "@octokit/webhooks-methods";
import { expect } from "chai";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";
import { stateSql } from "../support/delivery-states.ts";
import { createNote, notesYaml, unsubscribeAll } from "../support/notes.ts";
import { startReceiver, type ReceivedRequest, type TestReceiver } from "../support/receiver.ts";
import { until } from "../support/wait.ts";
import { modes, request, serviceOfSuite, type Answer, type TestUser } from "../support/service.ts";

/** The state of a receiver in the answers. */
interface Shown {
  readonly is_active: boolean;
  readonly disabled_at: string | null;
  readonly disabled_reason: string | null;
  readonly failing_since: string | null;
  readonly last_success_at: string | null;
  readonly last_attempt_at: string | null;
}

/** A delivery of an operational event. */
interface Told {
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The fields of the answer to a creation that these tests read. */
interface Made {
  readonly id: number;
  readonly secret: string;
  readonly standard_secret: string;
  readonly headers: unknown;
}

function verifies(secret: string, { rawBody, headers }: ReceivedRequest, name: string): Promise<boolean> {
  return verify(secret, rawBody.toString(), String(headers[name]));
}
async function verifyAll(secret: string, standard: string, received: ReceivedRequest): Promise<void> {
  expect(await verifies(secret, received, "x-service-signature")).to.equal(true);
  const headers = received.headers as Record<string, string>;
  new StandardWebhook(standard).verify(received.rawBody.toString(), headers);
  new SvixWebhook(standard).verify(received.rawBody.toString(), headers);
  expect(headers["webhook-id"]).to.equal(headers["x-service-delivery"]);
}

for (const mode of modes) {
  describe(`what a webhook has of its own (${mode})`, () => {
    const service = serviceOfSuite({
      mode,
      resources: {
        "notes.yaml": notesYaml,
        "memos.yaml": notesYaml
          .replace("notes", "memos")
          .replace("Note", "Memo")
          .replace("triggers: [on_create, on_update, on_delete]", "triggers: [on_create]"),
        "quiet.yaml": notesYaml
          .replace("notes", "quiet")
          .replace("Note", "Quiet")
          .replace("[on_create, on_update, on_delete]", "[]"),
      },
      webhooks: { maxAttempts: 1_000 },
    });
    let receiver: TestReceiver;
    let ada: TestUser;

    before(async () => {
      ada = await service.createUser();
    });
    beforeEach(async () => {
      receiver = await startReceiver();
    });
    afterEach(async () => {
      await unsubscribeAll(ada);
      await receiver.close();
    });

    const subscribeWith = async (more: Readonly<Record<string, unknown>>): Promise<Made> => {
      const body = { url: receiver.url, resource: "notes", events: ["on_create"], ...more };
      const answer = await ada.request("POST", "/webhooks", body);
      expect(answer.status, JSON.stringify(answer.body)).to.equal(201);
      return answer.body as Made;
    };
    const next = async (): Promise<ReceivedRequest> => {
      const count = receiver.received.length + 1;
      await createNote(ada);
      return (await receiver.waitFor(count)).at(-1) as ReceivedRequest;
    };
    it("are verified by the stock libraries, with a secret of the receiver's own", async () => {
      const secret = "a-secret-of-the-receiver's-own!";
      const webhook = await subscribeWith({ secret });

      expect(webhook.secret).to.equal(secret);
      await verifyAll(secret, webhook.standard_secret, await next());
    });

    it("sign with both secrets during a rotation's grace, and with the new one alone after it", async () => {
      const old = await subscribeWith({});
      const path = `/webhooks/${old.id}`;

      const rotated = await ada.request("POST", `${path}/rotate-secret`, { grace: 600 });
      expect(rotated.status).to.equal(200);
      const { secret, standard_secret: standard } = rotated.body;
      expect(secret)
        .to.match(/^sec_\w{48}$/)
        .and.not.to.equal(old.secret);

      const during = await next();
      await verifyAll(secret, standard, during);
      expect(await verifies(old.secret, during, "x-service-signature-previous")).to.equal(true);
      new StandardWebhook(old.standard_secret).verify(
        during.rawBody.toString(),
        during.headers as Record<string, string>,
      );
      const shown = (await ada.request("GET", path)).body;
      expect(shown.masked_secret).to.equal(`sec_****${secret.slice(-4)}`);
      expect(Date.parse(shown.previous_secret_until)).to.be.above(Date.now());

      const alone = (await ada.request("POST", `${path}/rotate-secret`, { grace: 0 })).body;
      const after = await next();
      await verifyAll(alone.secret, alone.standard_secret, after);
      expect(after.headers).not.to.have.property("x-service-signature-previous");
      expect((await ada.request("GET", path)).body.previous_secret_until).to.equal(null);

      for (const grace of [-1, 604_801, 1.5, "60", null]) {
        const refused = await ada.request("POST", `${path}/rotate-secret`, { grace });
        expect(refused.status, String(grace)).to.equal(422);
        expect(refused.body.errors).to.have.all.keys("grace");
      }
      const ben = await service.createUser();
      expect((await ben.request("POST", `${path}/rotate-secret`, {})).status).to.equal(404);
    });

    it("carry the receiver's own headers, which are encrypted, masked, and kept behind the mask", async () => {
      const { id, headers } = await subscribeWith({ headers: { Authorization: "Bearer canary-1" } });
      expect(headers).to.deep.equal({ Authorization: "****" });
      expect((await next()).headers).to.include({ authorization: "Bearer canary-1" });

      const read = (await ada.request("GET", `/webhooks/${id}`)).body;
      const changed = { ...read, headers: { ...read.headers, "X-Api-Key": "canary-2" } };
      const answer = await ada.request("PUT", `/webhooks/${id}`, changed);
      expect(answer.body.headers).to.deep.equal({ Authorization: "****", "X-Api-Key": "****" });
      expect((await next()).headers).to.include({
        authorization: "Bearer canary-1",
        "x-api-key": "canary-2",
      });
      const { sql } = service.infrastructure;
      const rows = await sql("SELECT s::text AS text FROM svc.subscriptions AS s");
      const trail = await sql("SELECT a::text AS text FROM svc.audit AS a");
      expect(JSON.stringify([rows, trail])).not.to.contain("canary");

      await ada.request("PUT", `/webhooks/${id}`, { headers: null });
      expect((await next()).headers).not.to.have.property("authorization");
      const refused = await ada.request("PUT", `/webhooks/${id}`, { headers: { Host: "x" }, rate_limit: 0 });
      expect(refused.body.errors).to.have.all.keys("headers.Host", "rate_limit");
    });

    it("get no more attempts than their rate limit allows, and all of them in the end", async () => {
      const { id } = await subscribeWith({ rate_limit: 10 });
      const count = 8;
      for (let made = 0; made < count; made++) await createNote(ada, `note ${made}`);

      const received = await receiver.waitFor(count);

      const times = received.map(({ receivedAt }) => receivedAt.getTime());
      // A tenth of a second each, less the time that the first may have waited.
      expect((times.at(-1) ?? 0) - (times[0] ?? 0)).to.be.at.least(100 * (count - 2));
      expect((await ada.request("GET", `/webhooks/${id}`)).body.rate_limit).to.equal(10);
    });

    it("show the health of the receiver, and are switched off by a 410, without losing waiting events", async () => {
      const { id } = await subscribeWith({});
      const path = `/webhooks/${id}`;
      const shown = async (): Promise<Shown> => (await ada.request("GET", path)).body as Shown;
      await next();
      await until(async () => (await shown()).last_success_at !== null, { what: "the success" });
      expect(await shown()).to.include({ failing_since: null, is_active: true, disabled_reason: null });

      receiver.answer = { status: 410 };
      await next();
      await until(async () => !(await shown()).is_active, { what: "the subscription to be off" });
      const off = await shown();
      expect(off.disabled_reason).to.equal("gone");
      for (const time of [off.disabled_at, off.failing_since, off.last_attempt_at])
        expect(Date.parse(time ?? "")).to.be.above(Date.now() - 60_000);

      receiver.answer = {};
      const before = receiver.received.length;
      await ada.request("PUT", path, { is_active: true });
      await receiver.waitFor(before + 1);
      const on = await shown();
      expect(on).to.include({ is_active: true, disabled_at: null, disabled_reason: null });
    });

    it("get the events that pass their filter, and no others", async () => {
      const { id } = await subscribeWith({ filter: { text: { contains: "URGENT" } } });
      await createNote(ada, "can wait");
      await createNote(ada, "urgent: now");
      // After the one that does not pass, so that it has been fanned out then.
      await createNote(ada, "most urgent");

      const texts = (await receiver.waitFor(2)).map(
        ({ rawBody }) => JSON.parse(rawBody.toString()).data.text,
      );
      expect(texts).to.have.members(["urgent: now", "most urgent"]);
      const { body } = await ada.request("GET", `/webhook-deliveries?webhook_id=${id}`);
      expect(body.data).to.have.length(2);

      const wrong = { or: [{ txt: "x" }, { text: { gt: "x" } }] };
      const refused = await ada.request("PUT", `/webhooks/${id}`, { filter: wrong });
      expect(refused.body.errors).to.deep.equal({
        "filter.or.0.txt": ["There is no field txt; did you mean text?"],
        "filter.or.1.text.gt": [
          "The operator gt is not for text in a filter of webhooks; expected one of eq, ne, in, not_in, null, contains, starts_with, ends_with.",
        ],
      });
      const changed = await ada.request("PUT", `/webhooks/${id}`, { filter: null });
      expect(changed.body.filter).to.equal(null);
    });

    it("get the events of every resource that their user reads, with *", async () => {
      await subscribeWith({ resource: "*", events: ["on_create"], filter: { text: { starts_with: "all" } } });
      const ben = await service.createUser();
      await createNote(ben, "all of ben's");
      await createNote(ada, "all notes");
      await ada.request("POST", "/resources/memos", { text: "all memos" });

      const resources = (await receiver.waitFor(2)).map(({ rawBody }) => {
        const { resource, data } = JSON.parse(rawBody.toString());
        return `${resource}: ${data.text}`;
      });
      expect(resources).to.have.members(["notes: all notes", "memos: all memos"]);

      const refuse = async (body: unknown): Promise<unknown> =>
        (await ada.request("POST", "/webhooks", body)).body.errors;
      const url = receiver.url;
      expect(await refuse({ url, resource: "*", events: ["on_fire"] })).to.deep.equal({
        "events.0": [
          "The selected events.0 is invalid. The events of the resources are on_create, on_update, on_delete.",
        ],
      });
      expect(await refuse({ url, resource: "memos", events: ["on_delete"] })).to.deep.equal({
        "events.0": ["The selected events.0 is invalid. The events of memos are on_create."],
      });
      expect(await refuse({ url, resource: "quiet", events: ["on_create"] })).to.deep.equal({
        "events.0": [
          "The selected events.0 is invalid. The resource quiet has no events: its mapping file lists no triggers.",
        ],
      });
      expect(await refuse({ url, resource: "*", events: ["on_create"], filter: { no: 1 } })).to.have.all.keys(
        "filter.no",
      );
    });

    it("are tested by a ping that is sent at once, signed, with own headers, and counts nowhere", async () => {
      const body = { headers: { "X-Api-Key": "canary" }, is_active: false };
      const { id, secret, standard_secret: standard } = await subscribeWith(body);
      const path = `/webhooks/${id}/test`;
      receiver.answer = { status: 418, body: "short and stout" };

      const headers = { "Idempotency-Key": "ping" };
      const send = (): Promise<Answer> =>
        request({ url: service.baseUrl + path, method: "POST", token: ada.token, headers });
      const answer = await send();

      expect(answer.status).to.equal(200);
      expect((await send()).body).to.deep.equal(answer.body);
      expect(answer.body).to.include({
        number: 1,
        status_code: 418,
        error: "http",
        response_body: "short and stout",
        trigger: "test",
        address: "127.0.0.1",
      });
      const [ping] = (await receiver.waitFor(1)) as [ReceivedRequest];
      await verifyAll(secret, standard, ping);
      expect(JSON.parse(ping.rawBody.toString())).to.include({ event: "ping", resource: "notes" });
      expect(ping.headers).to.include({
        "x-api-key": "canary",
        "x-service-delivery": answer.body.delivery_id,
      });
      const again = await ada.request("POST", path);
      expect([again.status, again.body.code, again.headers.get("retry-after")]).to.deep.equal([
        429,
        "rate.exceeded",
        "1",
      ]);
      // The tests themselves set the reason; there are two.
      expect(again.body.message).to.equal(
        "A webhook is tested at most once a second. Try again in 1 second.",
      );
      expect((await ada.request("GET", `/webhook-deliveries?webhook_id=${id}`)).body.data).to.deep.equal([]);
      expect((await ada.request("GET", `/webhooks/${id}`)).body).to.include({ last_attempt_at: null });
      expect((await ada.request("POST", path, { url: "x" })).status).to.equal(422);
      const ben = await service.createUser();
      expect((await ben.request("POST", path)).status).to.equal(404);
      await ada.request("DELETE", `/webhooks/${id}`);
      expect((await ada.request("POST", path)).status).to.equal(404);
      expect(receiver.received).to.have.length(1);
    });

    it("are listed for admins by user, and for no other user", async () => {
      const { id } = await subscribeWith({});
      const admin = await service.createUser({ isAdmin: true });
      const idsOf = async (query: string): Promise<readonly number[]> => {
        const answer = await admin.request("GET", `/webhooks?${query}`);
        expect(answer.status, JSON.stringify(answer.body)).to.equal(200);
        return answer.body.data.map((webhook: { id: number }) => webhook.id);
      };

      expect(await idsOf("")).to.deep.equal([]);
      expect(await idsOf(`user_id=${ada.id}`)).to.deep.equal([id]);
      expect(await idsOf("user_id=*&filter[resource]=notes&per_page=5")).to.deep.equal([id]);
      const isOff = "filter[is_active]=false&filter[disabled_reason]=user";
      expect(await idsOf(`user_id=*&${isOff}`)).to.deep.equal([]);
      const { sql } = service.infrastructure;
      await sql("UPDATE svc.users SET disabled_at = now() WHERE id = $1", [ada.id]);
      expect(await idsOf(`user_id=*&${isOff}`)).to.deep.equal([id]);
      expect(await idsOf(`user_id=${ada.id}&${isOff}`)).to.deep.equal([id]);
      await sql("UPDATE svc.users SET disabled_at = NULL WHERE id = $1", [ada.id]);
      expect((await ada.request("GET", "/webhooks?user_id=*")).body.code).to.equal("user.forbidden");
      expect((await ada.request("GET", `/webhooks?user_id=${admin.id}`)).status).to.equal(403);
      expect((await ada.request("GET", `/webhooks?user_id=${ada.id}`)).body.data).to.have.length(1);
      expect((await admin.request("GET", "/webhooks?user_id=x")).body.errors).to.have.all.keys("user_id");
    });

    it("report to admins by operational events when they are switched off, and when a delivery has failed", async () => {
      const admin = await service.createUser({ isAdmin: true });
      const body = {
        url: `${receiver.url}/admin`,
        resource: "service",
        events: ["webhook.disabled", "webhook.failing", "delivery.failed"],
      };
      expect((await ada.request("POST", "/webhooks", body)).body.errors).to.deep.equal({
        resource: ["Only admins get the events of service."],
      });
      const watching = await admin.request("POST", "/webhooks", { ...body, filter: { user_id: ada.id } });
      expect(watching.status, JSON.stringify(watching.body)).to.equal(201);
      const { id } = await subscribeWith({});
      const told = (): readonly Told[] =>
        receiver.received
          .filter(({ path }) => path === "/admin")
          .map(({ rawBody }) => JSON.parse(rawBody.toString()) as Told);

      // The receiver answers 410 for its own webhook, and receives the operational events about it.
      receiver.answer = ({ path }, response) => response.writeHead(path === "/admin" ? 200 : 410).end();
      await createNote(ada);
      await until(() => told().length === 1, { what: "webhook.disabled" });
      const { sql } = service.infrastructure;
      const failHeld = async (): Promise<boolean> => {
        const text =
          "UPDATE svc.deliveries SET held_at = NULL, status = 'failed', last_error = 'spent' WHERE subscription_id = $1 AND status = 'held' RETURNING id";
        return (await sql(text, [id])).length === 1;
      };
      await until(failHeld, { what: "the held delivery" });
      await until(() => told().length === 2, { what: "delivery.failed" });

      const [disabled, failed] = told();
      expect(disabled).to.include({ event: "webhook.disabled", resource: "service" });
      const common = { webhook_id: id, user_id: ada.id, receiver: receiver.url, resource: "notes" };
      expect(disabled?.data).to.deep.equal({ ...common, reason: "gone" });
      expect(failed?.event).to.equal("delivery.failed");
      expect(failed?.data).to.include({ ...common, reason: "spent" });

      const path = `/webhooks/${watching.body.id}`;
      await admin.request("PUT", path, { is_active: false });
      await createNote(ada);
      await until(failHeld, { what: "another held delivery" });
      await admin.request("PUT", path, { is_active: true });
      await until(() => told().length === 3, { what: "the event that was held" });

      // Changes of the watching webhook itself make no event.
      receiver.answer = { status: 410 };
      await ada.request("PUT", `/webhooks/${id}`, { is_active: true });
      await sql(
        `UPDATE svc.deliveries SET held_at = NULL, ${stateSql("'pending'").set} WHERE subscription_id = $1`,
        [id],
      );
      await sql(
        `UPDATE svc.deliveries SET held_at = NULL, ${stateSql("'failed'").set} WHERE subscription_id = $1`,
        [id],
      );
      await until(async () => (await admin.request("GET", path)).body.disabled_reason === "gone", {
        what: "the watching webhook to be off",
      });
      const [row] = await sql<{ own: number }>(
        "SELECT count(*)::int AS own FROM svc.events WHERE resource = 'service' AND snapshot ->> 'webhook_id' = $1",
        [String(watching.body.id)],
      );
      expect(row?.own).to.equal(0);
      await unsubscribeAll(admin);
    });
  });
}
