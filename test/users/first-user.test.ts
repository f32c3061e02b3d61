import { callerOfToken } from "../support/callers.ts";
import { expect } from "chai";
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog } from "../../src/telemetry/log.ts";
import { ensureFirstUser } from "../../src/users/first-user.ts";
import { createTokenProvider, type TokenProvider } from "../../src/users/provider.ts";
import { createUserStore } from "../../src/users/store.ts";
import { testOperator } from "../support/actors.ts";
import { coreOfSuite } from "../support/core-database.ts";

describe("ensureFirstUser", () => {
  const core = coreOfSuite();
  let tokens: TokenProvider;
  let root: string;
  let dataDir: string;

  before(async () => {
    tokens = createTokenProvider({ ...core, log: createLog({ level: "silent" }) });
  });

  beforeEach(async () => {
    await core.sql("DELETE FROM svc.users");
    root = await mkdtemp(join(tmpdir(), "svc-first-user-"));
    dataDir = join(root, "not", "there", "yet");
  });

  afterEach(async () => {
    await tokens.close();
    await rm(root, { recursive: true });
  });

  const ensure = (): Promise<string | undefined> =>
    ensureFirstUser(createUserStore({ ...core, actor: testOperator }), tokens, dataDir);

  async function count(table: "users" | "tokens"): Promise<number> {
    const [row] = await core.sql<{ count: number }>(`SELECT count(*)::int AS count FROM svc.${table}`);
    return row?.count ?? 0;
  }

  it("makes an admin, and stores its token in a file that only its owner reads", async () => {
    const file = await ensure();

    expect(file).to.equal(join(dataDir, "admin.token"));
    expect(await callerOfToken(tokens, await tokenIn(file))).to.include({
      email: "admin@localhost",
      isAdmin: true,
    });
    expect((await stat(file ?? "")).mode & 0o777).to.equal(0o600);
  });

  it("keeps user and token at the next start", async () => {
    const token = await tokenIn(await ensure());

    expect(await tokenIn(await ensure())).to.equal(token);
    expect([await count("users"), await count("tokens")]).to.deep.equal([1, 1]);
  });

  it("issues another token when the one in the file was revoked, readable only by the owner with any earlier file mode", async () => {
    const file = (await ensure()) ?? "";
    const before = await tokenIn(file);
    await core.sql("UPDATE svc.tokens SET revoked_at = now()");
    await chmod(file, 0o644);

    const after = await tokenIn(await ensure());

    expect(after).not.to.equal(before);
    expect(await callerOfToken(tokens, after)).to.include({ email: "admin@localhost" });
    expect((await stat(file)).mode & 0o777).to.equal(0o600);
    expect(await readdir(dataDir)).to.deep.equal(["admin.token"]);
  });

  it("issues another token when the file is missing or holds another text", async () => {
    const file = (await ensure()) ?? "";
    await rm(file);
    await ensure();
    await writeFile(file, "not a token");

    expect(await callerOfToken(tokens, await tokenIn(await ensure()))).to.include({
      email: "admin@localhost",
    });
    expect([await count("users"), await count("tokens")]).to.deep.equal([1, 3]);
  });

  it("makes no user when the operator has users of their own", async () => {
    await core.prisma.user.create({ data: { name: "Ada", email: "ada@example.com" } });

    expect(await ensure()).to.equal(undefined);
    expect([await count("users"), await count("tokens")]).to.deep.equal([1, 0]);
  });

  it("does not restore the token of a disabled first user", async () => {
    await ensure();
    await core.sql("UPDATE svc.users SET disabled_at = now()");

    expect(await ensure()).to.equal(undefined);
    expect(await count("tokens")).to.equal(1);
  });
});

async function tokenIn(file: string | undefined): Promise<string> {
  if (file === undefined) throw new Error("there is no file");
  return (await readFile(file, "utf8")).trim();
}
