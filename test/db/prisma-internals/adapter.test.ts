import { expect } from "chai";
import { Pool } from "pg";
import { createAdapter } from "../../../src/db/prisma-internals/adapter.ts";
import { noTracing, unsampledTraceparent, type Span, type Tracing } from "../../../src/telemetry/tracing.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const traceparent = `00-${traceId}-b7ad6b7169203331-01`;
const recorded: Span = {
  ...noTracing.begin({ name: "request", kind: "server", parent: traceparent }),
  traceId,
};
const unrecorded: Span = { ...recorded, traceId: undefined, traceparent: traceparent.replace(/01$/, "00") };

const insert = "INSERT INTO notes (text) VALUES ('hello') RETURNING current_query()";

describe("createAdapter", () => {
  let created: TestDatabase;
  let pool: Pool;

  before(async () => {
    created = await createTestDatabase();
    // One connection, since pg_prepared_statements shows only those of its own session.
    pool = new Pool({ connectionString: created.url, max: 1 });
    // Dropping the database may cut a connection that is about to end.
    pool.on("error", () => undefined);
    await pool.query("CREATE TABLE notes (text text)");
  });

  after(async () => {
    await pool.end();
    await created.drop();
  });

  /** Returns the statement of `span` as the server saw it; undefined for no span. */
  async function seen(
    sql: string,
    { isOn = true, span }: { readonly isOn?: boolean; readonly span?: Span | undefined },
  ): Promise<{ readonly text: unknown; readonly isPrepared: boolean }> {
    const tracing: Tracing = { ...noTracing, isOn, current: () => span };
    const adapter = await createAdapter({ pool, isEmbedded: false, tracing }).connect();
    const { rows } = await adapter.queryRaw({ sql, args: [], argTypes: [] });
    const prepared = await pool.query("SELECT FROM pg_prepared_statements WHERE statement = $1", [
      rows[0]?.[0],
    ]);
    return { text: rows[0]?.[0], isPrepared: prepared.rows.length > 0 };
  }

  for (const sql of [
    insert,
    "UPDATE notes SET text = '' RETURNING current_query()",
    "DELETE FROM notes RETURNING current_query()",
  ]) {
    it(`ends ${sql.split(" ", 1)[0]} with the traceparent of a recorded span, and does not keep the statement`, async () => {
      await pool.query("INSERT INTO notes VALUES ('one')");

      expect(await seen(sql, { span: recorded })).to.deep.equal({
        text: `${sql} /*traceparent='${traceparent}'*/`,
        isPrepared: false,
      });
    });
  }

  it("ends a write within an unrecorded span with one text for all, which stays prepared", async () => {
    expect(await seen(insert, { span: unrecorded })).to.deep.equal({
      text: `${insert} /*traceparent='${unsampledTraceparent}'*/`,
      isPrepared: true,
    });
  });

  it("does so in transactions too", async () => {
    const tracing: Tracing = { ...noTracing, isOn: true, current: () => recorded };
    const adapter = await createAdapter({ pool, isEmbedded: false, tracing }).connect();

    const transaction = await adapter.startTransaction();
    const { rows } = await transaction.queryRaw({ sql: insert, args: [], argTypes: [] });
    await transaction.commit();

    expect(rows[0]?.[0]).to.include(traceparent);
  });

  it("leaves reads, writes outside of a span, and everything without tracing unchanged, prepared", async () => {
    const read = "SELECT current_query()";

    expect(await seen(read, { span: recorded })).to.deep.equal({ text: read, isPrepared: true });
    expect(await seen(insert, { span: undefined })).to.deep.equal({ text: insert, isPrepared: true });
    expect(await seen(insert, { isOn: false, span: recorded })).to.deep.equal({
      text: insert,
      isPrepared: true,
    });
  });
});
