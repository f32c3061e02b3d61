import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { openDatabase, type Database } from "../../src/db/client.ts";
import type { EmbeddedDatabase } from "../../src/embedded/embedded.ts";
import { keyLimits } from "../../src/http/idempotency.ts";
import { usageOf } from "../../src/http/idempotency-keys.ts";
import { openNewEmbedded } from "../support/embedded.ts";
import { coreOfSuite, migrateCore, type CoreDatabase } from "../support/core-database.ts";
import { openSlowReader, type SlowReader } from "../support/slow-reader.ts";
import { until } from "../support/wait.ts";
import { codeOf, countOf, post, startScene, type Scene } from "./idempotency-scene.ts";

const pidsOf = ({ sql }: CoreDatabase): Promise<unknown> =>
  sql("SELECT pid FROM pg_stat_activity WHERE datname = current_database() ORDER BY pid");

const inTransaction = async ({ sql }: CoreDatabase): Promise<boolean> => {
  const text =
    "SELECT FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'";
  return (await sql(text)).length > 0;
};

describe("Idempotency-Key", () => {
  const core = coreOfSuite();
  let scene: Scene;

  before(async () => {
    scene = await startScene(core.database, false);
  });

  beforeEach(async () => {
    // A user's total is cached for a minute.
    scene.clockMs += 60_000;
    await core.sql("TRUNCATE notes, svc.idempotency_keys");
  });

  after(() => scene.server.close());

  it("gives the first answer again, byte by byte, and writes once", async () => {
    const first = await post(scene, { text: "Zoë" });
    const second = await post(scene, { text: "Zoë" });

    expect([first.status, second.status]).to.deep.equal([201, 201]);
    expect(second.text).to.equal(first.text);
    for (const name of ["location", "etag", "content-type"])
      expect(second.headers[name]).to.equal(first.headers[name]);
    expect(first.headers).not.to.have.property("idempotent-replayed");
    expect(second.headers["idempotent-replayed"]).to.equal("true");
    expect(await countOf(scene, "notes")).to.equal(1);
  });

  describe("of what waits for others", () => {
    const waits = { path: "/waits" };

    it("holds no transaction meanwhile, lets others with the key wait, and repeats its answer", async () => {
      const gate = scene.hold();
      const first = post(scene, { text: "a" }, waits);
      await gate.entered;
      expect(await inTransaction(core)).to.equal(false);
      const refused = [await post(scene, { text: "a" }, waits), await post(scene, { text: "b" }, waits)];
      expect(refused.map(codeOf)).to.deep.equal(["idempotency.in_progress", "idempotency.mismatch"]);
      gate.open();
      const { text, status } = await first;
      const again = await post(scene, { text: "a" }, waits);

      expect([again.status, again.text]).to.deep.equal([status, text]);
      expect(await usageOf(core.sql, 7)).to.deep.equal({ keys: 1, bytes: text.length });
      expect(again.headers["idempotent-replayed"]).to.equal("true");
      expect(await countOf(scene, "notes")).to.equal(1);
    });

    it("leaves no trace of a refused one, and frees the key of one whose process died", async () => {
      expect((await post(scene, { text: "bad" }, waits)).status).to.equal(422);
      expect(await countOf(scene, "svc.idempotency_keys")).to.equal(0);
      const gate = scene.hold();
      const lost = post(scene, { text: "a" }, waits);
      await gate.entered;
      await core.sql("UPDATE svc.idempotency_keys SET expires_at = now() - interval '1 second'");

      expect((await post(scene, { text: "b" }, waits)).status).to.equal(201);
      gate.open();
      await lost;
    });
  });

  it("treats a path with a trailing slash as the same path", async () => {
    const first = await post(scene, { text: "a" });
    const again = await post(scene, { text: "a" }, { path: "/notes/" });

    expect([again.status, again.text]).to.deep.equal([201, first.text]);
    expect(await countOf(scene, "notes")).to.equal(1);
  });

  it("writes twice without the header, and keeps nothing", async () => {
    await post(scene, { text: "a" }, { key: "" });
    await post(scene, { text: "b" }, { key: "" });

    expect(await countOf(scene, "notes")).to.equal(2);
    expect(await countOf(scene, "svc.idempotency_keys")).to.equal(0);
  });

  it("refuses the same key with another body, path or method, with 422", async () => {
    await post(scene, { text: "a" });

    for (const other of [
      await post(scene, { text: "b" }),
      await post(scene, { text: "a" }, { path: "/secrets" }),
      await post(scene, { text: "a" }, { method: "PUT" }),
    ]) {
      expect([other.status, codeOf(other)]).to.deep.equal([422, "idempotency.mismatch"]);
      expect(other.json).to.have.nested.property("errors.Idempotency-Key").with.length(1);
    }
    expect(await countOf(scene, "notes")).to.equal(1);
  });

  it("keeps answers of tokens with and without the scope admin apart", async () => {
    const [all, limited] = [{ key: "all" }, { key: "limited", isLimited: true }];
    await post(scene, { text: "a" }, all);
    await post(scene, { text: "b" }, limited);
    const crossed = [
      await post(scene, { text: "a" }, { ...all, isLimited: true }),
      await post(scene, { text: "b" }, { ...limited, isLimited: false }),
    ];

    expect(crossed.map(codeOf)).to.deep.equal(["idempotency.mismatch", "idempotency.mismatch"]);
    expect((await post(scene, { text: "b" }, limited)).headers["idempotent-replayed"]).to.equal("true");
  });

  it("refuses to repeat an answer without memory, but refuses no answer to a write", async () => {
    const readers: SlowReader[] = [];
    const open = async (text: string, key: string): Promise<void> => {
      const headers = { Authorization: "Bearer 7", "Idempotency-Key": key };
      const body = JSON.stringify({ text });
      readers.push(await openSlowReader(scene.server.port, "POST /svc-api/notes", { headers, body }));
    };
    try {
      for (const key of ["first", "first", "first", "second"]) await open(`large ${key}`, key);

      expect(readers.map(({ status }) => status)).to.deep.equal([201, 201, 503, 201]);
      expect(readers[2]?.headers).to.include({ "retry-after": "1" }).and.not.have.property("location");
      expect(await countOf(scene, "notes")).to.equal(2);
    } finally {
      for (const reader of readers) reader.leave();
    }
  });

  it("keeps the keys of two users apart, also while a request of one is running", async () => {
    const gate = scene.hold();
    const asked = post(scene, { text: "a" });
    await gate.entered;
    const bob = await post(scene, { text: "b" }, { user: 8 });
    gate.open();
    const ada = await asked;

    expect([ada.status, bob.status]).to.deep.equal([201, 201]);
    expect(bob.headers).not.to.have.property("idempotent-replayed");
  });

  it("answers 409 with Retry-After at once while the first request runs, and its answer afterwards", async () => {
    const gate = scene.hold();
    const first = post(scene, { text: "a" });
    await gate.entered;

    const second = await post(scene, { text: "a" });
    const other = await post(scene, { text: "b" }, { key: "another" });
    gate.open();
    await first;
    const third = await post(scene, { text: "a" });

    expect([second.status, codeOf(second), second.headers["retry-after"]]).to.deep.equal([
      409,
      "idempotency.in_progress",
      "1",
    ]);
    expect(other.status).to.equal(201);
    expect([third.status, third.headers["idempotent-replayed"]]).to.deep.equal([201, "true"]);
    expect(await countOf(scene, "notes")).to.equal(2);
  });

  it("writes once, whichever of 20 concurrent requests is first", async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(scene, { text: "a" })));

    const firsts = answers.filter(
      ({ status, headers }) => status === 201 && headers["idempotent-replayed"] === undefined,
    );
    expect(firsts).to.have.length(1);
    expect(new Set(answers.map(({ status }) => status))).to.satisfy((statuses: Set<number>) =>
      [...statuses].every((status) => status === 201 || status === 409),
    );
    expect(await countOf(scene, "notes")).to.equal(1);
  });

  it("keeps neither the write nor the key when the connection is cut before the commit", async () => {
    const gate = scene.hold();
    const first = post(scene, { text: "a" });
    await gate.entered;
    await core.sql(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'",
    );
    await until(async () => !(await inTransaction(core)), { what: "the end of the connection" });
    gate.open();

    expect((await first).status).to.equal(503);
    expect([await countOf(scene, "notes"), await countOf(scene, "svc.idempotency_keys")]).to.deep.equal([
      0, 0,
    ]);
    // The server may release the key a moment later.
    await until(async () => (await post(scene, { text: "a" })).status === 201, { what: "the key" });
  });

  it("keeps no refusal: the request can be corrected under its key", async () => {
    const refused = await post(scene, { text: "bad" });
    const corrected = await post(scene, { text: "good" });

    expect([refused.status, corrected.status]).to.deep.equal([422, 201]);
  });

  it("keeps the connection of a refused request", async () => {
    await Promise.all(Array.from({ length: 4 }, (_, i) => post(scene, { text: "bad" }, { key: `k${i}` })));
    const before = await pidsOf(core);

    for (let i = 0; i < 8; i++) await post(scene, { text: "bad" });

    expect(await pidsOf(core)).to.deep.equal(before);
  });

  for (const [what, key] of [
    ["256 characters", "k".repeat(256)],
    ["a blank in it", "a b"],
    ["a character outside ASCII", "\u00e9"],
  ]) {
    it(`refuses a key of ${what}`, async () => {
      const answer = await post(scene, { text: "a" }, { key: key ?? "" });

      expect([answer.status, codeOf(answer)]).to.deep.equal([400, "request.malformed"]);
      expect(await countOf(scene, "notes")).to.equal(0);
    });
  }

  it("accepts a key of 255 visible characters", async () => {
    expect((await post(scene, { text: "a" }, { key: "~".repeat(255) })).status).to.equal(201);
  });

  it("stores a secret only encrypted", async () => {
    const first = await post(scene, { text: "sec_of_ada" }, { path: "/secrets" });
    const second = await post(scene, { text: "sec_of_ada" }, { path: "/secrets" });
    const [kept] = await core.sql<{ body: Buffer; rest: string }>(
      "SELECT body, (to_jsonb(kept) - 'body')::text AS rest FROM svc.idempotency_keys AS kept",
    );

    expect(second.text).to.equal(first.text);
    expect(first.text).to.contain("sec_of_ada");
    expect(`${kept?.body.toString("latin1")} ${kept?.rest}`).not.to.contain("sec_of");
  });

  it("keeps neither key nor body in clear text", async () => {
    await post(scene, { text: "a" }, { key: "visible-key" });
    const [kept] = await core.sql<{ text: string }>(
      "SELECT kept::text AS text FROM svc.idempotency_keys AS kept",
    );

    expect(kept?.text).not.to.contain("visible-key");
    expect(kept?.text).not.to.contain(Buffer.from("visible-key").toString("hex"));
  });

  it("deletes an answer after 24 h, and treats the key as new", async () => {
    await post(scene, { text: "a" });
    const [kept] = await core.sql<{ hours: number }>(
      "SELECT extract(epoch FROM expires_at - created_at)::int / 3600 AS hours FROM svc.idempotency_keys",
    );
    await core.sql("UPDATE svc.idempotency_keys SET expires_at = now()");
    const second = await post(scene, { text: "b" }, { path: "/secrets" });
    const again = await post(scene, { text: "b" }, { path: "/secrets" });

    expect(again.text).to.equal(second.text);
    expect(kept?.hours).to.equal(24);
    expect([second.status, second.headers["idempotent-replayed"]]).to.deep.equal([201, undefined]);
    expect(await countOf(scene, "svc.idempotency_keys")).to.equal(1);
  });

  it("refuses an answer that is too large to keep, and rolls its write back", async () => {
    const kept = await post(scene, { text: "long" });
    const unkept = await post(scene, { text: "long" }, { key: "" });

    expect([kept.status, codeOf(kept)]).to.deep.equal([413, "record.too_large"]);
    expect([unkept.status, await countOf(scene, "notes")]).to.deep.equal([201, 1]);
  });

  for (const [what, fill] of [
    [
      "100,000 keys",
      `SELECT 7, sha256(n::text::bytea), '', 201, '{}', '', 0, false, now() FROM generate_series(2, ${keyLimits.keys}) AS n`,
    ],
    ["256 MiB", `SELECT 7, 'x', '', 201, '{}', '', ${keyLimits.bytes - 1}, false, now()`],
  ] as const) {
    it(`refuses the keys of a user who has ${what} a moment after the last one, and of no other user`, async () => {
      await core.sql(
        `INSERT INTO svc.idempotency_keys (user_id, key_hash, request_hash, status, headers, body, bytes, is_sealed, expires_at) ${fill}`,
      );

      const last = await post(scene, { text: "last" }, { key: "last" });
      const refused = await post(scene, { text: "a" });

      expect(last.status).to.equal(201);
      expect([refused.status, codeOf(refused)]).to.deep.equal([429, "idempotency.exhausted"]);
      expect(await countOf(scene, "notes")).to.equal(1);
      expect((await post(scene, { text: "a" }, { user: 8 })).status).to.equal(201);
      expect((await post(scene, { text: "b" }, { key: "" })).status).to.equal(201);
    });
  }

  it("counts a user's kept answers again each minute, however often the user sends keys", async () => {
    await post(scene, { text: "other" }, { user: 8 });
    // Leaves room for one such answer, whose ids may have some digits more: the second fills it.
    await core.sql(
      `INSERT INTO svc.idempotency_keys (user_id, key_hash, request_hash, status, headers, body, bytes, is_sealed, expires_at)
       SELECT 7, 'x', '', 201, '{}', '', ${keyLimits.bytes} - bytes - 10, false, now() FROM svc.idempotency_keys`,
    );
    const answers = [];
    for (const key of ["first", "later"]) {
      answers.push(await post(scene, { text: key }, { key }));
      scene.clockMs += 30_000;
    }
    await core.sql("TRUNCATE svc.idempotency_keys");
    answers.push(await post(scene, { text: "a" }));

    expect(answers.map(({ status }) => status)).to.deep.equal([201, 201, 201]);
  });
});

