import { expect } from "chai";
import { createNote, notesYaml, subscribe, unsubscribeAll, untilDelivery } from "../support/notes.ts";
import { hang, startReceiver, type TestReceiver } from "../support/receiver.ts";
import { modes, startService, type TestService, type TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";

for (const mode of modes) {
  describe(`deliveries of subscriptions that are paused or deleted (${mode})`, () => {
    let service: TestService;
    let receiver: TestReceiver;
    let ada: TestUser;

    before(async () => {
      service = await startService({
        mode,
        resources: { "notes.yaml": notesYaml },
        webhooks: { maxAttempts: 3, timeoutMs: 500, backoffMs: [100] },
      });
      ada = await service.createUser();
    });
    after(() => service.stop());
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

    it("holds the deliveries of a paused subscription, and sends them when it is active again", async () => {
      receiver.answer = { status: 500 };
      const { id } = await subscribe(ada, receiver);
      await createNote(ada, "held");
      await receiver.waitFor(1);
      await ada.request("PUT", `/webhooks/${id}`, { is_active: false });
      receiver.answer = { status: 200 };
      await until(
        async () => {
          const [open] = (await ada.request("GET", `/webhook-deliveries?webhook_id=${id}`)).body.data;
          return open.next_attempt_at === null && open.status === "retrying";
        },
        { what: "the delivery to be held" },
      );
      const before = receiver.received.length;

      await ada.request("PUT", `/webhooks/${id}`, { is_active: true });

      await untilDelivery(ada, id, "delivered");
      expect(receiver.received).to.have.length(before + 1);
    });
  });
}
