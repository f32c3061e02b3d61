import { expect } from "chai";
import { notesYaml, subscribe } from "../support/notes.ts";
import { startReceiver } from "../support/receiver.ts";
import { request, serviceOfSuite, type Answer } from "../support/service.ts";

describe("POST /webhooks/{id}/replay with an Idempotency-Key", () => {
  const service = serviceOfSuite({ mode: "servers", resources: { "notes.yaml": notesYaml } });

  for (const [what, change] of [
    ["is off", { is_active: false }],
    ["has no such event", { events: ["on_delete"] }],
  ] as const)
    it(`repeats the first answer when the webhook ${what} by then`, async () => {
      const receiver = await startReceiver();
      const ada = await service.createUser();
      const { id } = await subscribe(ada, receiver);
      const ask = (): Promise<Answer> =>
        request({
          url: `${service.baseUrl}/webhooks/${id}/replay`,
          method: "POST",
          token: ada.token,
          headers: { "Idempotency-Key": "a-replay" },
          body: { since: "2020-01-01", until: "2020-01-02", events: ["on_create"] },
        });
      const first = await ask();
      await ada.request("PUT", `/webhooks/${id}`, change);
      const again = await ask();
      await receiver.close();

      expect(first.status).to.equal(202);
      expect([again.status, again.body]).to.deep.equal([202, first.body]);
    });
});
