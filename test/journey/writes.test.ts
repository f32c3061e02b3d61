import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { until } from "../support/wait.ts";
import { modes, request, serviceOfSuite, type Answer, type TestUser } from "../support/service.ts";

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

const isReplayed = ({ headers }: Answer): boolean => headers.get("idempotent-replayed") === "true";

for (const mode of modes) {
  describe(`writes, on ${mode}`, function () {
    this.timeout(60_000);
    const service = serviceOfSuite({ mode, resources: { "notes.yaml": notes } });
    let ada: TestUser;
    let ben: TestUser;

    before(async () => {
      ada = await service.createUser();
      ben = await service.createUser({ isAdmin: true, name: "Ben" });
    });

    const post = (path: string, body: unknown, key: string, { token } = ada): Promise<Answer> =>
      request({
        url: service.baseUrl + path,
        method: "POST",
        token,
        body,
        headers: { "Idempotency-Key": key },
      });

    describe("POST /webhooks with an Idempotency-Key", () => {
      const hook = { url: "http://127.0.0.1:1/hook", resource: "notes", events: ["on_create"] };

      it("creates one for each user, shows its secret again, and keeps that encrypted", async () => {
        const key = randomUUID();

        const first = await post("/webhooks", hook, key);
        const second = await post("/webhooks", hook, key);
        const other = await post("/webhooks", hook, key, ben);

        expect([first, second, other].map(({ status }) => status)).to.deep.equal([201, 201, 201]);
        expect([first, second, other].map(isReplayed)).to.deep.equal([false, true, false]);
        expect(second.body).to.deep.equal(first.body);
        expect(other.body.secret).not.to.equal(first.body.secret);
        expect((await ada.request("GET", "/webhooks")).body.data).to.have.length(1);
        const kept = await service.infrastructure.sql<{ text: string }>(
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
          "GET, HEAD, PUT, PATCH, DELETE",
        );
      });
    });

    const eventsOf = async (text: string): Promise<readonly string[]> =>
      (
        await service.infrastructure.sql<{ trigger: string }>(
          "SELECT trigger FROM svc.events WHERE snapshot ->> 'text' LIKE $1 ORDER BY id",
          [`${text}%`],
        )
      ).map(({ trigger }) => trigger);

    describe("POST /resources/{name} with an Idempotency-Key", () => {
      it("writes one record with one event, and answers it again", async () => {
        const [key, text] = [randomUUID(), randomUUID()];

        const first = await post("/resources/notes", { text }, key);
        const second = await post("/resources/notes", { text }, key);

        expect([first, second].map(({ status }) => status)).to.deep.equal([201, 201]);
        expect([first, second].map(isReplayed)).to.deep.equal([false, true]);
        expect(second.body).to.deep.equal(first.body);
        for (const name of ["etag", "location"])
          expect(second.headers.get(name)).to.equal(first.headers.get(name)).and.to.be.a("string");
        expect(first.headers.get("location")).to.equal(`${service.baseUrl}/resources/notes/${first.body.id}`);
        expect(await eventsOf(text)).to.deep.equal(["on_create"]);
      });

      it("writes once of ten at once", async () => {
        const [key, text] = [randomUUID(), randomUUID()];

        const answers = await Promise.all(
          Array.from({ length: 10 }, () => post("/resources/notes", { text }, key)),
        );

        const firsts = answers.filter((answer) => answer.status === 201 && !isReplayed(answer));
        expect(firsts).to.have.length(1);
        // With one session, concurrent requests wait: none is seen as running.
        const statuses = new Set(answers.map(({ status }) => status));
        expect(
          [...statuses].every((status) => status === 201 || (status === 409 && mode === "servers")),
        ).to.equal(true);
        expect(await eventsOf(text)).to.deep.equal(["on_create"]);
      });

      it("keeps nothing of a request that breaks the rules", async () => {
        const [key, text] = [randomUUID(), randomUUID()];

        const refused = await post("/resources/notes", {}, key);
        const corrected = await post("/resources/notes", { text }, key);

        expect([refused.status, corrected.status, isReplayed(corrected)]).to.deep.equal([422, 201, false]);
      });

      it("is the user's own: the same key of another user is another request", async () => {
        const key = randomUUID();

        const mine = await post("/resources/notes", { text: randomUUID() }, key);
        const other = await post("/resources/notes", { text: randomUUID() }, key, ben);

        expect([other.status, isReplayed(other)]).to.deep.equal([201, false]);
        expect(other.body.id).not.to.equal(mine.body.id);
      });
    });

    describe("POST /resources/{name}/batch", () => {
      it("makes the events of single writes, and none when an operation is refused", async () => {
        const text = randomUUID();
        const made = await ada.request("POST", "/resources/notes", { text });
        const operations = [
          { method: "create", data: { text: `${text} 2` } },
          { method: "update", id: made.body.id, data: { text: `${text} 3` } },
          { method: "delete", id: made.body.id },
        ];

        const refused = await ada.request("POST", "/resources/notes/batch", {
          operations: [...operations, { method: "delete", id: made.body.id }],
        });
        const before = await eventsOf(text);
        const done = await ada.request("POST", "/resources/notes/batch", { operations });

        expect([refused.status, before]).to.deep.equal([404, ["on_create"]]);
        expect(done.body.data.map(({ status }: Answer) => status)).to.deep.equal([201, 200, 204]);
        expect(await eventsOf(text)).to.deep.equal(["on_create", "on_create", "on_update", "on_delete"]);
      });

      it("is done once for an Idempotency-Key", async () => {
        const [key, text] = [randomUUID(), randomUUID()];
        const body = {
          operations: [1, 2].map((n) => ({ method: "create", data: { text: `${text} ${n}` } })),
        };

        const answers = await Promise.all([1, 2, 3].map(() => post("/resources/notes/batch", body, key)));

        expect(answers.filter((answer) => answer.status === 200 && !isReplayed(answer))).to.have.length(1);
        expect(await eventsOf(text)).to.deep.equal(["on_create", "on_create"]);
        expect((await post("/resources/notes/batch", body, key)).body.data).to.have.length(2);
      });
    });

    describe("PATCH with If-Match", () => {
      it("is 412 for a tag of before", async () => {
        const { body, headers } = await ada.request("POST", "/resources/notes", { text: randomUUID() });
        const patch = (text: string): Promise<Answer> =>
          request({
            url: `${service.baseUrl}/resources/notes/${body.id}`,
            method: "PATCH",
            token: ada.token,
            body: { text },
            headers: { "If-Match": headers.get("etag") ?? "" },
          });

        const answers = [await patch(randomUUID()), await patch(randomUUID())];

        expect(answers.map(({ status }) => status)).to.deep.equal([200, 412]);
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

      it("refuses an unknown field with 422", async () => {
        const answer = await ada.request("POST", `/webhook-deliveries/${failed}/retry`, { delay: 5 });

        expect([answer.status, answer.body.errors]).to.deep.equal([
          422,
          { delay: ["There is no field delay."] },
        ]);
      });
    });
  });
}