describe("Idempotency-Key on the embedded database", function () {
  this.timeout(60_000);
  let folder: string;
  let embedded: EmbeddedDatabase;
  let database: Database;
  let scene: Scene;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "svc-idempotency-"));
    embedded = await openNewEmbedded(folder);
    database = await openDatabase({ url: embedded.url, poolSize: 4, isEmbedded: true });
    await migrateCore(database.pool);
    scene = await startScene(database, true);
  });

  after(async () => {
    await scene.server.close();
    await database.close();
    await embedded.close();
    await rm(folder, { recursive: true, force: true });
  });

  it("writes once for five concurrent requests: the others wait for its answer", async () => {
    const answers = await Promise.all(Array.from({ length: 5 }, () => post(scene, { text: "a" })));

    expect(answers.map(({ status }) => status)).to.deep.equal([201, 201, 201, 201, 201]);
    expect(answers.filter(({ headers }) => headers["idempotent-replayed"] === "true")).to.have.length(4);
    expect(await countOf(scene, "notes")).to.equal(1);
  });

  it("keeps nothing of a refusal", async () => {
    expect((await post(scene, { text: "bad" }, { key: "b" })).status).to.equal(422);
    expect((await post(scene, { text: "b" }, { key: "b" })).status).to.equal(201);
    expect(await countOf(scene, "notes")).to.equal(2);
  });
});
