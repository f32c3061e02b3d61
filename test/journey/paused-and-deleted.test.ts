import { expect } from "chai";
import { auditOf } from "../support/audit.ts";
import { createNote, notesYaml, subscribe, unsubscribeAll, untilDelivery } from "../support/notes.ts";
import { hang, startReceiver, type TestReceiver } from "../support/receiver.ts";
import { modes, serviceOfSuite, type Answer, type TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";

for (const mode of modes) {
  describe(`deliveries of subscriptions that are paused or deleted (${mode})`, () => {
    const service = serviceOfSuite({
      mode,
      resources: { "notes.yaml": notesYaml },
      webhooks: { maxAttempts: 3, timeoutMs: 500, backoffMs: [300] },
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

    it("cancels the unfinished deliveries of a subscription that is deleted", async () => {
      const { id } = await subscribe(ada, receiver);
      receiver.answer = hang;
      await createNote(ada);
      await receiver.waitFor(1);

      await ada.request("DELETE", `/webhooks/${id}`);

      const cancelled = await untilDelivery(ada, id, "cancelled");
      expect(cancelled.last_error).to.equal("The subscription was deleted.");
      const refused = await ada.request("POST", `/webhook-deliveries/${cancelled.id}/retry`);
      expect(refused.status).to.equal(422);
    });

    it("refuses a retry for a user whom SQL deleted as one whose subscription is gone", async () => {
      const [eve, admin] = [await service.createUser(), await service.createUser({ isAdmin: true })];
      const { id } = await subscribe(eve, receiver);
      await createNote(eve);
      const delivery = await untilDelivery(eve, id, "delivered");
      await service.infrastructure.sql("DELETE FROM svc.users WHERE id = $1", [eve.id]);

      const { status, body } = await admin.request("POST", `/webhook-deliveries/${delivery.id}/retry`);

      expect([status, body.message]).to.deep.equal([422, "The subscription of this delivery was deleted."]);
    });

    /** Returns the texts of the received notes, in order. */
    const texts = (): readonly string[] =>
      receiver.received.map(({ rawBody }) => String(JSON.parse(rawBody.toString()).data.text));

    const untilHeld = (id: number, count: number): Promise<Answer["body"]> =>
      until(
        async () => {
          const { body } = await ada.request("GET", `/webhook-deliveries?webhook_id=${id}&status=held`);
          return body.total === count && body.data;
        },
        { what: `${count} held deliveries` },
      );

    const turn = async (id: number, isActive: boolean): Promise<void> => {
      expect((await ada.request("PUT", `/webhooks/${id}`, { is_active: isActive })).status).to.equal(200);
    };

    it("holds the deliveries of a paused subscription, and sends them when it is active again", async () => {
      receiver.answer = { status: 500 };
      const { id } = await subscribe(ada, receiver);
      await createNote(ada, "held");
      await receiver.waitFor(1);
      await turn(id, false);
      receiver.answer = { status: 200 };
      const [held] = await untilHeld(id, 1);
      expect(held).to.include({ next_attempt_at: null, attempt: receiver.received.length });
      const before = receiver.received.length;
      const refused = await ada.request("POST", `/webhook-deliveries/${held.id}/retry`);
      expect(refused.body.message).to.include("goes out when its subscription is switched on");

      await turn(id, true);

      await untilDelivery(ada, id, "delivered");
      expect(receiver.received).to.have.length(before + 1);
    });

    it("show the URL of their last attempt when it has changed before it", async () => {
      receiver.answer = { status: 500 };
      const { id } = await subscribe(ada, receiver);
      await createNote(ada);
      await receiver.waitFor(1);
      const url = `${receiver.url}/moved`;
      receiver.answer = { status: 200 };

      await ada.request("PUT", `/webhooks/${id}`, { url });

      expect(await untilDelivery(ada, id, "delivered")).to.include({ url });
      const query = `webhook_id=${id}&url=${encodeURIComponent(url)}`;
      expect((await ada.request("GET", `/webhook-deliveries?${query}`)).body.total).to.equal(1);
    });

    it("keeps the events of a subscription that is off, and sends them in order beside fresh ones", async () => {
      const { id } = await subscribe(ada, receiver, { is_active: false });
      const notes = ["1", "2", "3", "4", "5", "6"];
      for (const text of notes) await createNote(ada, text);
      await untilHeld(id, notes.length);
      receiver.answer = { delayMs: 20 };

      await turn(id, true);
      await createNote(ada, "fresh");

      await receiver.waitFor(notes.length + 1);
      expect(texts().filter((text) => text !== "fresh")).to.deep.equal(notes);
      await untilHeld(id, 0);
      await until(
        async () =>
          (await ada.request("GET", `/webhook-deliveries?webhook_id=${id}&status=delivered`)).body.total ===
          7,
        { what: "all to be delivered" },
      );
      expect(receiver.received).to.have.length(notes.length + 1);
    });

    it("drops only the held events when its owner requests it", async () => {
      const { id } = await subscribe(ada, receiver, { is_active: false });
      const stranger = await service.createUser();
      await createNote(ada, "dropped");
      await untilHeld(id, 1);

      expect((await stranger.request("POST", `/webhooks/${id}/discard-held`)).status).to.equal(404);
      expect((await ada.request("POST", `/webhooks/${id}/discard-held`, { all: true })).status).to.equal(422);
      let answer: Answer | undefined;
      const discard = async (): Promise<Answer> =>
        (answer = await ada.request("POST", `/webhooks/${id}/discard-held`));
      const [entry, ...more] = await auditOf(service.infrastructure.sql, discard);

      expect([answer?.status, answer?.body]).to.deep.equal([202, { held: 1 }]);
      expect(entry).to.include({ action: "webhook.held_discarded", actor_kind: "user", actor_id: ada.id });
      expect(entry).to.deep.include({
        subject_kind: "webhook",
        subject_id: String(id),
        details: { held: 1 },
      });
      expect(more).to.deep.equal([]);
      const cancelled = await untilDelivery(ada, id, "cancelled");
      expect(cancelled.last_error).to.equal("The owner dropped what was held.");
      await createNote(ada, "kept");
      await untilHeld(id, 1);
      await turn(id, true);
      await receiver.waitFor(1);
      expect(texts()).to.deep.equal(["kept"]);
    });

    it("cancels events that were held for too long, and holds no more", async () => {
      const { id } = await subscribe(ada, receiver, { is_active: false });
      await createNote(ada);
      await untilHeld(id, 1);

      await service.infrastructure.sql(
        "UPDATE svc.subscriptions SET disabled_at = now() - interval '8 days' WHERE id = $1",
        [id],
      );

      const cancelled = await untilDelivery(ada, id, "cancelled");
      expect(cancelled.last_error).to.equal("The subscription was off for longer than 7 days.");
      const { id: other } = await subscribe(ada, receiver, { is_active: false });
      await createNote(ada);
      await untilHeld(other, 1);
      await untilHeld(id, 0);
      expect(receiver.received).to.deep.equal([]);
      await ada.request("DELETE", `/webhooks/${other}`);
      expect((await untilDelivery(ada, other, "cancelled")).last_error).to.equal(
        "The subscription was deleted.",
      );
    });

    it("makes the next attempt of a retrying delivery at once on request, on its own schedule", async () => {
      receiver.answer = { status: 500 };
      const { id } = await subscribe(ada, receiver);
      await createNote(ada);
      const waiting = await untilDelivery(ada, id, "retrying");
      // The other attempts are due much later.
      await service.infrastructure.sql(
        "UPDATE svc.delivery_queue SET due_at = now() + interval '1 day' WHERE delivery_id = $1",
        [waiting.id],
      );
      receiver.answer = { status: 200 };

      const answer = await ada.request("POST", `/webhook-deliveries/${waiting.id}/retry`);

      expect(answer.status, JSON.stringify(answer.body)).to.equal(200);
      expect(answer.body).to.include({ id: waiting.id, status: "retrying" });
      const delivered = await untilDelivery(ada, id, "delivered");
      expect(delivered.id).to.equal(waiting.id);
      expect(delivered.attempts.at(-1).trigger).to.equal("manual");
      const again = await ada.request("POST", `/webhook-deliveries/${waiting.id}/retry`);
      expect([again.status, again.body.parent_delivery_id]).to.deep.equal([201, waiting.id]);
      await receiver.waitFor(delivered.attempt + 1);
    });
  });
}
