import { expect } from "chai";
import type { QueryResultRow } from "pg";
import { notesYaml, subscribe, untilDelivery } from "../support/notes.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { startService, type TestService, type TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";

const resources = {
  "notes.yaml": notesYaml,
  "rooms.yaml": `
name: rooms
model: Room
fields:
  id: { type: Int, id: true }
  keeper: { type: String }
triggers: [on_delete]
`,
  "keys.yaml": `
name: keys
model: Key
fields:
  id: { type: Int, id: true }
  room_id: { type: Int, references: rooms.id, as: room }
triggers: [on_create]
access:
  read: { room: { keeper: "$user.email" } }
`,
};

describe("a table that says who reads a record and cannot be read", function () {
  this.timeout(60_000);
  const receivers: TestReceiver[] = [];
  let service: TestService;
  let ada: TestUser;
  let bob: TestUser;

  before(async () => {
    service = await startService({
      mode: "servers",
      resources,
      webhooks: { maxAttempts: 1_000 },
    });
    [ada, bob] = [await service.createUser(), await service.createUser()];
    await sql("INSERT INTO rooms (keeper) SELECT email FROM svc.users WHERE id = $1", [ada.id]);
  });
  after(async () => {
    await Promise.all(receivers.map((receiver) => receiver.close()));
    await service?.stop();
  });

  const sql = <R extends QueryResultRow>(text: string, values: readonly unknown[] = []): Promise<R[]> =>
    service.infrastructure.sql<R>(text, values);
  const openFor = async (user: TestUser, resource: string): Promise<TestReceiver> => {
    const receiver = await startReceiver();
    receivers.push(receiver);
    receiver.answer = { status: 500 };
    await subscribe(user, receiver, { resource, events: ["on_create"] });
    return receiver;
  };

  it("ends no manual retry that was requested meanwhile", async () => {
    const receiver = await startReceiver();
    receivers.push(receiver);
    const hook = await subscribe(ada, receiver, { resource: "keys", events: ["on_create"] });
    await sql("INSERT INTO keys (room_id) SELECT id FROM rooms");
    const { id } = await untilDelivery(ada, hook.id, "delivered");
    await ada.request("PUT", `/webhooks/${hook.id}`, { is_active: false });
    await sql("ALTER TABLE rooms RENAME keeper TO holder");
    const retried = await ada.request("POST", `/webhook-deliveries/${id}/retry`);
    await sql("ALTER TABLE rooms RENAME holder TO keeper");
    expect(retried.status, JSON.stringify(retried.body)).to.equal(201);

    await ada.request("PUT", `/webhooks/${hook.id}`, { is_active: true });

    await receiver.waitFor(2);
  });

  it("delays the retries of no other resource, and ends none of its own", async () => {
    const [adas, bobs] = [await openFor(ada, "keys"), await openFor(bob, "notes")];
    await sql("INSERT INTO keys (room_id) SELECT id FROM rooms");
    await adas.waitFor(2);
    const client = await service.infrastructure.database.pool.connect();
    try {
      await client.query("BEGIN; LOCK TABLE rooms IN ACCESS EXCLUSIVE MODE");
      await sql("INSERT INTO notes (text, user_id) VALUES ('hello', $1)", [bob.id]);

      await bobs.waitFor(5, { timeoutMs: 20_000 });
    } finally {
      await client.query("ROLLBACK");
      client.release();
    }
    const waiting = await sql(
      `SELECT delivery.status FROM svc.deliveries AS delivery JOIN svc.delivery_queue ON delivery_id = delivery.id
       WHERE delivery.resource = 'keys'`,
    );
    expect(waiting).to.deep.equal([{ status: "retrying" }]);
  });

  it("delays no event once it can be read again, although a webhook is off", async () => {
    const [failing, fine, off] = [
      await openFor(ada, "keys"),
      await openFor(ada, "keys"),
      await startReceiver(),
    ];
    receivers.push(off);
    fine.answer = { status: 200 };
    const hook = await subscribe(ada, off, { resource: "keys", events: ["on_create"] });
    await ada.request("PUT", `/webhooks/${hook.id}`, { is_active: false });
    await sql("INSERT INTO keys (room_id) SELECT id FROM rooms");
    const before = (await fine.waitFor(1)).length;
    const client = await service.infrastructure.database.pool.connect();
    try {
      await client.query("BEGIN; LOCK TABLE rooms IN ACCESS EXCLUSIVE MODE");
      const later = `SELECT FROM svc.delivery_queue JOIN svc.deliveries ON id = delivery_id
        WHERE starts_with(url, $1) AND due_at > now() + interval '10 seconds'`;
      await until(async () => (await sql(later, [failing.url])).length > 0, {
        what: "a retry that cannot be judged",
      });
    } finally {
      await client.query("ROLLBACK");
      client.release();
    }

    await sql("INSERT INTO keys (room_id) SELECT id FROM rooms");

    await fine.waitFor(before + 1, { timeoutMs: 4_000 });
    const held = "SELECT FROM svc.deliveries WHERE subscription_id = $1 AND status = 'held'";
    expect(await sql(held, [hook.id])).to.have.length(2);
  });
});
