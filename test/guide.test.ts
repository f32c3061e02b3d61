import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { Client } from "pg";
import { createSecretBox } from "../src/subscriptions/secret.ts";
import { stateSql } from "./support/delivery-states.ts";
import { createTestDatabase, type TestDatabase } from "./support/database.ts";
import { createNote, notesYaml, subscribe, untilDelivery } from "./support/notes.ts";
import { ensurePostgres, startPrivatePostgres } from "./support/postgres.ts";
import type { PrivateServer } from "./support/private-process.ts";
import { parseMetrics, valueOf } from "./support/exposition.ts";
import { binary } from "./support/program.ts";
import { requestChanges } from "./support/request-changes.ts";
import { startReceiver, type TestReceiver } from "./support/receiver.ts";
import { startService, type ServiceOptions, type TestService, type TestUser } from "./support/service.ts";
import { until } from "./support/wait.ts";

const guide = readFileSync(new URL("../docs/production.md", import.meta.url), "utf8");
const blocks = new Map(
  [...guide.matchAll(/<!-- run by test\/guide\.test\.ts: (.+?) -->\n```sh\n(.*?)\n```/gs)].map(
    ([, name = "", commands = ""]) => [name, commands] as const,
  ),
);

async function query(url: string, text: string, values: readonly unknown[] = []): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text, [...values])).rows;
  } finally {
    await client.end();
  }
}

