import { tmpdir } from "node:os";
import { expect } from "chai";
import { runAdmin } from "../../src/cli/program.ts";
import { useCoreScene } from "../support/core-scene.ts";
import { createMemoryTerminal } from "../support/memory-terminal.ts";

describe("svc-admin status", () => {
  const scene = useCoreScene();

  async function run(...options: readonly string[]): Promise<string> {
    const terminal = createMemoryTerminal();
    const env = { DATABASE_URL: scene.core.url, SVC_SECRET_KEY: Buffer.alloc(32).toString("base64") };
    await runAdmin({ args: ["status", ...options], env, cwd: tmpdir(), terminal });
    return terminal.read().stdout;
  }

  it("says that nothing runs and nothing fails", async () => {
    const stdout = await run();

    expect(stdout).to.include("No process of svc runs on this database.");
    expect(stdout).to.match(/deliveries +│ 0 /);
    expect(stdout).to.include("No receiver fails, is off or waits for a slot.");
  });

  it("shows processes, waiting work and failing receivers of all users, at most 100 wide", async () => {
    await scene.core.sql(`
      INSERT INTO svc.processes (id, program, host, pid, configuration, version, reload_faults)
      VALUES (gen_random_uuid(), 'dispatcher', 'a-host-with-a-long-name', 4711, 'abc', '0.1.0', ARRAY['notes.yaml:1:1: a fault'])`);
    await scene.core.sql("INSERT INTO svc.users (name, email) VALUES ('Ada', 'ada@example.com')");
    await scene.core.sql(`
      INSERT INTO svc.subscriptions (user_id, url, resource, events, encrypted_secret, secret_hint, is_active, disabled_at, disabled_reason)
      SELECT id, 'https://receiver.example.com/secret-path', 'notes', '{on_create}', 'sealed', 'abcd', false, now(), 'gone' FROM svc.users`);

    const stdout = await run();

    for (const text of ["4711", "0.1.0", "notes.yaml:1:1: a fault", "gone"]) expect(stdout).to.include(text);
    expect(stdout).not.to.include("secret-path");
    expect(Math.max(...stdout.split("\n").map((line) => line.length))).to.be.at.most(100);
    const shown = JSON.parse(await run("--json")) as Readonly<Record<string, unknown>>;
    expect(shown["processes"]).to.have.lengthOf(1);
    expect(shown["receivers"]).to.have.lengthOf(1);
    expect(shown["backlog"]).to.include({ events: 0, deliveries: 0 });
  });

  it("marks counts that ended at their limit, which are at least as many", async () => {
    await scene.core.sql(
      "INSERT INTO svc.events (resource, trigger, record_id, snapshot) SELECT 'notes', 'on_create', '1', '{}' FROM generate_series(1, 1001)",
    );
    const subscription = await scene.work.addSubscription({ isActive: false });
    await Promise.all(
      Array.from({ length: 101 }, () => scene.work.addDelivery(subscription, { due: "parked" })),
    );

    const stdout = await run();

    expect(stdout).to.match(/│ events +│ 1000\+ +│/);
    expect(stdout).to.match(/│ deliveries +│ 101 +│/);
    expect(stdout).to.match(/│ 100\+ +│/);
    const { backlog } = JSON.parse(await run("--json")) as Readonly<Record<string, unknown>>;
    expect(backlog).to.include({ events: 1000, is_estimate: true });
  });
});
