import { expect } from "chai";
import { Client } from "pg";
import { coreSteps, loadCoreMigrations, runSteps } from "../../src/migration/core-migrations.ts";
import { openScene, type Scene } from "../support/migration-scene.ts";
import { definition, definitionsOf } from "../support/definitions.ts";
import { until } from "../support/wait.ts";

const notes = definition({ name: "notes", fields: [] });

describe("a migration beside transactions of the version before", () => {
  let scene: Scene;
  let writer: Client;

  beforeEach(async () => {
    scene = await openScene();
    writer = new Client({ connectionString: scene.url });
    await writer.connect();
  });

  afterEach(async () => {
    await writer.end();
    await scene.close();
  });

  const isWaiting = async (): Promise<boolean> => {
    const rows = await scene.rows(
      "SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'svc migrate' AND wait_event_type = 'Lock' AND wait_event = 'relation'",
    );
    return rows.length > 0;
  };
  const untilWaiting = (): Promise<unknown> =>
    until(isWaiting, { what: "the migration to wait for a table", timeoutMs: 20_000 });

  it("is in no deadlock with one that goes from a table to another of the core migrations", async () => {
    const migrations = await loadCoreMigrations();
    const at = migrations.findIndex(({ name }) => name === "0023_subscription_changes");
    await runSteps(scene.client, coreSteps(migrations.slice(0, at)));
    await writer.query("BEGIN");
    await writer.query("SELECT FROM svc.delivery_queue");

    const migrated = scene.apply(definitionsOf());
    await untilWaiting();
    const { command } = await writer.query("UPDATE svc.subscriptions SET is_active = true");
    await writer.query("COMMIT");

    expect(command).to.equal("UPDATE");
    expect(await migrated).to.equal("done");
  });

  it("is in no deadlock with one that goes from a table of a resource to those of the service", async () => {
    await scene.migrate(definitionsOf(notes));
    // As after a migration whose captures have changed, and with a core migration to come.
    await scene.client.query("UPDATE svc.installed_resources SET hash = 'another'");
    await scene.client.query("DELETE FROM svc.migrations WHERE name = '0027_disabled_users'");
    await scene.client.query("DROP INDEX svc.users_disabled_idx");
    await writer.query("BEGIN");
    await writer.query("SELECT FROM notes");

    const migrated = scene.apply(definitionsOf(notes));
    await untilWaiting();
    const { command } = await writer.query("UPDATE svc.users SET name = name");
    await writer.query("COMMIT");

    expect(command).to.equal("UPDATE");
    expect(await migrated).to.equal("done");
  });
});
