import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { expect } from "chai";
import { Client } from "pg";
import { createSecretBox } from "../src/subscriptions/secret.ts";
import { createTestDatabase, type TestDatabase } from "./support/database.ts";
import { createNote, notesYaml, subscribe, untilDelivery } from "./support/notes.ts";
import { ensurePostgres } from "./support/postgres.ts";
import { startReceiver, type TestReceiver } from "./support/receiver.ts";
import { startService, type TestService, type TestUser } from "./support/service.ts";

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
  /** Blocks that a test ran. */
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
    const program = fileURLToPath(new URL("../src/bin/svc-admin.ts", import.meta.url));
    const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
    const script = `#!/bin/sh\nexec "${process.execPath}" --import "${tsx}" "${program}" "$@"\n`;
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

  /** Its one delivery waits for an hour. */
  function start({ url }: TestDatabase, env: Readonly<Record<string, string>> = {}): Promise<TestService> {
    return startService({
      mode: "servers",
      resources: { "notes.yaml": notesYaml },
      env: { DATABASE_URL: url, SVC_SECRET_KEY: secretKey, ...env },
      webhooks: { backoffMs: [3_600_000] },
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

  it("dumps and restores a database with which the service goes on, deliveries included", async () => {
    const output = await run(["dump", "restore"]);
    expect(output).to.contain("Nothing to do.").and.to.contain("0 encrypted anew, 1 already current");

    await run(["pause"]);
    expect(await query(restored.url, "SELECT is_active FROM svc.subscriptions")).to.deep.equal([
      { is_active: false },
    ]);
    await query(restored.url, "UPDATE svc.subscriptions SET is_active = true");
    // An hour has passed.
    await query(restored.url, "UPDATE svc.deliveries SET next_attempt_at = now()");
    receiver.answer = {};
    service = await start(restored);
    const [first, second] = await receiver.waitFor(2);

    expect(second?.headers["x-service-delivery"]).to.equal(first?.headers["x-service-delivery"]);
    expect(second?.headers["x-service-signature"]).to.equal(first?.headers["x-service-signature"]);
    // And captures what is written to the restored tables.
    await query(restored.url, "INSERT INTO notes (text, user_id) VALUES ('after', $1)", [user.id]);
    await receiver.waitFor(3);
    await service.stop();
    service = undefined;
  });

  it("shows what waits, and which events a mapping file holds back", async () => {
    const backlog = await run(["backlog"]);
    expect(backlog).to.match(/unpublished \| not_fanned_out \| oldest/);
    expect(backlog).to.match(/retrying +\| +1 \| .+\| +0/);

    await query(
      database.url,
      `INSERT INTO svc.events (resource, trigger, record_id, snapshot, relay_error)
       VALUES ('notes', 'on_create', '7', '{}', 'transform failed')`,
    );
    expect(await run(["refused events"])).to.match(/notes +\| transform failed +\| +1/);
    await query(database.url, "DELETE FROM svc.events WHERE relay_error IS NOT NULL");
  });

  it("changes the secret key", async () => {
    const output = await run(["new key", "rotate"]);
    expect(output).to.equal("1 encrypted anew, 0 already current, 0 replaced, 0 unreadable.\n");

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
    const changed = "UPDATE svc.deliveries SET status = 'failed', next_attempt_at = NULL, url = $1";
    await query(database.url, changed, ["https://elsewhere.example.com/"]);
    expect(await run(["retry failed"])).to.equal("");

    await query(database.url, changed, ["https://receiver.example.com/hook"]);
    expect(await run(["retry failed"])).to.contain('"trigger_kind": "manual"');
  });

  it("prunes", async () => {
    const old = "now() - interval '31 days'";
    await query(
      database.url,
      `UPDATE svc.deliveries SET status = 'delivered', next_attempt_at = NULL, updated_at = ${old}`,
    );
    await query(
      database.url,
      `UPDATE svc.events SET occurred_at = ${old}, published_at = ${old}, fanned_out_at = ${old}`,
    );

    expect(await run(["prune"])).to.equal(
      "1 events and 2 deliveries would be deleted.\n1 events and 2 deliveries deleted.\n",
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

  it("marks no block that is not run here", () => {
    expect([...seen].toSorted()).to.deep.equal([...blocks.keys()].toSorted());
    expect(guide.match(/▶$/gm)).to.have.length(blocks.size);
  });
});
