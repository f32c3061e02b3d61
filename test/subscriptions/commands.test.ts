import { spawn } from "node:child_process";
import { once } from "node:events";
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { runAdmin } from "../../src/cli/program.ts";
import { createSecretBox, keyIdOf, type SecretBox } from "../../src/subscriptions/secret.ts";
import { coreOfSuite } from "../support/core-database.ts";
import { binary } from "../support/program.ts";
import { createMemoryTerminal } from "../support/memory-terminal.ts";
import { createWork, type Work } from "../support/work.ts";

interface Ran {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function rotate(env: Readonly<Record<string, string>>, ...options: readonly string[]): Promise<Ran> {
  const terminal = createMemoryTerminal();
  const args = ["secret-key", "rotate", ...options];
  const status = await runAdmin({ args, env, cwd: process.cwd(), terminal });
  return { status, ...terminal.read() };
}

describe("secret-key rotate", () => {
  const [oldKey, newKey, lostKey] = [randomBytes(32), randomBytes(32), randomBytes(32)];
  const oldBox = createSecretBox(oldKey);
  const newBox = createSecretBox(newKey);
  const lostBox = createSecretBox(lostKey);
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

  const env = (current?: Buffer, ...previous: readonly Buffer[]): Record<string, string> => ({
    DATABASE_URL: core.url,
    ...(current === undefined ? {} : { SVC_SECRET_KEY: current.toString("base64") }),
    SVC_PREVIOUS_SECRET_KEYS: previous.map((key) => key.toString("base64")).join(","),
  });

  async function add(box: SecretBox, secret: string): Promise<number> {
    return (await work.addSubscription({ userId, encryptedSecret: box.encrypt(secret) })).id;
  }

  async function opened(): Promise<readonly string[]> {
    const rows = await core.sql<{ sealed: Buffer }>(
      "SELECT encrypted_secret AS sealed FROM svc.subscriptions ORDER BY id",
    );
    return rows.map(({ sealed }) => newBox.decrypt(sealed));
  }

  it("encrypts every secret with the new key, prints how many, and then finds none left", async () => {
    for (const secret of ["a", "b", "c"]) await add(oldBox, secret);
    await add(newBox, "d");

    expect(await rotate(env(newKey, oldKey))).to.deep.equal({
      status: 0,
      stdout: "3 re-encrypted, 1 already current, 0 replaced, 0 unreadable.\n",
      stderr: "3 of 3 re-encrypted\n",
    });
    expect(await opened()).to.deep.equal(["a", "b", "c", "d"]);

    // Without the old key, which is not needed after the first run.
    const again = await rotate(env(newKey), "--json");
    expect(JSON.parse(again.stdout)).to.deep.equal({ reencrypted: 0, current: 4, unreadable: [] });
    expect(again).to.include({ status: 0, stderr: "" });
  });

  it("prints how many processes run, and since when: each needs the new key, which it cannot check", async () => {
    await add(oldBox, "a");
    await core.sql(
      `INSERT INTO svc.processes (id, program, host, pid, configuration, reload_faults, started_at, seen_at)
       SELECT gen_random_uuid(), 'dispatcher', 'one', n, '', '{}', '2026-03-28T14:30:00Z'::timestamptz - n * interval '1 hour',
         now() - (n - 1) * interval '10 seconds'
       FROM generate_series(1, 3) AS n`,
    );
    try {
      const { stderr } = await rotate(env(newKey, oldKey));

      // The third was last seen 20 s ago.
      expect(stderr.split("\n").slice(1)).to.deep.equal([
        `2 processes run, the first since 2026-03-28T12:30:00.000Z. Each must have been started with the new key (id ${keyIdOf(newBox.currentHead)}): ` +
          "one without it cannot sign. Restart those with both keys; their deliveries wait until then.",
        "",
      ]);
      expect((await rotate(env(newKey, oldKey))).stderr).to.equal("");
    } finally {
      await core.sql("DELETE FROM svc.processes");
    }
  });

  it("ends with 1 and the subscriptions whose key is missing, and encrypts the others", async () => {
    await add(oldBox, "a");
    const lost = await add(lostBox, "b");

    const { status, stdout, stderr } = await rotate(env(newKey, oldKey), "--json");

    expect(status).to.equal(1);
    const answer = JSON.parse(stdout) as { unreadable: readonly Record<string, unknown>[] };
    expect(answer).to.deep.include({ reencrypted: 1, current: 0 });
    expect(answer.unreadable).to.have.length(1);
    expect(answer.unreadable[0]).to.include({ id: lost, user_id: userId, url: "http://127.0.0.1:9/hook" });
    expect(stderr).to.contain(`subscription ${lost}: The webhook secret was encrypted with another key (id `);
    expect(stderr).to.contain("SVC_PREVIOUS_SECRET_KEYS").and.to.contain("--replace-unreadable");
  });

  it("changes no secret when the old key was left out", async () => {
    await add(oldBox, "a");
    const before = await core.sql("SELECT encrypted_secret FROM svc.subscriptions");

    expect((await rotate(env(newKey))).status).to.equal(1);
    expect(await core.sql("SELECT encrypted_secret FROM svc.subscriptions")).to.deep.equal(before);
  });

  it("makes new secrets with --replace-unreadable, prints them once, and ends with 0", async () => {
    await add(oldBox, "a");
    const lost = await add(lostBox, "b");

    const { status, stdout, stderr } = await rotate(env(newKey, oldKey), "--replace-unreadable", "--json");

    const { replaced, ...rest } = JSON.parse(stdout) as { replaced: { id: number; secret: string }[] };
    expect(rest).to.deep.equal({ reencrypted: 1, current: 0, unreadable: [] });
    expect(replaced.map(({ id }) => id)).to.deep.equal([lost]);
    expect(await opened()).to.deep.equal(["a", replaced[0]?.secret]);
    expect(stderr).to.contain("not shown again");
    expect(status).to.equal(0);
  });

  it("requires the key when a database other than the embedded one is given without", async () => {
    const { status, stderr } = await rotate(env());

    expect(status).to.equal(1);
    expect(stderr).to.equal("svc-admin: Set SVC_SECRET_KEY: the key that encrypts the webhook secrets.\n");
  });

  it("loses no secret when it is killed in the middle, and continues the next time", async () => {
    const count = 5_000;
    const secrets = Array.from({ length: count }, (_, index) => `sec_${index}`);
    const sealed = secrets.map((secret) => oldBox.encrypt(secret));
    await core.sql(
      `INSERT INTO svc.subscriptions (user_id, url, resource, events, encrypted_secret, secret_hint)
       SELECT $1::int, 'http://127.0.0.1:9/hook', 'notes', '{on_create}', given.sealed, 'test'
       FROM unnest($2::bytea[]) WITH ORDINALITY AS given (sealed, position) ORDER BY position`,
      [userId, sealed],
    );
    const child = spawn(process.execPath, [binary("svc-admin"), "secret-key", "rotate"], {
      env: { PATH: process.env["PATH"], ...env(newKey, oldKey) },
      stdio: ["ignore", "ignore", "pipe"],
    });
    const ended = once(child, "exit");
    // The first batch is written.
    await once(child.stderr, "data");
    child.kill("SIGKILL");
    await ended;

    const answer = await rotate(env(newKey, oldKey), "--json");

    const { reencrypted, current } = JSON.parse(answer.stdout) as Record<string, number>;
    expect(current).to.be.within(500, count - 1);
    expect(reencrypted).to.equal(count - Number(current));
    expect(await opened()).to.deep.equal(secrets);
  });
});