describe("docs/production.md", function () {
  this.timeout(60_000);
  const secretKey = randomBytes(32).toString("base64");
  /** Blocks that a test has run. */
  const seen = new Set<string>();
  let folder: string;
  let path: string;
  let database: TestDatabase;
  let restored: TestDatabase;
  let receiver: TestReceiver;
  let service: TestService | undefined;
  let user: TestUser;
  let webhook: { readonly id: number; readonly secret: string };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "svc-guide-"));
    await mkdir(join(folder, "config", "resources"), { recursive: true });
    await writeFile(join(folder, "config", "resources", "notes.yaml"), notesYaml);
    const script = `#!/bin/sh\nexec "${process.execPath}" "${binary("svc-admin")}" "$@"\n`;
    await writeFile(join(folder, "svc-admin"), script, { mode: 0o755 });
    path = [folder, await ensurePostgres(), dirname(process.execPath), process.env["PATH"]].join(":");
    [database, restored, receiver] = await Promise.all([
      createTestDatabase(),
      createTestDatabase(),
      startReceiver(),
    ]);
    receiver.answer = { status: 500 };
    service = await start(database);
    user = await service.createUser();
    webhook = await subscribe(user, receiver);
    await createNote(user);
    await untilDelivery(user, webhook.id, "retrying");
    await service.stop();
    service = undefined;
  });

  after(async () => {
    await service?.stop();
    await receiver?.close();
    await Promise.all([database?.drop(), restored?.drop()]);
    await rm(folder, { recursive: true });
  });

  /** Starts a service in which a failed delivery waits for an hour. */
  function start(
    { url }: Pick<TestDatabase, "url">,
    env: Readonly<Record<string, string>> = {},
    webhooks: ServiceOptions["webhooks"] = {},
  ): Promise<TestService> {
    return startService({
      mode: "servers",
      resources: { "notes.yaml": notesYaml },
      env: { DATABASE_URL: url, SVC_SECRET_KEY: secretKey, ...env },
      webhooks: { backoffMs: [3_600_000], ...webhooks },
    });
  }

  /** Runs blocks of the guide in one shell, and stops at the first command that fails. */
  async function run(names: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
    const commands = names.map((name) => {
      seen.add(name);
      const block = blocks.get(name);
      if (block === undefined) throw new Error(`The guide has no block "${name}"`);
      return block;
    });
    const { stdout } = await promisify(execFile)("bash", ["-euo", "pipefail", "-c", commands.join("\n")], {
      cwd: folder,
      env: {
        PATH: path,
        DATABASE_URL: database.url,
        RESTORED_URL: restored.url,
        SVC_SECRET_KEY: secretKey,
        ...env,
      },
    });
    return stdout;
  }

  /** Runs commands of `svc-admin`, and stops at the first that fails. */
  async function runAs(url: string, commands: readonly string[]): Promise<void> {
    for (const command of commands)
      await promisify(execFile)("svc-admin", command.split(" "), {
        cwd: folder,
        env: { PATH: path, DATABASE_URL: url, SVC_SECRET_KEY: secretKey },
      });
  }

  it("dumps and restores a database with which the service continues, deliveries included", async () => {
    const output = await run(["dump", "restore"]);
    expect(output).to.contain("Nothing to do.").and.to.contain("0 re-encrypted, 1 already current");

    await run(["pause"]);
    expect(await query(restored.url, "SELECT is_active FROM svc.subscriptions")).to.deep.equal([
      { is_active: false },
    ]);
    await query(restored.url, "UPDATE svc.subscriptions SET is_active = true");
    // An hour has passed.
    await query(restored.url, "UPDATE svc.delivery_queue SET due_at = now()");
    receiver.answer = {};
    service = await start(restored);
    const [first, second] = await receiver.waitFor(2);

    expect(second?.headers["x-service-delivery"]).to.equal(first?.headers["x-service-delivery"]);
    expect(second?.headers["x-service-signature"]).to.equal(first?.headers["x-service-signature"]);
    // Writes to the restored tables are captured.
    await query(restored.url, "INSERT INTO notes (text, user_id) VALUES ('after', $1)", [user.id]);
    await receiver.waitFor(3);
    await service.stop();
    service = undefined;
  });

  it("shows waiting work, and the events that a mapping file delays", async () => {
    const backlog = await run(["backlog"]);
    expect(backlog).to.match(/resource +\| not_fanned_out +\| oldest/);
    expect(backlog).to.match(/ 0 \| +1 \| .+\| +0/);

    await query(
      database.url,
      "INSERT INTO svc.events (resource, trigger, record_id, snapshot) VALUES ('notes', 'on_create', '7', '{}')",
    );
    expect(await run(["refused events"])).to.match(/notes +\| +1 \| +\d+/);
    await query(
      database.url,
      "WITH gone AS (DELETE FROM svc.outbox RETURNING event_id) DELETE FROM svc.events USING gone WHERE id = event_id",
    );
  });

  it("changes the secret key", async () => {
    const output = await run(["new key", "rotate"]);
    expect(output).to.equal("1 re-encrypted, 0 already current, 0 replaced, 0 unreadable.\n");

    const [row] = (await query(database.url, "SELECT encrypted_secret AS sealed FROM svc.subscriptions")) as [
      { sealed: Buffer },
    ];
    const box = createSecretBox(Buffer.from(secretKey, "base64"));
    expect(() => box.decrypt(row.sealed)).to.throw(/another key/);
  });

  it("makes new signing secrets when the key is lost", async () => {
    await run(["lost key"]);

    const { replaced } = JSON.parse(await readFile(join(folder, "new-secrets.json"), "utf8")) as {
      readonly replaced: readonly { readonly id: number; readonly secret: string }[];
    };
    expect(replaced.map(({ id }) => id)).to.deep.equal([webhook.id]);
    expect(replaced[0]?.secret).to.match(/^sec_/);
  });

  it("retries the failed deliveries of a receiver", async () => {
    const changed = `UPDATE svc.deliveries SET ${stateSql("'failed'").set}, url = $1`;
    await query(database.url, "DELETE FROM svc.delivery_queue");
    await query(database.url, changed, ["https://elsewhere.example.com/"]);
    expect(await run(["retry failed"])).to.equal("");

    await query(database.url, changed, ["https://receiver.example.com/hook"]);
    expect(await run(["retry failed"])).to.contain('"trigger_kind": "manual"');
  });

  it("prunes", async () => {
    const old = "now() - interval '31 days'";
    await query(
      database.url,
      `UPDATE svc.deliveries SET ${stateSql("'delivered'").set}, updated_at = ${old}`,
    );
    await query(database.url, "DELETE FROM svc.delivery_queue");
    await query(database.url, `UPDATE svc.events SET occurred_at = ${old}`);

    expect(await run(["prune"])).to.equal(
      "1 event and 2 deliveries would be deleted.\n1 event and 2 deliveries deleted.\n",
    );
    expect(await query(database.url, "SELECT FROM svc.events")).to.deep.equal([]);
  });

  it("lists the audit trail, and removes old rows of it", async () => {
    expect(await run(["audit"]))
      .to.contain("secret_key.rotated")
      .and.contain("database ");
    const rows = "SELECT count(*)::int AS count FROM svc.audit";
    const insert = `INSERT INTO svc.audit (occurred_at, action, actor_kind, subject_kind, details)
      VALUES (now() - interval '3 years', 'user.created', 'service', 'user', '{}')`;
    const before = await query(database.url, rows);
    await query(database.url, insert);

    await run(["remove old audit rows"]);

    expect(await query(database.url, rows)).to.deep.equal(before);
    expect(await query(database.url, "DELETE FROM svc.audit").catch(String)).to.match(/only grows/);
  });

  describe("two roles", () => {
    let server: PrivateServer;
    let owner: string;
    let app: string;

    before(async () => {
      server = await startPrivatePostgres();
      const urlOf = (username: string, password: string): string =>
        Object.assign(new URL(server.url), { username, password, pathname: "/svc" }).href;
      owner = urlOf("svc_owner", "a password");
      app = urlOf("svc_app", "another password");
      await run(["two roles", "owner"], { ADMIN_URL: server.url, OWNER_URL: owner });
    });
    after(() => server?.dispose());

    it("are sufficient: the owner's to migrate, the other's for the programs", async () => {
      receiver.answer = {};
      service = await start({ url: app }, { SVC_AUTO_MIGRATE: "false" });
      const ada = await service.createUser();
      const { id } = await subscribe(ada, receiver);
      const before = receiver.received.length;

      const note = await createNote(ada);
      const changed = await ada.request("PUT", `/resources/notes/${note.id}`, { text: "other" });
      const deleted = await ada.request("DELETE", `/resources/notes/${note.id}`);
      // Acts as another program.
      await query(app, "INSERT INTO notes (text, user_id) VALUES ('by psql', $1)", [ada.id]);

      expect([changed.status, deleted.status]).to.deep.equal([200, 204]);
      const received = await receiver.waitFor(before + 4);
      const events = received.slice(before).map(({ rawBody }) => JSON.parse(rawBody.toString()).event);
      expect(events).to.have.members(["on_create", "on_update", "on_delete", "on_create"]);
      await untilDelivery(ada, id, "delivered");
      expect((await ada.request("DELETE", `/webhooks/${id}`)).status).to.equal(204);
      await service.stop();
      service = undefined;
    });

    it("are sufficient for failures, and for their recipients", async () => {
      receiver.answer = ({ path: asked }, response) =>
        response.writeHead(asked === "/failing" ? 500 : asked === "/gone" ? 410 : 200).end();
      // The first failure counts as too long, once it is written.
      service = await start(
        { url: app },
        { SVC_AUTO_MIGRATE: "false" },
        { maxAttempts: 1, disableAfterMs: 1 },
      );
      const [ada, admin] = [await service.createUser(), await service.createUser({ isAdmin: true })];
      const events = ["webhook.failing", "webhook.disabled", "delivery.failed"];
      await subscribe(admin, receiver, { url: `${receiver.url}/told`, resource: "service", events });
      const failing = await subscribe(ada, receiver, { url: `${receiver.url}/failing` });
      const gone = await subscribe(ada, receiver, { url: `${receiver.url}/gone` });
      const reasonOf = async ({ id }: { readonly id: number }): Promise<unknown> =>
        (await ada.request("GET", `/webhooks/${id}`)).body.disabled_reason;

      await createNote(ada);

      expect((await untilDelivery(ada, failing.id, "failed")).attempts).to.have.length(1);
      await until(async () => (await reasonOf(failing)) === "failing", { what: "a webhook that is off" });
      await until(async () => (await reasonOf(gone)) === "gone", { what: "a webhook that is gone" });
      const told = (): readonly unknown[] =>
        receiver.received
          .filter(({ path: asked }) => asked === "/told")
          .map(({ rawBody }) => JSON.parse(rawBody.toString()).event);
      await until(() => events.every((event) => told().includes(event)), { what: "operational events" });
      await service.stop();
      service = undefined;
    });

    it("are sufficient to count waiting work, and to list events", async () => {
      service = await start({ url: app }, { SVC_AUTO_MIGRATE: "false" });
      const ada = await service.createUser();
      await createNote(ada);

      const metrics = parseMetrics(await service.infrastructure.metrics.scrape());
      expect(valueOf(metrics, "svc_events_captured_total")).to.be.above(0);
      const listed = await ada.request("GET", "/events");
      expect(listed.status, JSON.stringify(listed.body)).to.equal(200);
      await service.stop();
      service = undefined;
    });

    it("are sufficient to erase a record, deliveries and answers of receivers included", async () => {
      receiver.answer = { status: 500, body: "an answer" };
      service = await start({ url: app }, { SVC_AUTO_MIGRATE: "false" });
      const ada = await service.createUser();
      const { id } = await subscribe(ada, receiver);
      const note = await createNote(ada);
      const { id: deliveryId } = await untilDelivery(ada, id, "retrying");
      await service.stop();
      service = undefined;

      await runAs(app, [`erase --resource notes --record ${note.id} --yes`]);

      const left = `SELECT status, response_body AS answer FROM svc.deliveries JOIN svc.attempts ON delivery_id = id WHERE id = $1`;
      expect(await query(app, left, [deliveryId])).to.deep.equal([{ status: "cancelled", answer: null }]);
    });

    it("are sufficient to remove tokens that ended long ago", async () => {
      await query(
        app,
        `WITH eve AS (INSERT INTO svc.users (name, email) VALUES ('Eve', 'eve@example.com') RETURNING id)
          INSERT INTO svc.tokens (user_id, name, hash, revoked_at)
          SELECT id, 'old', '\\x00', now() - interval '1 year' FROM eve`,
      );
      service = await start({ url: app }, { SVC_AUTO_MIGRATE: "false" });

      const old = "SELECT FROM svc.tokens WHERE name = 'old'";
      await until(async () => (await query(app, old)).length === 0, { what: "a removed token" });
      await service.stop();
      service = undefined;
    });

    it("are sufficient for every request that changes something", async () => {
      receiver.answer = { status: 500 };
      service = await start({ url: app }, { SVC_AUTO_MIGRATE: "false" }, { maxAttempts: 1 });
      await requestChanges(service, receiver);
      await service.stop();
      service = undefined;
    });

    it("are sufficient for the commands that change something, run as the programs", async () => {
      await runAs(app, [
        "create-user --name Bob --email bob@example.com",
        "tokens revoke 1",
        "users disable 1",
        "prune --older-than 1d",
        "secret-key rotate",
        "migrate --plan",
      ]);
    });

    const insufficientPrivilege = "42501";
    for (const statement of [
      "CREATE TABLE public.x ()",
      "CREATE TABLE svc.x ()",
      "ALTER TABLE notes ADD x int",
      "ALTER TABLE notes DISABLE TRIGGER USER",
      "DROP TABLE notes",
      "TRUNCATE notes",
      "TRUNCATE svc.events",
      "UPDATE svc.migrations SET checksum = checksum",
      "DELETE FROM svc.installed_resources",
      "INSERT INTO svc.events (resource, trigger, record_id, snapshot) VALUES ('notes', 'on_create', '1', '{}')",
      "UPDATE svc.attempts SET number = 2",
      "DELETE FROM svc.users",
      "DELETE FROM svc.made",
      "DELETE FROM svc.audit",
      "INSERT INTO svc.audit (action, actor_kind, subject_kind, details) VALUES ('user.created', 'service', 'user', '{}')",
      "SET session_replication_role = replica",
    ])
      it(`do not let the programs ${statement}`, async () => {
        const code = await query(app, statement).then(
          () => "done",
          (error: { readonly code?: string }) => error.code,
        );

        expect(code).to.equal(insufficientPrivilege);
      });
  });

  // A suite of its own, since it must come last.
  describe("as a whole", () => {
    it("marks no block that is not run here", () => {
      expect([...seen].toSorted()).to.deep.equal([...blocks.keys()].toSorted());
      expect(guide.match(/▶$/gm)).to.have.length(blocks.size);
    });
  });
});
