import { expect } from "chai";
import { runAdmin } from "../../src/cli/program.ts";
import { createMemoryTerminal } from "../support/memory-terminal.ts";
import { reply, startReceiver, type TestReceiver } from "../support/receiver.ts";
import { modes, serviceOfSuite, type Answer, type TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";

const owned = (name: string, model: string, more = ""): string => `
name: ${name}
model: ${model}
triggers: [on_create, on_update, on_delete]
ownerColumn: user_id
searchableColumns: [text]
fields:
  id: { type: Int, id: true }
  text: { type: String }
  user_id: { type: Int }
${more}`;

/** Every rule by which users see more than their own records. */
const resources = {
  "notes.yaml": owned("notes", "Note"),
  "diaries.yaml": owned("diaries", "Diary", "isAdmin: nobody"),
  "ledgers.yaml": owned("ledgers", "Ledger", "isAdmin: [Keeper@example.com]"),
  "audits.yaml": owned("audits", "Audit", "module: ./audits.mjs"),
  "audits.mjs": `
    export const isAdmin = ({ name }) => name === "Auditor";
    export const applySearch = (query) => ({ ...query, where: {} });
  `,
  "notices.yaml": `
name: notices
model: Notice
triggers: [on_create]
fields:
  id: { type: Int, id: true }
  text: { type: String }`,
};

const people = ["owner", "stranger", "admin", "keeper", "auditor"] as const;
type Person = (typeof people)[number];

/** Persons who may see, change and delete a record that the owner created, and get its events. */
const seers: readonly (readonly [resource: string, seenBy: readonly Person[]])[] = [
  ["notes", ["owner", "admin"]],
  ["diaries", ["owner"]],
  ["ledgers", ["owner", "keeper"]],
  ["audits", ["owner", "auditor"]],
  ["notices", ["admin"]],
];

for (const mode of modes) {
  describe(`subscribers (${mode})`, () => {
    const service = serviceOfSuite({ mode, resources, webhooks: { maxAttempts: 2 } });
    let receiver: TestReceiver;
    let users: Readonly<Record<Person, TestUser>>;

    before(async () => {
      users = {
        owner: await service.createUser(),
        stranger: await service.createUser(),
        admin: await service.createUser({ isAdmin: true }),
        keeper: await service.createUser(),
        auditor: await service.createUser({ name: "Auditor" }),
      };
      await sql("UPDATE svc.users SET email = 'keeper@EXAMPLE.com' WHERE id = $1", [users.keeper.id]);
    });

    beforeEach(async () => {
      receiver = await startReceiver();
    });
    afterEach(async () => {
      await sql("UPDATE svc.users SET disabled_at = NULL, is_admin = (id = $1)", [users.admin.id]);
      for (const person of people) {
        for (const { id } of (await users[person].request("GET", "/webhooks")).body.data)
          await users[person].request("DELETE", `/webhooks/${id}`);
      }
      await receiver.close();
    });

    const sql = (text: string, values: readonly unknown[] = []): Promise<readonly object[]> =>
      service.infrastructure.sql(text, values);

    async function subscribe(person: Person, resource: string, events = ["on_create"]): Promise<number> {
      const url = `${receiver.url}/${person}`;
      const answer = await users[person].request("POST", "/webhooks", { url, resource, events });
      expect(answer.status, JSON.stringify(answer.body)).to.equal(201);
      return answer.body.id;
    }

    const create = async (resource = "notes"): Promise<number> =>
      (await users.owner.request("POST", `/resources/${resource}`, { text: "hello" })).body.id;

    /** Waits until every event so far is fanned out, and no delivery is due. */
    const untilQuiet = (): Promise<unknown> =>
      until(
        async () => {
          const [open] = await service.infrastructure.sql<{ count: number }>(
            `SELECT ((SELECT count(*) FROM svc.outbox)
              + (SELECT count(*) FROM svc.delivery_queue WHERE due_at IS NOT NULL) + (SELECT coalesce(sum(cardinality(delivery_ids)), 0) FROM svc.flights))::int AS count`,
          );
          return open?.count === 0;
        },
        { what: "all deliveries to settle" },
      );

    /** Returns the arrived requests, as `person trigger`. */
    const arrivals = (): readonly string[] =>
      receiver.received
        .map(({ path, rawBody }) => `${path.slice(1)} ${JSON.parse(rawBody.toString()).event}`)
        .toSorted();

    const deliveriesOf = async (webhookId: number): Promise<readonly Answer["body"][]> =>
      (await users.admin.request("GET", `/webhook-deliveries?webhook_id=${webhookId}`)).body.data;

    /** Answers 500 to every request, after `act` is done. */
    function failAfter(act: () => Promise<unknown>): void {
      receiver.answer = (_request, response) => {
        act().then(
          () => reply(response, { status: 500 }),
          () => response.destroy(),
        );
      };
    }

    for (const [resource, seenBy] of seers) {
      const others = people.filter((person) => !seenBy.includes(person));

      it(`shows ${resource} of the owner to ${seenBy.join(", ")} only, in every way`, async () => {
        const id = await create(resource);
        const path = `/resources/${resource}`;

        for (const person of people) {
          const isSeer = seenBy.includes(person);
          const list = await users[person].request("GET", path);
          const found = await users[person].request("GET", `${path}?search=hello&per_page=100`);
          const shown = await users[person].request("GET", `${path}/${id}`);
          const changed = await users[person].request("PUT", `${path}/${id}`, { text: "hello again" });
          expect(
            [list.body.total > 0, found.body.total > 0, shown.status, changed.status],
            person,
          ).to.deep.equal(isSeer ? [true, true, 200, 200] : [false, false, 403, 403]);
        }
        for (const person of others)
          expect((await users[person].request("DELETE", `${path}/${id}`)).status, person).to.equal(403);
        const [last = "owner"] = seenBy.toReversed();
        expect((await users[last].request("DELETE", `${path}/${id}`)).status).to.equal(204);
      });

      it(`sends ${resource} of the owner to the webhooks of ${seenBy.join(", ")} only`, async () => {
        const webhooks: Partial<Record<Person, number>> = {};
        for (const person of people) webhooks[person] = await subscribe(person, resource);

        await create(resource);
        await receiver.waitFor(seenBy.length);
        await untilQuiet();

        expect(arrivals()).to.deep.equal(seenBy.map((person) => `${person} on_create`).toSorted());
        for (const person of people) {
          const { body } = await users[person].request(
            "GET",
            `/webhook-deliveries?webhook_id=${webhooks[person]}`,
          );
          expect(body.total, person).to.equal(seenBy.includes(person) ? 1 : 0);
        }
      });
    }

    it("uses the owner at the time of each event when a record changes hands", async () => {
      for (const person of ["owner", "stranger"] as const)
        await subscribe(person, "notes", ["on_create", "on_update", "on_delete"]);
      const client = await service.infrastructure.database.pool.connect();
      try {
        await client.query("BEGIN");
        await client.query("INSERT INTO notes (text, user_id) VALUES ('mine', $1)", [users.owner.id]);
        await client.query("UPDATE notes SET user_id = $1 WHERE text = 'mine'", [users.stranger.id]);
        await client.query("DELETE FROM notes WHERE text = 'mine'");
        await client.query("COMMIT");
      } finally {
        client.release();
      }
      await receiver.waitFor(3);
      await untilQuiet();

      expect(arrivals()).to.deep.equal(["owner on_create", "stranger on_delete", "stranger on_update"]);
    });

    it("retries for the owner at the time of the event after the record went to another", async () => {
      await subscribe("owner", "notes");
      await subscribe("stranger", "notes");
      failAfter(() => sql("UPDATE notes SET user_id = $1 WHERE text = 'hello'", [users.stranger.id]));

      await create();
      await receiver.waitFor(2);
      await untilQuiet();

      expect(arrivals()).to.deep.equal(["owner on_create", "owner on_create"]);
    });

    it("sends nothing more to an admin who was demoted between two attempts", async () => {
      const webhook = await subscribe("admin", "notes");
      await sql("UPDATE svc.users SET is_admin = true WHERE id = $1", [users.keeper.id]);
      const other = await subscribe("keeper", "notes");
      failAfter(() => sql("UPDATE svc.users SET is_admin = false WHERE id = $1", [users.keeper.id]));

      await create();
      await untilQuiet();
      await receiver.waitFor(3);

      expect(arrivals()).to.deep.equal(["admin on_create", "admin on_create", "keeper on_create"]);
      const [cancelled] = await deliveriesOf(other);
      expect(cancelled).to.include({
        status: "cancelled",
        attempt: 1,
        last_error: "The subscriber may no longer see this record.",
      });
      expect((await deliveriesOf(webhook))[0]).to.include({ status: "failed", attempt: 2 });
    });

    it("sends nothing to an admin who was demoted, for a manual retry either", async () => {
      await sql("UPDATE svc.users SET is_admin = true WHERE id = $1", [users.keeper.id]);
      const webhook = await subscribe("keeper", "notes");
      receiver.answer = { status: 500 };
      await create();
      await receiver.waitFor(2);
      await untilQuiet();
      const [failed] = await deliveriesOf(webhook);
      await sql("UPDATE svc.users SET is_admin = false WHERE id = $1", [users.keeper.id]);

      const retried = await users.keeper.request("POST", `/webhook-deliveries/${failed.id}/retry`);
      const byAdmin = await users.admin.request("POST", `/webhook-deliveries/${failed.id}/retry`);
      const { configDir, dataDir, database } = service.config;
      const env = { SVC_CONFIG_DIR: configDir, SVC_DATA_DIR: dataDir, DATABASE_URL: database.url };
      const terminal = createMemoryTerminal();
      const args = ["deliveries", "retry", String(failed.id)];
      const byOperator = await runAdmin({ args, env, cwd: process.cwd(), terminal });
      await untilQuiet();

      const bodies = [users.keeper, users.admin].map(async (user) => {
        const { body } = await user.request("GET", `/webhook-deliveries/${failed.id}`);
        return body.request.body === null;
      });
      // The record is shown to its current readers.
      expect(await Promise.all(bodies)).to.deep.equal([true, false]);
      for (const { status, body } of [retried, byAdmin]) {
        expect([status, body.code]).to.deep.equal([403, "delivery.forbidden"]);
        expect(body.message).to.equal("The subscriber may no longer see this record.");
      }
      const message = "The subscriber may no longer see this record.";
      expect([byOperator, terminal.read().stderr]).to.deep.equal([1, `svc-admin: ${message}\n`]);
      expect(await deliveriesOf(webhook)).to.have.length(1);
      expect(receiver.received).to.have.length(2);
    });

    it("sends nothing more to a user who was disabled between two attempts, until they are enabled again", async () => {
      const webhook = await subscribe("owner", "notes");
      failAfter(() => sql("UPDATE svc.users SET disabled_at = now() WHERE id = $1", [users.owner.id]));

      await create();
      await receiver.waitFor(1);
      const held = await until(
        async () => {
          const [delivery] = await deliveriesOf(webhook);
          return delivery.status === "held" && delivery;
        },
        { what: "the delivery to be held" },
      );

      expect(held).to.include({ attempt: 1 });
      expect(arrivals()).to.deep.equal(["owner on_create"]);

      receiver.answer = { status: 200 };
      await sql("UPDATE svc.users SET disabled_at = NULL WHERE id = $1", [users.owner.id]);
      await receiver.waitFor(2);
      await untilQuiet();
      expect((await deliveriesOf(webhook))[0]).to.include({ status: "delivered", attempt: 2 });
    });

    it("holds the events of a disabled user, and sends them once the user is enabled again", async () => {
      const webhook = await subscribe("admin", "notes");
      await sql("UPDATE svc.users SET disabled_at = now() WHERE id = $1", [users.admin.id]);
      await subscribe("owner", "notes");

      await create();
      await receiver.waitFor(1);
      await untilQuiet();
      expect(arrivals()).to.deep.equal(["owner on_create"]);
      await sql("UPDATE svc.users SET disabled_at = NULL WHERE id = $1", [users.admin.id]);
      await receiver.waitFor(2);
      await untilQuiet();

      expect(arrivals()).to.have.members(["owner on_create", "admin on_create"]);
      expect((await deliveriesOf(webhook))[0]).to.include({ status: "delivered", attempt: 1 });
    });

    it("lets an admin retry a delivery, which goes only to its subscriber", async () => {
      const webhook = await subscribe("owner", "diaries");
      receiver.answer = { status: 500 };
      await create("diaries");
      await receiver.waitFor(2);
      await untilQuiet();
      receiver.answer = { status: 200 };
      const [failed] = await deliveriesOf(webhook);
      const retry = (person: Person): Promise<Answer> =>
        users[person].request("POST", `/webhook-deliveries/${failed.id}/retry`);

      const answers = { stranger: await retry("stranger"), admin: await retry("admin") };
      await receiver.waitFor(3);

      expect([answers.stranger.status, answers.admin.status]).to.deep.equal([403, 201]);
      expect(answers.stranger.body).to.deep.equal({
        message: "This action is unauthorized.",
        code: "delivery.forbidden",
      });
      expect(answers.admin.body).to.include({ subscription_id: webhook, parent_delivery_id: failed.id });
      // The mapping file gives admins of the service no more rights than others.
      const shown = await users.admin.request("GET", `/webhook-deliveries/${failed.id}`);
      expect([shown.status, shown.body.request.body]).to.deep.equal([200, null]);
      expect(new Set(arrivals())).to.deep.equal(new Set(["owner on_create"]));
    });
  });
}
