import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { until } from "../support/wait.ts";
import {
  modes,
  request,
  startService,
  type Answer,
  type TestService,
  type TestUser,
} from "../support/service.ts";

const notes = `
name: notes
model: Note
triggers: [on_create, on_update, on_delete]
ownerColumn: user_id
fields:
  id: { type: Int, id: true }
  text: { type: String, unique: true }
  user_id: { type: Int }
webhookMaxAttempts: 1
`;

for (const mode of modes) {
  describe(`writes, on ${mode}`, function () {
    this.timeout(60_000);
    let service: TestService;
    let ada: TestUser;
    let ben: TestUser;

    before(async () => {
      service = await startService({ mode, resources: { "notes.yaml": notes } });
      ada = await service.createUser();
      ben = await service.createUser({ isAdmin: true, name: "Ben" });
    });

    after(() => service.stop());

    const post = (path: string, body: unknown, key: string, { token } = ada): Promise<Answer> =>
      request({
        url: service.baseUrl + path,
        method: "POST",
        token,
        body,
        headers: { "Idempotency-Key": key },
      });
    const isReplayed = ({ headers }: Answer): boolean => headers.get("idempotent-replayed") === "true";

    describe("POST /webhooks with an Idempotency-Key", () => {
      const hook = { url: "http://127.0.0.1:1/hook", resource: "notes", events: ["on_create"] };

      it("makes one for each user, answers its secret again, and keeps that encrypted", async () => {
        const key = randomUUID();

        const first = await post("/webhooks", hook, key);
        const second = await post("/webhooks", hook, key);
        const other = await post("/webhooks", hook, key, ben);

        expect([first, second, other].map(({ status }) => status)).to.deep.equal([201, 201, 201]);
        expect([first, second, other].map(isReplayed)).to.deep.equal([false, true, false]);
        expect(second.body).to.deep.equal(first.body);
        expect(other.body.secret).not.to.equal(first.body.secret);
        expect((await ada.request("GET", "/webhooks")).body.data).to.have.length(1);
        const kept = await service.foundation.sql<{ text: string }>(
          "SELECT encode(body, 'escape') || kept::text AS text FROM svc.idempotency_keys AS kept",
        );
        expect(kept.length).to.be.greaterThan(1);
        for (const { text } of kept) expect(text).not.to.contain(first.body.secret.slice(4));
      });

      it("answers where the webhook is", async () => {
        const { headers, body } = await ada.request("POST", "/webhooks", hook);

        expect(headers.get("location")).to.equal(`${service.baseUrl}/webhooks/${body.id}`);
      });
    });

    describe("PATCH /webhooks/{id}", () => {
      it("does what PUT does", async () => {
        const { body } = await ada.request("POST", "/webhooks", {
          url: "http://127.0.0.1:1/hook",
          resource: "notes",
          events: ["on_delete"],
        });

        const answer = await ada.request("PATCH", `/webhooks/${body.id}`, { is_active: false });

        expect([answer.status, answer.body.is_active]).to.deep.equal([200, false]);
        expect((await ada.request("POST", `/webhooks/${body.id}`)).headers.get("allow")).to.equal(
          "DELETE, GET, HEAD, PATCH, PUT",
        );
      });
    });

    describe("POST /webhook-deliveries/{id}/retry", () => {
      let failed: number;

      before(async () => {
        await ada.request("POST", "/resources/notes", { text: randomUUID() });
        const { id } = await until(
          async () => (await ada.request("GET", "/webhook-deliveries?status=failed")).body.data[0],
          { what: "a failed delivery" },
        );
        failed = id;
      });

      it("makes one retry for an Idempotency-Key, and answers where it is", async () => {
        const path = `/webhook-deliveries/${failed}/retry`;
        const key = randomUUID();

        const first = await post(path, undefined, key);
        const second = await post(path, undefined, key);
        const another = await post(path, undefined, randomUUID());

        expect([first, second, another].map(({ status }) => status)).to.deep.equal([201, 201, 201]);
        expect([first, second, another].map(isReplayed)).to.deep.equal([false, true, false]);
        expect(second.body).to.deep.equal(first.body);
        expect(another.body.id).not.to.equal(first.body.id);
        expect(first.headers.get("location")).to.equal(
          `${service.baseUrl}/webhook-deliveries/${first.body.id}`,
        );
      });

      it("refuses a field that it does not know, with 422", async () => {
        const answer = await ada.request("POST", `/webhook-deliveries/${failed}/retry`, { delay: 5 });

        expect([answer.status, answer.body.errors]).to.deep.equal([
          422,
          { delay: ["There is no field delay."] },
        ]);
      });
    });
  });
}
