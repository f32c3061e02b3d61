import { Client } from "pg";
import { coreSteps, loadCoreMigrations, runSteps } from "../../src/migration/core-migrations.ts";
import { captureOf } from "../../src/events/capture.ts";
import { definition, field } from "./definitions.ts";

/** The resource of a scene. */
export const notes = definition({
  name: "notes",
  ownerColumn: "user_id",
  fields: [field("text", "String"), field("user_id", "Int")],
});

/** Columns that its table must have. */
export const columns = "id int PRIMARY KEY, text text, user_id int";

/**
 * Notes 0 to 99 and 100 to 199. The first hundred is divided into two partitions, one level deeper.
 */
export const partitioned = `
  CREATE TABLE notes (${columns}) PARTITION BY RANGE (id);
  CREATE TABLE notes_0 PARTITION OF notes FOR VALUES FROM (0) TO (100) PARTITION BY RANGE (id);
  CREATE TABLE notes_0_0 PARTITION OF notes_0 FOR VALUES FROM (0) TO (50);
  CREATE TABLE notes_0_50 PARTITION OF notes_0 FOR VALUES FROM (50) TO (100);
  CREATE TABLE notes_100 PARTITION OF notes FOR VALUES FROM (100) TO (200)`;

/** A database in which notes are captured. */
export interface CaptureScene {
  readonly client: Client;
  /** Empties the database, and creates the service's own tables. */
  reset(): Promise<void>;
  /** Runs the SQL that creates the table, and installs the capture. */
  installOn(tables: string): Promise<void>;
  /** Returns the events so far, each as trigger, id and text. */
  events(): Promise<readonly string[]>;
  /** Runs the SQL, and returns the events that it made. */
  eventsOf(sql: string): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** Connects to a database of the test. */
export async function openCaptureScene(url: string): Promise<CaptureScene> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const events = async (): Promise<readonly string[]> => {
    const { rows } = await client.query<{ event: string }>(
      "SELECT concat_ws(' ', trigger, record_id, snapshot ->> 'text') AS event FROM svc.events ORDER BY id",
    );
    return rows.map(({ event }) => event);
  };
  return {
    client,
    async reset() {
      await client.query(
        "DROP SCHEMA IF EXISTS svc CASCADE; DROP SCHEMA public CASCADE; CREATE SCHEMA public",
      );
      await runSteps(client, coreSteps(await loadCoreMigrations()));
    },
    async installOn(tables) {
      await client.query(tables);
      await client.query(captureOf(notes).install.join(";"));
    },
    events,
    async eventsOf(sql) {
      await client.query("DELETE FROM svc.events");
      await client.query(sql);
      return events();
    },
    close: () => client.end(),
  };
}
