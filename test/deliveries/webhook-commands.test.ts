import { expect } from "chai";
import { runAdmin } from "../../src/cli/program.ts";
import type { SubscriptionModel } from "../support/generated/models.ts";
import { openSigning } from "../../src/subscriptions/signing.ts";
import { useCoreScene } from "../support/core-scene.ts";
import { createMemoryTerminal } from "../support/memory-terminal.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { secretBox } from "../support/work.ts";

interface Ran {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

function widestOf({ stdout }: Ran): number {
  return Math.max(...stdout.split("\n").map((line) => line.length));
}

describe("svc-admin webhooks", () => {
  const scene = useCoreScene();
  let receiver: TestReceiver;
  let webhook: SubscriptionModel;

  before(async () => {
    receiver = await startReceiver();
  });
  after(() => receiver.close());
  beforeEach(async () => {
    const user = await scene.work.addUser({ name: "Ada", email: `${"a".repeat(60)}@example.com` });
    const url = `${receiver.url}/${"long".repeat(100)}?key=canary`;
    webhook = await scene.work.addSubscription({ userId: user.id, url });
  });

  const run = (...args: readonly string[]): Promise<Ran> => runWith(Buffer.alloc(32, 7), args);

  async function runWith(key: Buffer, args: readonly string[]): Promise<Ran> {
    const terminal = createMemoryTerminal();
    const env = {
      DATABASE_URL: scene.core.url,
      SVC_SECRET_KEY: key.toString("base64"),
      SVC_ALLOWED_NETWORKS: "127.0.0.0/8",
    };
    const status = await runAdmin({ args: ["webhooks", ...args], env, cwd: process.cwd(), terminal });
    return { status, ...terminal.read() };
  }
  const json = async (...args: readonly string[]): Promise<unknown> =>
    JSON.parse((await run(...args, "--json")).stdout);

  it("lists and shows webhooks with their users, within 100 columns, and no secret", async () => {
    const list = await run("list", "--user", String(webhook.userId));
    const show = await run("show", String(webhook.id));

    expect(widestOf(list)).to.be.at.most(100);
    expect(widestOf(show)).to.be.at.most(100);
    expect(list.stdout).to.contain(`127.0.0.1:${receiver.port}`).and.not.to.contain("canary");
    expect(await json("list")).to.have.length(1);
    expect(await json("show", String(webhook.id))).to.include({
      user_name: "Ada",
      disabled_reason: null,
      masked_secret: "sec_****test",
    });
    expect((await run("list", "--user", "999")).stdout).to.equal("There are no webhooks.\n");
    expect(await run("show", "999")).to.include({
      status: 1,
      stderr: "svc-admin: There is no webhook with the id 999. See: svc-admin webhooks list\n",
    });
  });

  it("switches them off and on, and reports a disabled user", async () => {
    const id = String(webhook.id);
    expect((await run("disable", id)).stdout).to.equal(`Webhook ${id} is paused.\n`);
    expect(await json("show", id)).to.include({ is_active: false, disabled_reason: "owner" });
    expect((await run("enable", id)).stdout).to.equal(`Webhook ${id} is active.\n`);
    await scene.core.sql("UPDATE svc.users SET disabled_at = now()");
    expect(await run("enable", id)).to.include({ status: 1 });
    expect(await json("show", id)).to.include({ is_active: false, disabled_reason: "user" });
  });

  it("sends a ping, and fails when the receiver does", async () => {
    const id = String(webhook.id);
    expect(await json("test", id)).to.include({ status_code: 200, error: null, trigger: "test" });
    receiver.answer = { status: 503 };
    expect((await run("test", id)).stderr).to.contain("A webhook is tested at most once a second.");
    await scene.core.sql("DELETE FROM svc.tests");
    const failed = await run("test", id);
    expect(failed).to.include({
      status: 1,
      stderr: `svc-admin: 127.0.0.1:${receiver.port} answered 503 Service Unavailable.\n`,
    });
    expect(widestOf(failed)).to.be.at.most(100);
    receiver.answer = {};
  });

  it("rotates a secret; the previous one also signs for the grace period", async () => {
    const id = String(webhook.id);
    const first = (await json("rotate-secret", id, "--grace", "3600")) as { secret: string };
    const second = (await json("rotate-secret", id)) as { secret: string };
    const stored = await scene.core.prisma.subscription.findFirstOrThrow();

    expect(openSigning(secretBox, stored, Date.now()).secrets).to.deep.equal([
      second.secret,
      first.secret,
      "sec_test",
    ]);
    expect(openSigning(secretBox, stored, Date.now() + 7_200_000).secrets).to.deep.equal([
      second.secret,
      first.secret,
    ]);
    expect((await run("rotate-secret", id, "--grace", "700000")).status).to.equal(2);
    expect((await run("rotate-secret", id)).stdout).to.match(/ whsec_[A-Za-z0-9+/]{70}== /);
    const last = (await json("rotate-secret", id, "--grace", "0")) as { secret: string };
    const ended = await scene.core.prisma.subscription.findFirstOrThrow();
    expect(openSigning(secretBox, ended, Date.now()).secrets).to.deep.equal([last.secret]);
  });

  it("makes no secret with a key that the processes of the service do not have", async () => {
    const { encryptedSecret } = await scene.core.prisma.subscription.findFirstOrThrow();

    for (const grace of ["0", "60"]) {
      const ran = await runWith(Buffer.alloc(32, 8), ["rotate-secret", String(webhook.id), "--grace", grace]);

      expect(ran).to.include({ status: 1, stdout: "" });
      expect(ran.stderr).to.contain("encrypted with a key that was not given");
    }
    expect(await scene.core.prisma.subscription.findFirstOrThrow()).to.deep.include({ encryptedSecret });
  });
});
