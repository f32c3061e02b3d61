import { createHmac } from "node:crypto";
import { expect } from "chai";
import { runAdmin } from "../../src/cli/program.ts";
import { createTransact } from "../../src/db/sql.ts";
import { eraseRecord } from "../../src/deliveries/erase.ts";
import { testOperator } from "../support/actors.ts";
import { openEventSource } from "../support/event-source.ts";
import { createMemoryTerminal } from "../support/memory-terminal.ts";
import { subscribe, unsubscribeAll, untilDelivery } from "../support/notes.ts";
import { startReceiver, type ReceivedRequest, type TestReceiver } from "../support/receiver.ts";
import { modes, serviceOfSuite, type Answer, type TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";

const rest = `
previous: true
triggers: [on_create, on_update, on_delete]
fields:
  id: { type: Int, id: true }
  first: { type: String, default: first, column: "1st" }
  text: { type: String }
  user_id: { type: Int }
transform: { label: text, first: first, owner: user_id }
createRules: { text: required|string, user_id: integer }
updateRules: { text: string, user_id: integer }
`;
const resources = {
  "cards.yaml": `name: cards\nmodel: Card\nownerColumn: user_id\n${rest}`,
  "boards.yaml": `name: boards\nmodel: Board\n${rest}access: { read: { user_id: $user.id }, update: everyone }\n`,
};

const bodyOf = ({ rawBody }: ReceivedRequest): Answer["body"] => JSON.parse(rawBody.toString());

const updatesIn = async (user: TestUser, resource: string, id: number): Promise<Answer["body"]> => {
  const list = `/events?resource=${resource}&record_id=${id}&event=on_update`;
  const { body, status } = await user.request("GET", list);
  expect(status).to.equal(200);
  for (const event of body.data)
    expect((await user.request("GET", `/events/${event.uuid}`)).body).to.deep.equal(event);
  return body.data;
};

for (const mode of modes) {
  describe(`previous: true (${mode})`, function () {
    this.timeout(60_000);
    const service = serviceOfSuite({ mode, resources, webhooks: { maxAttempts: 3, backoffMs: [100] } });
    let receiver: TestReceiver;
    let ada: TestUser;
    let eve: TestUser;
    let admin: TestUser;

    beforeEach(async () => {
      receiver = await startReceiver();
      [ada, eve, admin] = [
        await service.createUser(),
        await service.createUser(),
        await service.createUser({ isAdmin: true }),
      ];
    });
    afterEach(async () => {
      for (const user of [ada, eve, admin]) await unsubscribeAll(user);
      await receiver.close();
    });

    const make = async (resource: string, by = ada): Promise<Answer["body"]> => {
      const made = await by.request("POST", `/resources/${resource}`, { text: "old", user_id: by.id });
      expect(made.status, JSON.stringify(made.body)).to.equal(201);
      const [row] = await service.infrastructure.sql<{ id: number }>(`SELECT max(id) AS id FROM ${resource}`);
      return row?.id;
    };
    const change = async (resource: string, id: number, body: object, by = ada): Promise<void> => {
      expect((await by.request("PUT", `/resources/${resource}/${id}`, body)).status).to.equal(200);
    };
    const updatesTo = (user: TestUser, resource: string): Promise<Answer["body"]> =>
      subscribe(user, receiver, { resource, events: ["on_update"], url: `${receiver.url}/${user.id}` });
    const receivedBy = (user: TestUser): readonly ReceivedRequest[] =>
      receiver.received.filter(({ path }) => path === `/${user.id}`);
    const untilReceivedBy = (user: TestUser, count = 1): Promise<unknown> =>
      until(() => receivedBy(user).length >= count, { what: `${count} deliveries` });

    for (const resource of ["cards", "boards"]) {
      it(`shows the old row of an update by the transform, the same on each attempt, of ${resource}`, async () => {
        const { secret, id: webhook } = await updatesTo(ada, resource);
        const id = await make(resource);
        receiver.answer = { status: 500 };
        await change(resource, id, { text: "new" });
        await untilReceivedBy(ada);
        receiver.answer = {};
        const delivery = await untilDelivery(ada, webhook, "delivered");

        const [first, second] = receivedBy(ada) as [ReceivedRequest, ReceivedRequest];
        expect(bodyOf(first)).to.deep.include({
          data: { label: "new", first: "first", owner: ada.id },
          previous: { label: "old", first: "first", owner: ada.id },
        });
        expect(String(second.rawBody)).to.equal(String(first.rawBody)).and.equal(delivery.request.body);
        const signature = createHmac("sha256", secret).update(second.rawBody).digest("hex");
        expect(second.headers["x-service-signature"]).to.equal(`sha256=${signature}`);
        const again = await ada.request("POST", `/webhook-deliveries/${delivery.id}/retry`);
        expect(again.status).to.equal(201);
        await untilReceivedBy(ada, 3);
        expect(bodyOf(receivedBy(ada)[2] as ReceivedRequest).previous.label).to.equal("old");
        expect((await updatesIn(ada, resource, id))[0].previous).to.deep.equal(bodyOf(first).previous);
      });
    }

    it("shows none of a creation and a deletion", async () => {
      await subscribe(ada, receiver, { resource: "cards", events: ["on_create", "on_delete"] });
      const id = await make("cards");
      await ada.request("DELETE", `/resources/cards/${id}`);

      for (const one of await receiver.waitFor(2)) expect(bodyOf(one)).not.to.have.property("previous");
    });

    for (const [resource, readers] of [
      ["cards", "its new owner"],
      ["boards", "a new reader"],
    ] as const) {
      it(`keeps the old row of ${resource} from ${readers}, and shows it to an admin`, async () => {
        const hook = await updatesTo(eve, resource);
        await updatesTo(admin, resource);
        const id = await make(resource);
        await change(resource, id, { text: "mine", user_id: ada.id });
        await untilReceivedBy(admin);
        await change(resource, id, { text: "hers", user_id: eve.id }, admin);
        await untilReceivedBy(admin, 2);
        await untilReceivedBy(eve);

        const [own] = receivedBy(eve).map(bodyOf);
        expect(own.data.label).to.equal("hers");
        expect(own).not.to.have.property("previous");
        const moved = receivedBy(admin)
          .map(bodyOf)
          .find(({ data }) => data.label === "hers");
        expect(moved.previous.label).to.equal("mine");
        expect(JSON.stringify(await updatesIn(eve, resource, id))).not.to.contain("mine");
        expect((await updatesIn(admin, resource, id))[1].previous.label).to.equal("mine");
        const seen = await untilDelivery(eve, hook.id, "delivered");
        expect(seen.request.body).not.to.contain("mine");
        const source = await openEventSource(
          `${service.baseUrl}/events/stream?resource=${resource}&after=0`,
          eve,
        );
        await until(() => source.messages.length > 0, { what: "the event in the stream" });
        source.close();
        expect(JSON.stringify(source.messages)).not.to.contain("mine");

        const shown = await eve.request("POST", `/webhooks/${hook.id}/replay`, {
          since: "2020-01-01T00:00:00Z",
          status: ["delivered", "never"],
        });
        expect(shown.status).to.equal(202);
        await untilReceivedBy(eve, 2);
        expect(String(receivedBy(eve)[1]?.rawBody)).not.to.contain("mine");
      });
    }

    it("sends it in a replay of events without deliveries", async () => {
      const id = await make("cards");
      await change("cards", id, { text: "new" });
      await until(async () => (await service.infrastructure.sql("SELECT FROM svc.outbox")).length === 0, {
        what: "the events to be fanned out",
      });
      const hook = await updatesTo(ada, "cards");

      await ada.request("POST", `/webhooks/${hook.id}/replay`, {
        since: "2020-01-01T00:00:00Z",
        status: ["never"],
      });
      await untilReceivedBy(ada);

      expect(bodyOf(receivedBy(ada)[0] as ReceivedRequest).previous.label).to.equal("old");
    });

    it("cancels a delivery whose old row its subscriber may no longer read", async () => {
      const hook = await updatesTo(admin, "cards");
      const id = await make("cards");
      receiver.answer = { status: 500 };
      await admin.request("PUT", `/webhooks/${hook.id}`, { is_active: false });
      await change("cards", id, { text: "new", user_id: admin.id }, admin);
      await untilDelivery(admin, hook.id, "held");
      await service.infrastructure.sql("UPDATE svc.users SET is_admin = false WHERE id = $1", [admin.id]);
      await admin.request("PUT", `/webhooks/${hook.id}`, { is_active: true });

      const cancelled = await untilDelivery(admin, hook.id, "cancelled");

      expect(cancelled.last_error).to.equal(
        "The subscriber may no longer see this record, or what it was before.",
      );
      expect(cancelled.request.body).to.equal(null);
      expect(receivedBy(admin)).to.deep.equal([]);
      receiver.answer = { status: 200 };
      const again = await admin.request("POST", `/webhook-deliveries/${cancelled.id}/retry`);
      expect(again.status).to.equal(201);
      await untilReceivedBy(admin);
      const { configDir, dataDir, database } = service.config;
      const env = { SVC_CONFIG_DIR: configDir, SVC_DATA_DIR: dataDir, DATABASE_URL: database.url };
      const terminal = createMemoryTerminal();
      const args = ["deliveries", "retry", String(cancelled.id)];
      const exitCode = await runAdmin({ args, env, cwd: process.cwd(), terminal });
      expect(exitCode, terminal.read().stderr).to.equal(0);
      await untilReceivedBy(admin, 2);
      for (const received of receivedBy(admin)) expect(bodyOf(received)).not.to.have.property("previous");
    });

    it("keeps none of an update that changes the key, and erases what was kept", async () => {
      const { sql, database } = service.infrastructure;
      const id = await make("cards");
      await change("cards", id, { text: "new" });
      await sql("UPDATE cards SET id = id + 1000000 WHERE id = $1", [id]);
      const kept = (record: number): Promise<readonly object[]> =>
        sql(
          "SELECT previous IS NOT NULL AS kept FROM svc.events WHERE record_id = $1 AND trigger = 'on_update'",
          [String(record)],
        );
      expect(await kept(id)).to.deep.equal([{ kept: true }]);
      expect(await kept(id + 1_000_000)).to.deep.equal([{ kept: false }]);

      const record = { resource: "cards", recordId: String(id) };
      const transact = createTransact(database.pool);
      await eraseRecord({ transact, record, actor: testOperator, onProgress: () => undefined });

      expect(await kept(id)).to.deep.equal([{ kept: false }]);
    });
  });
}
