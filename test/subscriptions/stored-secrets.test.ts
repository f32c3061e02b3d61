import { randomBytes } from "node:crypto";
import { expect } from "chai";
import type { Sql } from "../../src/db/sql.ts";
import { OperatorError } from "../../src/kit/errors.ts";
import { createSecretBox, type SecretBox } from "../../src/subscriptions/secret.ts";
import { openSigning } from "../../src/subscriptions/signing.ts";
import {
  reencryptSecrets,
  refuseUnknownKeys,
  replaceUnreadable,
  type Reencryption,
} from "../../src/subscriptions/stored-secrets.ts";
import { testOperator } from "../support/actors.ts";
import { coreOfSuite } from "../support/core-database.ts";
import { createWork, type Work } from "../support/work.ts";

function sealAll(box: SecretBox): Record<string, Uint8Array<ArrayBuffer> | Date | string[]> {
  return {
    encryptedSecret: box.encrypt("newest"),
    encryptedPrevious: box.encrypt('[{"secret":"before","untilMs":9e15}]'),
    previousUntil: new Date("2999-01-01"),
    encryptedHeaders: box.encrypt('{"X-Key":"value"}'),
    headersChangedAt: new Date(),
    headerNames: ["X-Key"],
  };
}

describe("stored secrets", () => {
  const [oldKey, newKey, lostKey] = [randomBytes(32), randomBytes(32), randomBytes(32)];
  const [oldBox, lostBox] = [createSecretBox(oldKey), createSecretBox(lostKey)];
  const newAlone = createSecretBox(newKey);
  const newBox = createSecretBox(newKey, [oldKey]);
  const core = coreOfSuite();
  let work: Work;
  let userId: number;

  before(async () => {
    work = createWork(core.prisma);
  });

  beforeEach(async () => {
    await core.sql("TRUNCATE svc.users RESTART IDENTITY CASCADE");
    userId = (await work.addUser()).id;
  });

  async function store(box: SecretBox, ...secrets: readonly string[]): Promise<readonly number[]> {
    const ids: number[] = [];
    for (const secret of secrets)
      ids.push((await work.addSubscription({ userId, encryptedSecret: box.encrypt(secret) })).id);
    return ids;
  }

  async function sealed(): Promise<readonly Buffer[]> {
    const rows = await core.sql<{ sealed: Buffer }>(
      "SELECT encrypted_secret AS sealed FROM svc.subscriptions ORDER BY id",
    );
    return rows.map((row) => row.sealed);
  }

  function reencrypt(sql: Sql = core.sql, batchSize = 2): Promise<Reencryption> {
    return reencryptSecrets({
      sql,
      secretBox: newBox,
      batchSize,
      onProgress: () => undefined,
      actor: testOperator,
    });
  }

  describe("refuseUnknownKeys", () => {
    it("continues when there is no secret, and when each was encrypted with a given key", async () => {
      await refuseUnknownKeys({ sql: core.sql, secretBox: newBox });
      await store(oldBox, "a");
      await store(newBox, "b");

      await refuseUnknownKeys({ sql: core.sql, secretBox: newBox });
    });

    it("refuses a key that is not the one of the secrets, with the key's name and the remedy", async () => {
      await store(newBox, "a");
      await store(oldBox, ...Array.from({ length: 12 }, String));

      const error = await refuseUnknownKeys({ sql: core.sql, secretBox: newAlone }).catch((e: unknown) => e);

      expect(error).to.be.instanceOf(OperatorError);
      const { message } = error as OperatorError;
      expect(message).to.contain(
        `12 of 13: key id ${oldBox.currentHead.slice(2)}, subscriptions 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 2 more\n`,
      );
      expect(message).to.contain(
        `The secret key (SVC_SECRET_KEY, or secret.key in the data folder) has the id ${newAlone.currentHead.slice(2)}`,
      );
      expect(message).to.contain("SVC_PREVIOUS_SECRET_KEYS").and.to.contain("svc-admin secret-key rotate");
      for (const key of [oldKey, newKey]) expect(message).not.to.contain(key.toString("base64"));
    });

    it("counts a subscription once, with a previous secret and headers too", async () => {
      await store(oldBox, "a");
      await store(newBox, "b");
      await core.sql(
        "UPDATE svc.subscriptions SET encrypted_previous = encrypted_secret, previous_until = now()",
      );

      const error = await refuseUnknownKeys({ sql: core.sql, secretBox: newAlone }).catch((e: unknown) => e);

      expect((error as OperatorError).message).to.contain(
        `1 of 2: key id ${oldBox.currentHead.slice(2)}, subscriptions 1\n`,
      );
    });
  });

  describe("reencryptSecrets", () => {
    it("encrypts with the current key those of other keys, in batches, and changes nothing else", async () => {
      await store(oldBox, "a", "b", "c");
      await store(newBox, "d");
      await store(oldBox, "e");
      const before = await sealed();
      const changedAt = await core.sql(
        "SELECT id, updated_at, secret_hint FROM svc.subscriptions ORDER BY id",
      );
      const progress: unknown[] = [];

      const done = await reencryptSecrets({
        sql: core.sql,
        secretBox: newBox,
        batchSize: 2,
        actor: testOperator,
        onProgress: (step) => progress.push(step),
      });

      expect(done).to.deep.equal({ reencrypted: 4, current: 1, unreadable: [] });
      expect(progress).to.deep.equal([
        { reencrypted: 2, of: 4 },
        { reencrypted: 4, of: 4 },
      ]);
      const after = await sealed();
      expect(after.map((bytes) => newAlone.decrypt(bytes))).to.deep.equal(["a", "b", "c", "d", "e"]);
      expect(after[3]).to.deep.equal(before[3]);
      expect(
        await core.sql("SELECT id, updated_at, secret_hint FROM svc.subscriptions ORDER BY id"),
      ).to.deep.equal(changedAt);
    });

    it("changes nothing the second time", async () => {
      await store(oldBox, "a", "b", "c");
      await reencrypt();

      expect(await reencrypt()).to.deep.equal({ reencrypted: 0, current: 3, unreadable: [] });
    });

    it("continues where another run stopped", async () => {
      await store(oldBox, "a", "b", "c", "d", "e");
      let statements = 0;
      const breaking: Sql = (text, values) => {
        statements += 1;
        // The count, the first batch and its write; the second batch is read, and not written.
        if (statements === 5) throw new Error("killed");
        return core.sql(text, values);
      };
      expect(await reencrypt(breaking).catch((error: unknown) => String(error))).to.equal("Error: killed");

      expect(await reencrypt()).to.deep.equal({ reencrypted: 3, current: 2, unreadable: [] });
      expect((await sealed()).map((bytes) => newAlone.decrypt(bytes))).to.deep.equal([
        "a",
        "b",
        "c",
        "d",
        "e",
      ]);
    });

    it("counts each secret once when two runs meet, and keeps every secret", async () => {
      const secrets = ["a", "b", "c", "d", "e"];
      await store(oldBox, ...secrets);
      let other: Reencryption | undefined;
      const overtaken: Sql = async (text, values) => {
        const rows = await core.sql(text, values);
        // Between the read of the first batch and its write, another run encrypts everything.
        if (values?.length === 3) other ??= await reencrypt();
        return rows as never;
      };

      const own = await reencrypt(overtaken);

      expect(other).to.deep.equal({ reencrypted: 5, current: 0, unreadable: [] });
      expect(own.reencrypted).to.equal(0);
      expect((await sealed()).map((bytes) => newAlone.decrypt(bytes))).to.deep.equal(secrets);
    });

    it("names those that none of the keys opens, leaves them unchanged, and encrypts the rest", async () => {
      await store(oldBox, "a");
      const [lost] = await store(lostBox, "b");
      await store(oldBox, "c");
      const damaged = await work.addSubscription({ userId, encryptedSecret: Buffer.from("nonsense") });
      const before = await sealed();

      const { reencrypted, current, unreadable } = await reencrypt();

      expect({ reencrypted, current }).to.deep.equal({ reencrypted: 2, current: 0 });
      expect(unreadable.map(({ id, reason }) => [id, reason.split(" (")[0]])).to.deep.equal([
        [lost, "The webhook secret was encrypted with another key"],
        [damaged.id, "The webhook secret is damaged: it does not begin as a sealed secret does."],
      ]);
      const after = await sealed();
      expect([after[1], after[3]]).to.deep.equal([before[1], before[3]]);
    });
  });

  const signing = async (): Promise<unknown> =>
    openSigning(newAlone, await core.prisma.subscription.findFirstOrThrow(), 0);

  describe("of headers and earlier secrets", () => {
    it("encrypts them again too, also where only they have the old key", async () => {
      const stored = await work.addSubscription({ userId, ...sealAll(oldBox) });
      await core.sql("UPDATE svc.subscriptions SET encrypted_secret = $1 WHERE id = $2", [
        newAlone.encrypt("newest"),
        stored.id,
      ]);

      expect(await reencrypt()).to.deep.equal({ reencrypted: 1, current: 0, unreadable: [] });
      expect(await signing()).to.deep.equal({ secrets: ["newest", "before"], headers: { "X-Key": "value" } });
    });

    it("names lost headers, and keeps the readable secret", async () => {
      await work.addSubscription({
        userId,
        ...sealAll(oldBox),
        encryptedHeaders: lostBox.encrypt('{"X-Key":"value"}'),
        headersChangedAt: new Date(),
      });
      const { unreadable } = await reencrypt();

      const [replaced] = await replaceUnreadable({
        sql: core.sql,
        secretBox: newBox,
        unreadable,
        actor: testOperator,
      });

      expect([replaced?.secret, replaced?.lostHeaders]).to.deep.equal([undefined, ["X-Key"]]);
      expect(await signing()).to.deep.equal({ secrets: ["newest", "before"], headers: {} });
    });
  });

  describe("replaceUnreadable", () => {
    it("makes new secrets where the old ones cannot be read, and prints them in clear text", async () => {
      await store(oldBox, "a");
      await store(lostBox, "b", "c");
      const { unreadable } = await reencrypt();

      const replaced = await replaceUnreadable({
        sql: core.sql,
        secretBox: newBox,
        unreadable,
        actor: testOperator,
      });

      const stored = (await sealed()).map((bytes) => newAlone.decrypt(bytes));
      expect(stored).to.deep.equal(["a", ...replaced.map(({ secret }) => secret)]);
      for (const { secret } of replaced) expect(secret).to.match(/^sec_[0-9A-Za-z]{48}$/);
      const hints = await core.sql<{ hint: string }>(
        "SELECT secret_hint AS hint FROM svc.subscriptions WHERE id > 1 ORDER BY id",
      );
      expect(hints.map(({ hint }) => hint)).to.deep.equal(replaced.map(({ secret }) => secret?.slice(-4)));
    });

    it("skips those that were changed after they were found unreadable", async () => {
      const [kept = 0, gone] = await store(lostBox, "a", "b");
      const { unreadable } = await reencrypt();
      await core.sql("UPDATE svc.subscriptions SET encrypted_secret = $2 WHERE id = $1", [
        kept,
        newBox.encrypt("mended"),
      ]);
      await core.sql("DELETE FROM svc.subscriptions WHERE id = $1", [gone]);

      expect(
        await replaceUnreadable({ sql: core.sql, secretBox: newBox, unreadable, actor: testOperator }),
      ).to.deep.equal([]);
      expect((await sealed()).map((bytes) => newAlone.decrypt(bytes))).to.deep.equal(["mended"]);
    });
  });
});
