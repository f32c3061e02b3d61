import { randomBytes } from "node:crypto";
import { hostname, userInfo } from "node:os";
import { expect } from "chai";
import { runAdmin } from "../../src/cli/program.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { fillDataDir } from "../support/embedded.ts";
import { createMemoryTerminal } from "../support/memory-terminal.ts";
import { notesYaml } from "../support/notes.ts";
import { purgeQueues } from "../support/queues.ts";
import { createProgram, type Configuration, type Program, writeConfiguration } from "../support/program.ts";
import { modes, request, type Answer } from "../support/service.ts";
import { amqpUrl } from "../support/services.ts";
import { until } from "../support/wait.ts";

const service = `
webhooks:
  allowedNetworks: [127.0.0.0/8]
`;

const operator = { actor_kind: "operator", actor_name: userInfo().username, source: hostname() };

// oxlint-disable-next-line typescript/no-explicit-any -- Rows of many shapes; chai checks them.
type Row = Readonly<Record<string, any>>;

for (const mode of modes) {
  describe(`the audit trail of a service, on ${mode}`, function () {
    this.timeout(90_000);
    let configuration: Configuration;
    let database: TestDatabase | undefined;
    let env: Readonly<Record<string, string>>;
    let programs: readonly Program[] = [];
    let user: { readonly id: number; readonly token: string; readonly token_id: number };

    before(async () => {
      configuration = writeConfiguration({ service, resources: { "notes.yaml": notesYaml } });
      env = configuration.env;
      if (mode === "servers") {
        database = await createTestDatabase();
        const secretKey = randomBytes(32).toString("base64");
        const broker = await amqpUrl();
        await purgeQueues(broker);
        env = { ...env, DATABASE_URL: database.url, AMQP_URL: broker, SVC_SECRET_KEY: secretKey };
        await admin(["migrate"]);
      } else await fillDataDir(String(env["SVC_DATA_DIR"]));
      const names = mode === "servers" ? (["api", "dispatcher"] as const) : (["all"] as const);
      programs = await Promise.all(names.map((name) => createProgram({ name, env })));
      await Promise.all(programs.map((program) => program.start()));
      const args = ["create-user", "--name", "Ada", "--email", "ada@example.com"];
      user = (await admin(args)) as unknown as typeof user;
    });

    after(async () => {
      for (const program of programs) await program.dispose();
      await database?.drop();
      configuration?.dispose();
    });

    /** Runs in this process, which is faster than a new one. */
    async function admin(args: readonly string[]): Promise<Row> {
      const terminal = createMemoryTerminal();
      const status = await runAdmin({ args: [...args, "--json"], env, cwd: "/", terminal });
      const { stdout, stderr } = terminal.read();
      if (status !== 0) throw new Error(stderr);
      return JSON.parse(stdout) as Row;
    }

    async function list(...options: readonly string[]): Promise<readonly Row[]> {
      return (await admin(["audit", "list", ...options])) as unknown as readonly Row[];
    }

    /** Returns the rows that an act adds, oldest first. */
    async function added(act: () => Promise<unknown>): Promise<readonly Row[]> {
      const [before] = await list("--limit", "1");
      await act();
      return (await list()).filter(({ id }) => id > before?.["id"]).toReversed();
    }

    function ask(method: string, path: string, body?: unknown): Promise<Answer> {
      const { origin } = programs[0] as Program;
      const headers = { "X-Request-Id": "req-1" };
      return request({ url: `${origin}/svc-api${path}`, method, token: user.token, body, headers });
    }

    it("begins with the migration and the configuration, once for all processes", async () => {
      const rows = (await list()).toReversed();

      const [migrated, loaded, ...others] = rows.filter(({ action }) => /^(migration|conf)/.test(action));
      expect(migrated).to.include({ action: "migration.applied" });
      expect(migrated?.["details"].titles).to.include("core migration 0003_audit");
      expect(migrated).to.include(
        mode === "servers" ? operator : { actor_kind: "service", actor_name: "all" },
      );
      expect(loaded).to.include({
        action: "configuration.loaded",
        actor_kind: "service",
        source: hostname(),
      });
      expect(loaded?.["details"]).to.deep.equal({
        before: null,
        resources: { added: ["notes"], removed: [], changed: [] },
        settings: [],
      });
      expect(others).to.deep.equal([]);
      const firstUser = rows.filter(
        ({ actor_kind: kind, action }) => kind === "service" && /^[ut]/.test(action),
      );
      expect(firstUser.map(({ action }) => action)).to.deep.equal(
        mode === "servers" ? [] : ["user.created", "token.created"],
      );
    });

    it("records an operator's svc-admin commands, with the host and the name", async () => {
      const rows = await added(async () => {
        const made = await admin(["tokens", "create", "--user", String(user.id), "--name", "laptop"]);
        await admin(["tokens", "revoke", String(made["id"])]);
        await admin(["users", "disable", String(user.id)]);
        await admin(["users", "enable", String(user.id)]);
      });

      expect(rows.map(({ action }) => action)).to.deep.equal([
        "token.created",
        "token.revoked",
        "user.disabled",
        "user.enabled",
      ]);
      for (const row of rows) expect(row).to.include(operator);
    });

    it("records who changed a webhook: user, token, address and request", async () => {
      const rows = await added(async () => {
        const made = await ask("POST", "/webhooks", {
          url: "http://127.0.0.1:9/secret?key=secret",
          resource: "notes",
          events: ["on_create"],
        });
        await ask("GET", "/webhooks");
        await ask("PUT", `/webhooks/${made.body.id}`, { is_active: false });
        await ask("PUT", `/webhooks/${made.body.id}`, { url: "not a url" });
        await ask("DELETE", `/webhooks/${made.body.id}`);
        await ask("DELETE", `/webhooks/${made.body.id}`);
      });

      expect(rows.map(({ action }) => action)).to.deep.equal([
        "webhook.created",
        "webhook.updated",
        "webhook.deleted",
      ]);
      for (const row of rows) {
        expect(row).to.include({
          actor_kind: "user",
          actor_id: user.id,
          token_id: user.token_id,
          request_id: "req-1",
          subject_kind: "webhook",
          subject_id: rows[0]?.["subject_id"],
        });
        expect(row["source"]).to.match(/^(::ffff:)?127\.0\.0\.1$/);
      }
      expect(rows[1]?.["details"]).to.deep.equal({
        before: { is_active: true, disabled_reason: null },
        after: { is_active: false, disabled_reason: "owner" },
      });
      expect(JSON.stringify(rows)).not.to.include("secret?").and.not.to.include("key=");
    });

    it("records a reload: who requested it, the names that changed, and nothing when none did", async () => {
      configuration.write("service.yaml", `${service}  timeout: 7\nhttp:\n  maxPerPage: 10\n`);
      configuration.write(
        "resources/notes.yaml",
        notesYaml.replace("triggers", "searchableColumns: [text]\ntriggers"),
      );
      const rows = await added(() => admin(["reload"]));
      const again = await added(() => admin(["reload"]));

      const [asked, reloaded, ...others] = rows;
      expect(asked).to.deep.include({
        ...operator,
        action: "reload.requested",
        details: { processes: programs.length },
      });
      expect(reloaded).to.include({ action: "configuration.reloaded", actor_kind: "service" });
      expect(reloaded?.["details"]).to.deep.include({
        resources: { added: [], removed: [], changed: ["notes"] },
        settings: ["http.maxPerPage", "webhooks.timeout"],
      });
      expect(others).to.deep.equal([]);
      expect(again.map(({ action }) => action)).to.deep.equal(["reload.requested"]);
    });

    it("records the number of faults of a refused reload, once for all processes", async () => {
      const [before] = await list("--action", "configuration");
      configuration.write(
        "resources/notes.yaml",
        notesYaml.replace("Int }", "secret }").replace("on_create,", "secret,"),
      );
      const rows = await added(async () => {
        // The command checks the files first, and then asks no process.
        expect(await admin(["reload"]).catch(String)).to.match(/2 faults/);
        for (const one of programs) {
          const refused = one.untilLogged(
            "the configuration was not reloaded; the previous one stays in use",
          );
          one.signal("SIGHUP");
          await refused;
        }
        // It is written after the line of the log.
        await until(async () => (await list("--action", "configuration.refused")).length > 0, {
          what: "the row",
        });
      });

      expect(rows.map(({ action, details, subject_id: hash }) => [action, details, hash])).to.deep.equal([
        ["configuration.refused", { faults: 2 }, before?.["subject_id"]],
      ]);
    });

    it("is for admins only over the API, and not a resource", async () => {
      expect((await ask("GET", "/audit")).status).to.equal(403);
      for (const path of ["/resources/audit", "/resources/svc.audit"])
        expect((await ask("GET", path)).status, path).to.equal(404);
    });
  });
}
