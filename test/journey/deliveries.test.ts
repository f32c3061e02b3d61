import { verify } from "@octokit/webhooks-methods";
import { expect } from "chai";
import { exchanges, queues } from "../../src/broker/topology.ts";
import type { IncomingMessage } from "../../src/broker/broker.ts";
import { createNote, notesYaml, subscribe, unsubscribeAll, untilDelivery } from "../support/notes.ts";
import { endlessBody, hang, startReceiver, type TestReceiver } from "../support/receiver.ts";
import { modes, serviceOfSuite, type Answer, type TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";

const plans = `
name: plans
model: Plan
fields:
  id: { type: Int, id: true }
  title: { type: String }
  user_id: { type: Int }
triggers: [on_create]
ownerColumn: user_id
webhookMaxAttempts: 2
webhookBackoff: [0.01]
`;

for (const mode of modes) {
  describe(`deliveries (${mode})`, function () {
    this.timeout(60_000);
    const service = serviceOfSuite({
      mode,
      resources: { "notes.yaml": notesYaml, "plans.yaml": plans },
      webhooks: { maxAttempts: 3, timeoutMs: 500, manualRetryLimit: 2 },
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

    /** Waits until every event so far is fanned out and every delivery settled. */
    async function untilQuiet(): Promise<void> {
      await until(
        async () => {
          const [open] = await service.infrastructure.sql<{ count: number }>(
            `SELECT ((SELECT count(*) FROM svc.outbox)
              + (SELECT count(*) FROM svc.delivery_queue WHERE due_at IS NOT NULL) + (SELECT coalesce(sum(cardinality(delivery_ids)), 0) FROM svc.flights))::int AS count`,
          );
          return open?.count === 0;
        },
        { what: "all deliveries to settle" },
      );
    }

    it("sends create, update and delete once each, signed over the raw bytes", async () => {
      const { id, secret } = await subscribe(ada, receiver);

      const note = await createNote(ada, 'žluťoučký kůň 🐎   \u0007 "quoted"');
      await receiver.waitFor(1);
      await ada.request("PUT", `/resources/notes/${note.id}`, { text: "changed" });
      await receiver.waitFor(2);
      await ada.request("DELETE", `/resources/notes/${note.id}`);
      const received = await receiver.waitFor(3);
      await untilQuiet();

      expect(received).to.have.length(3);
      const bodies = received.map(({ rawBody }) => JSON.parse(rawBody.toString("utf8")));
      expect(bodies.map(({ event }) => event)).to.deep.equal(["on_create", "on_update", "on_delete"]);
      expect(bodies[0].data).to.deep.equal(note);
      expect(bodies[1].data).to.deep.equal({ ...note, text: "changed" });
      expect(bodies[2].data).to.deep.equal({ ...note, text: "changed" });
      for (const [index, { headers, rawBody, method, path }] of received.entries()) {
        const body = bodies[index];
        expect(method).to.equal("POST");
        expect(path).to.equal("/hook");
        expect(headers["content-type"]).to.equal("application/json");
        expect(headers["user-agent"]).to.equal("Service-Webhook/1.0");
        expect(headers["x-service-event"]).to.equal(body.event_id);
        expect(headers["x-service-delivery"]).to.equal(body.delivery_id);
        expect(Object.keys(body)).to.deep.equal([
          "event",
          "resource",
          "event_id",
          "delivery_id",
          "data",
          "timestamp",
        ]);
        expect(body.resource).to.equal("notes");
        expect(body.timestamp).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
        const signature = String(headers["x-service-signature"]);
        expect(signature).to.match(/^sha256=[0-9a-f]{64}$/);
        expect(await verify(secret, rawBody.toString("utf8"), signature)).to.equal(true);
        expect(await verify(`${secret}x`, rawBody.toString("utf8"), signature)).to.equal(false);
      }
      expect(new Set(bodies.map(({ delivery_id }) => delivery_id)).size).to.equal(3);
      const list = await ada.request("GET", `/webhook-deliveries?webhook_id=${id}`);
      expect(list.body.data.map((delivery: Answer["body"]) => delivery.status)).to.deep.equal([
        "delivered",
        "delivered",
        "delivered",
      ]);
    });

    it("sends only to active subscriptions of the resource and trigger whose user may see the record", async () => {
      const [stranger, admin] = [await service.createUser(), await service.createUser({ isAdmin: true })];
      const path = (name: string): { url: string } => ({ url: `${receiver.url}/${name}` });
      await subscribe(ada, receiver, path("match"));
      await subscribe(ada, receiver, { ...path("second-match"), events: ["on_create"] });
      await subscribe(admin, receiver, path("admin-match"));
      await subscribe(ada, receiver, { ...path("other-trigger"), events: ["on_delete"] });
      await subscribe(ada, receiver, { ...path("inactive"), is_active: false });
      await subscribe(ada, receiver, { ...path("other-resource"), resource: "plans", events: ["on_create"] });
      await subscribe(stranger, receiver, path("stranger"));

      await createNote(ada);
      await receiver.waitFor(3);
      await untilQuiet();

      expect(receiver.received.map((request) => request.path).toSorted()).to.deep.equal([
        "/admin-match",
        "/match",
        "/second-match",
      ]);
    });

    it("makes no event for a change that was rolled back, and one for a change by another program", async () => {
      await subscribe(ada, receiver);
      const { pool } = service.infrastructure.database;
      const client = await pool.connect();
      try {
        await client.query("BEGIN");
        await client.query("INSERT INTO notes (text, user_id) VALUES ('rolled back', $1)", [ada.id]);
        await client.query("ROLLBACK");
        await client.query("INSERT INTO notes (text, user_id) VALUES ('by another program', $1)", [ada.id]);
      } finally {
        client.release();
      }

      const received = await receiver.waitFor(1);
      await untilQuiet();

      expect(received.map(({ rawBody }) => JSON.parse(rawBody.toString()).data.text)).to.deep.equal([
        "by another program",
      ]);
    });

    it("retries a receiver that fails twice, with the same bytes and delivery id", async () => {
      const answers: { status: number; body?: string }[] = [
        { status: 500, body: "no" },
        { status: 503 },
        { status: 204 },
      ];
      receiver.answer = (_, response) => {
        const answer = answers.shift();
        response.writeHead(answer?.status ?? 200, { "x-answer": "kept" }).end(answer?.body);
      };
      const { id } = await subscribe(ada, receiver, { headers: { "X-Signature": "canary" } });

      const note = await createNote(ada);
      const delivery = await untilDelivery(ada, id, "delivered");

      expect(receiver.received).to.have.length(3);
      expect(new Set(receiver.received.map(({ rawBody }) => rawBody.toString("hex"))).size).to.equal(1);
      expect(new Set(receiver.received.map(({ headers }) => headers["x-service-delivery"]))).to.deep.equal(
        new Set([delivery.uuid]),
      );
      expect(delivery).to.include({
        attempt: 3,
        max_attempts: 3,
        trigger_kind: "automatic",
        resource: "notes",
        event: "on_create",
        record_id: String(note.id),
        next_attempt_at: null,
        last_error: null,
      });
      const [first] = receiver.received;
      const sent = first?.rawBody.toString() ?? "";
      expect(delivery.request.body).to.equal(sent);
      expect(delivery.occurred_at).to.equal(JSON.parse(sent).timestamp);
      // The request is shown without its signatures.
      const { "X-Signature": ownHeader, ...shown } = delivery.request.headers;
      expect([ownHeader, first?.headers["x-signature"]]).to.deep.equal(["****", "canary"]);
      for (const [name, value] of Object.entries(shown))
        if (/signature/i.test(name)) expect(value).to.match(/^(sha256=|v1,)?…$/);
        else if (!/timestamp/i.test(name)) expect(first?.headers[name.toLowerCase()]).to.equal(value);
      expect(delivery.request.headers).to.include({
        "X-Service-Signature": "sha256=…",
        "X-Service-Delivery": delivery.uuid,
      });
      expect(
        delivery.attempts.map(({ number, status_code, error }: Answer["body"]) => [
          number,
          status_code,
          error,
        ]),
      ).to.deep.equal([
        [1, 500, "http"],
        [2, 503, "http"],
        [3, 204, null],
      ]);
      expect(delivery.attempts[0].response_body).to.equal("no");
      expect(delivery.attempts[0].response_headers["x-answer"]).to.equal("kept");
      expect(delivery.attempts[0].response_truncated).to.equal(false);
      for (const attempt of delivery.attempts) {
        expect(attempt).to.include({
          address: "127.0.0.1",
          trigger: "scheduled",
          dns_ms: null,
          tls_ms: null,
        });
        expect(attempt.first_byte_ms).to.be.within(0, attempt.duration_ms + 1);
      }
      // The second attempt reuses the connection of the first.
      expect(delivery.attempts.map((attempt: Answer["body"]) => attempt.connect_ms !== null)).to.deep.equal([
        true,
        false,
        false,
      ]);
    });

    it("fails a delivery whose attempts are spent, dead-letters it, and retries it by hand up to the limit", async () => {
      const dead: IncomingMessage[] = [];
      const consumption = await service.infrastructure.broker.consume({
        queue: queues.dead,
        prefetch: 100,
        onMessage(message) {
          dead.push(message);
          message.ack();
        },
      });
      receiver.answer = { status: 500 };
      const { id } = await subscribe(ada, receiver);

      await createNote(ada);
      const failed = await untilDelivery(ada, id, "failed");

      expect(failed).to.include({
        attempt: 3,
        max_attempts: 3,
        next_attempt_at: null,
        root_delivery_id: failed.id,
        parent_delivery_id: null,
      });
      const letter = await until(
        () => dead.find(({ headers }) => headers["x-svc-delivery"] === failed.uuid),
        { what: "the dead letter" },
      );
      expect(letter.headers["x-svc-event"]).to.equal(failed.event_uuid);
      expect(letter.headers["x-svc-reason"]).to.be.a("string").and.not.equal("");
      expect(JSON.parse(letter.body.toString()).delivery_id).to.equal(failed.uuid);

      const second = await ada.request("POST", `/webhook-deliveries/${failed.id}/retry`);
      expect(second.status).to.equal(201);
      expect(second.body).to.include({
        status: "pending",
        attempt: 0,
        trigger_kind: "manual",
        parent_delivery_id: failed.id,
        root_delivery_id: failed.id,
        event_id: failed.event_id,
      });
      expect(second.body.uuid).to.not.equal(failed.uuid);
      await until(
        async () =>
          (await ada.request("GET", `/webhook-deliveries/${second.body.id}`)).body.status === "failed",
        { what: "the retry to fail" },
      );
      receiver.answer = { status: 200 };
      const third = await ada.request("POST", `/webhook-deliveries/${second.body.id}/retry`);
      expect(third.status).to.equal(201);
      expect(third.body).to.include({ parent_delivery_id: second.body.id, root_delivery_id: failed.id });
      const done = await until(
        async () => {
          const { body } = await ada.request("GET", `/webhook-deliveries/${third.body.id}`);
          return body.status === "delivered" && body;
        },
        { what: "the second retry" },
      );
      expect(done.attempts.map(({ trigger }: Answer["body"]) => trigger)).to.deep.equal(["manual"]);
      const resent = JSON.parse(receiver.received.at(-1)?.rawBody.toString() ?? "");
      expect(resent).to.include({ delivery_id: third.body.uuid, event_id: failed.event_uuid });

      const spent = await ada.request("POST", `/webhook-deliveries/${second.body.id}/retry`);
      expect(spent.status).to.equal(422);
      expect(spent.body.message).to.equal("The manual retry limit of 2 for this delivery has been reached.");
      await consumption.stop();
    });

    it("goes by the resource's own attempts and backoff", async () => {
      receiver.answer = { status: 500 };
      const { id } = await subscribe(ada, receiver, { resource: "plans", events: ["on_create"] });

      await ada.request("POST", "/resources/plans", { title: "x" });
      const failed = await untilDelivery(ada, id, "failed");

      expect(failed).to.include({ attempt: 2, max_attempts: 2 });
    });

    for (const { what, answer, error } of [
      { what: "a receiver that never answers", answer: () => hang, error: "timeout" },
      {
        what: "a redirect",
        answer: (other: string) => ({ status: 302, headers: { location: other } }),
        error: "http",
      },
    ]) {
      it(`counts ${what} as a failed attempt`, async () => {
        const other = await startReceiver();
        receiver.answer = answer(`${other.url}/elsewhere`);
        const { id } = await subscribe(ada, receiver, { resource: "plans", events: ["on_create"] });

        await ada.request("POST", "/resources/plans", { title: "x" });
        const failed = await untilDelivery(ada, id, "failed");

        expect(failed.attempts[0].error).to.equal(error);
        expect(other.received).to.have.length(0);
        await other.close();
      });
    }

    it("cuts a body that never ends at 16 KiB", async () => {
      receiver.answer = endlessBody();
      const { id } = await subscribe(ada, receiver);

      await createNote(ada);
      const delivery = await untilDelivery(ada, id, "delivered");

      expect(delivery.attempts[0].response_truncated).to.equal(true);
      expect(delivery.attempts[0].response_body).to.have.length(16 * 1024);
    });

    it("puts messages that are neither events nor deliveries on svc.dead", async () => {
      const dead: IncomingMessage[] = [];
      const { broker } = service.infrastructure;
      const consumption = await broker.consume({
        queue: queues.dead,
        prefetch: 10,
        onMessage(message) {
          dead.push(message);
          message.ack();
        },
      });

      await broker.publish([
        {
          exchange: exchanges.events,
          routingKey: "notes.on_create",
          messageId: "strange-1",
          body: Buffer.from("{"),
        },
        {
          exchange: exchanges.deliveries,
          routingKey: "first",
          messageId: "strange-2",
          body: Buffer.from('{"delivery_id": 1.5}'),
        },
      ]);

      // Earlier tests left dead letters in the queue.
      const isDead = (id: string): boolean => dead.some(({ messageId }) => messageId === id);
      await until(() => isDead("strange-1") && isDead("strange-2"), { what: "two dead letters" });
      const reasons = Object.fromEntries(
        dead.map(({ messageId, headers }) => [messageId, headers["x-svc-reason"]]),
      );
      expect(reasons).to.include({
        "strange-1": "not an event of this service",
        "strange-2": "not a delivery",
      });
      await consumption.stop();
    });
  });
}
