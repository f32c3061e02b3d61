import { expect } from "chai";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import type { EmbeddedDatabase } from "../../src/embedded/embedded.ts";
import { coreSteps, loadCoreMigrations, runSteps } from "../../src/migration/core-migrations.ts";
import { captureOf } from "../../src/events/capture.ts";
import { openNewEmbedded } from "../support/embedded.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { definition, field } from "../support/definitions.ts";

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const comment = `/*traceparent='${traceparent}'*/`;
const insert = "INSERT INTO notes (text) VALUES ('hello')";

for (const kind of ["PostgreSQL", "the embedded database"] as const) {
  describe(`svc.statement_traceparent on ${kind}`, function () {
    this.timeout(60_000);
    let folder: string;
    let created: TestDatabase | undefined;
    let embedded: EmbeddedDatabase | undefined;
    let client: Client;

    before(async () => {
      folder = await mkdtemp(join(tmpdir(), "svc-traceparent-"));
      if (kind === "PostgreSQL") created = await createTestDatabase();
      else embedded = await openNewEmbedded(folder);
      client = new Client({ connectionString: created?.url ?? embedded?.url ?? "" });
      await client.connect();
      await runSteps(client, coreSteps(await loadCoreMigrations()));
      await client.query(
        "CREATE TABLE notes (id serial PRIMARY KEY, text text, parent int REFERENCES notes ON DELETE CASCADE)",
      );
      const notes = definition({ name: "notes", fields: [field("text", "String"), field("parent", "Int")] });
      for (const statement of captureOf(notes).install) await client.query(statement);
    });

    after(async () => {
      await client?.end();
      await embedded?.close();
      await created?.drop();
      await rm(folder, { recursive: true, force: true });
    });

    beforeEach(() => client.query("TRUNCATE svc.events CASCADE"));

    /** Returns the traceparents of the events since the last call, in order. */
    async function captured(): Promise<readonly (string | null)[]> {
      const { rows } = await client.query<{ traceparent: string | null }>(
        "WITH gone AS (DELETE FROM svc.events RETURNING id, traceparent) SELECT traceparent FROM gone ORDER BY id",
      );
      return rows.map((row) => row.traceparent);
    }

    const found: Readonly<Record<string, string>> = {
      "a comment at the end": `${insert} ${comment}`,
      "one before a semicolon": `${insert} ${comment};\n`,
      "one with other keys": `${insert} /*db_driver='pg%3A8',traceparent='${traceparent}',tracestate='a%3D1'*/`,
      "one of an update": `UPDATE notes SET text = text || '!' WHERE id = (SELECT max(id) FROM notes) ${comment}`,
      "one after a very long statement": `INSERT INTO notes (text) VALUES ('${"x".repeat(1_000_000)}') ${comment}`,
    };
    for (const [what, statement] of Object.entries(found)) {
      it(`takes ${what}`, async () => {
        await client.query(insert);
        await captured();

        await client.query(statement);

        expect(await captured()).to.deep.equal([traceparent]);
      });
    }

    const ignored: Readonly<Record<string, string>> = {
      "a statement without a comment": insert,
      "a comment that is not at the end": `INSERT INTO notes (text) ${comment} VALUES ('hello')`,
      "a value that looks like one": `INSERT INTO notes (text) VALUES ('${comment.replaceAll("'", "''")}')`,
      "a column of that name": `INSERT INTO notes (text) VALUES ('') RETURNING 1 AS "${comment.replaceAll("'", "")}"`,
      "a comment of another kind": `${insert} /* traceparent=${traceparent} */`,
      "an id with capitals": `${insert} ${comment.replace("0af7", "0AF7")}`,
      "an id that is too long": `${insert} ${comment.replace("-01", "-011")}`,
      "another version": `${insert} ${comment.replace("'00-", "'01-")}`,
    };
    for (const [what, statement] of Object.entries(ignored)) {
      it(`takes nothing from ${what}`, async () => {
        await client.query(statement);

        expect(await captured()).to.deep.equal([null]);
      });
    }

    it("takes it from a statement with parameters, prepared or not", async () => {
      const text = `INSERT INTO notes (text) VALUES ($1) ${comment}`;

      await client.query(text, ["one"]);
      await client.query({ name: "insert", text, values: ["two"] });
      await client.query({ name: "insert", text, values: ["three"] });

      expect(await captured()).to.deep.equal([traceparent, traceparent, traceparent]);
    });

    it("gives it to every event of the statement, those of functions and cascades included", async () => {
      await client.query(`
        CREATE OR REPLACE FUNCTION add_two() RETURNS void LANGUAGE plpgsql AS $$
          BEGIN ${insert}; ${insert}; END $$`);
      await client.query(`INSERT INTO notes (text, parent) SELECT 'child', max(id) FROM notes`);
      await captured();

      await client.query(`SELECT add_two() ${comment}`);
      await client.query(`DELETE FROM notes WHERE text <> 'child' ${comment}`);

      const all = await captured();
      expect(all.length).to.be.greaterThan(4);
      expect(new Set(all)).to.deep.equal(new Set([traceparent]));
    });

    it("uses the statement's own within one transaction, and none where it has none", async () => {
      const other = traceparent.replace("0af7", "1bf8");

      // PGlite's clock separates the statements of a transaction, and ticks in milliseconds.
      const tick = "SELECT pg_sleep(0.002)";

      for (const statement of [
        "BEGIN",
        `${insert} ${comment}`,
        tick,
        insert,
        tick,
        `${insert} ${comment.replace(traceparent, other)}`,
        "COMMIT",
        insert,
      ])
        await client.query(statement);

      expect(await captured()).to.deep.equal([traceparent, null, other, null]);
    });

    it("reads a statement of 900 kB once, not for each of its 10,000 rows", async () => {
      const rows = Array.from({ length: 10_000 }, () => `('${"x".repeat(85)}')`).join(",");
      const startedAt = performance.now();

      await client.query(`INSERT INTO notes (text) VALUES ${rows} ${comment}`);

      // One read for each row takes 26 s on an idle machine.
      expect(performance.now() - startedAt).to.be.lessThan(20_000);
      expect(new Set(await captured())).to.deep.equal(new Set([traceparent]));
    });
  });
}
