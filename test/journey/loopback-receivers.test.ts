import { expect } from "chai";
import { loadConfig } from "../../src/config/load.ts";
import { createNote, notesYaml, subscribe, untilDelivery } from "../support/notes.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { modes, serviceOfSuite, type TestUser } from "../support/service.ts";

const refusal = "The url must not point to a loopback address, which is outside the allowed networks.";
// The settings of the image: the embedded database, and access from other machines.
const { allowedNetworks, adminNetworks } = loadConfig({
  env: { SVC_HOST: "0.0.0.0" },
  cwd: "/",
  program: "all",
}).webhooks;

for (const mode of modes) {
  describe(`webhooks to this machine while others reach the API (${mode})`, () => {
    const service = serviceOfSuite({
      mode,
      resources: { "notes.yaml": notesYaml },
      webhooks: { maxAttempts: 1, allowedNetworks, adminNetworks },
    });
    let receiver: TestReceiver;
    let ada: TestUser;
    let root: TestUser;

    before(async () => {
      [ada, root] = await Promise.all([
        service.createUser(),
        service.createUser({ isAdmin: true, name: "Root" }),
      ]);
    });
    beforeEach(async () => {
      receiver = await startReceiver();
    });
    afterEach(() => receiver.close());

    it("are refused for a user, made and changed", async () => {
      const body = { resource: "notes", events: ["on_create"] };
      const made = await ada.request("POST", "/webhooks", { ...body, url: receiver.url });
      const elsewhere = await ada.request("POST", "/webhooks", { ...body, url: "https://8.8.8.8/" });
      const changed = await ada.request("PUT", `/webhooks/${elsewhere.body.id}`, { url: receiver.url });

      for (const { status, body: answer } of [made, changed]) {
        expect(status).to.equal(422);
        expect(answer.errors).to.deep.equal({ url: [refusal] });
      }
      await ada.request("DELETE", `/webhooks/${elsewhere.body.id}`);
    });

    it("are delivered for an admin, and blocked from the moment the admin flag is gone", async () => {
      const { id } = await subscribe(root, receiver);
      const changed = await root.request("PUT", `/webhooks/${id}`, { url: `${receiver.url}/other` });
      expect(changed.status).to.equal(200);
      await createNote(root, "as an admin");
      await receiver.waitFor(1);
      await untilDelivery(root, id, "delivered");

      await service.infrastructure.sql("UPDATE svc.users SET is_admin = false WHERE id = $1", [root.id]);
      await createNote(root, "as a user");

      const failed = await untilDelivery(root, id, "failed");
      expect(failed.last_error).to.equal(refusal);
      expect(failed.attempts[0]).to.include({ error: "blocked" });
      expect((await root.request("POST", `/webhooks/${id}/test`)).body).to.include({ error: "blocked" });
      expect(receiver.received).to.have.length(1);
    });
  });
}
