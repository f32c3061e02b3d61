import { callerOfToken } from "../support/callers.ts";
import { expect } from "chai";
import type { Sql } from "../../src/db/sql.ts";
import { OperatorError } from "../../src/kit/errors.ts";
import { createTokenProvider, type TokenProvider } from "../../src/users/provider.ts";
import { mintToken } from "../../src/users/token.ts";
import { coreOfSuite } from "../support/core-database.ts";
import { createMemoryLog } from "../support/http.ts";

describe("createTokenProvider", () => {
  const core = coreOfSuite();
  let tokens: TokenProvider;
  let statements: string[];
  let userId: number;
  const { log, lines } = createMemoryLog();

  before(async () => {
    const counting: Sql = (text, values) => {
      statements.push(text);
      return core.sql(text, values);
    };
    tokens = createTokenProvider({ ...core, sql: counting, log });
    const user = await core.prisma.user.create({
      data: { name: "Ada", email: "ada@example.com", isAdmin: true },
    });
    userId = user.id;
  });

  beforeEach(() => {
    statements = [];
  });

  afterEach(() => tokens.close());

  const lastUseOf = async (id: number): Promise<Date | null> =>
    (await core.prisma.token.findUniqueOrThrow({ where: { id } })).lastUsedAt;

  it("issues a token whose clear text is stored nowhere", async () => {
    const issued = await tokens.issue({ userId, name: "laptop" });

    const stored = await core.sql<{ row: string }>(
      "SELECT tokens::text AS row FROM svc.tokens WHERE id = $1",
      [issued.id],
    );
    expect(stored[0]?.row).to.contain("laptop");
    expect(stored[0]?.row).not.to.contain(issued.token.slice(4));
    expect(issued).not.to.have.property("hash");
  });

  it("refuses to issue for a missing user", async () => {
    const error = await tokens.issue({ userId: 999_999, name: "x" }).catch((thrown: unknown) => thrown);

    expect(error)
      .to.be.instanceOf(OperatorError)
      .with.property("message", "There is no user with the id 999999. See: svc-admin users list");
  });

  it("finds the user of a token", async () => {
    const { token } = await tokens.issue({ userId, name: "x" });

    expect(await callerOfToken(tokens, token)).to.deep.equal({
      id: userId,
      name: "Ada",
      email: "ada@example.com",
      isAdmin: true,
      claims: {},
    });
  });

  it("sends no query for a text that cannot be a token", async () => {
    expect(await callerOfToken(tokens, "svc_short")).to.equal(undefined);
    expect(statements).to.deep.equal([]);
  });

  it("looks up in one statement the tokens of one turn of the event loop, each with its own answer", async () => {
    const [one, other] = [
      await tokens.issue({ userId, name: "x" }),
      await tokens.issue({ userId, name: "y" }),
    ];
    await tokens.revoke(other.id);
    statements = [];

    const found = await Promise.all(
      [one.token, other.token, one.token, mintToken()].map((token) => tokens.identify(token)),
    );

    expect(
      found.map((identity) => (identity.kind === "known" ? identity.tokenId : identity.code)),
    ).to.deep.equal([one.id, "token.revoked", one.id, "token.invalid"]);
    expect(statements.filter((text) => text.includes("FROM svc.tokens"))).to.have.length(1);
  });

  it("finds no user for a token that was never issued", async () => {
    expect(await callerOfToken(tokens, mintToken())).to.equal(undefined);
  });

  it("finds no user for an expired token", async () => {
    const { token } = await tokens.issue({ userId, name: "x", expiresAt: new Date(Date.now() - 1000) });

    expect(await callerOfToken(tokens, token)).to.equal(undefined);
  });

  it("finds the user until the token expires", async () => {
    const { token } = await tokens.issue({ userId, name: "x", expiresAt: new Date(Date.now() + 60_000) });

    expect(await callerOfToken(tokens, token)).to.have.property("id", userId);
  });

  it("finds no user for a revoked token", async () => {
    const { token, id } = await tokens.issue({ userId, name: "x" });
    await tokens.revoke(id);

    expect(await callerOfToken(tokens, token)).to.equal(undefined);
  });

  it("counts a revoked token among the failures of its address", async () => {
    const { token, id } = await tokens.issue({ userId, name: "x" });
    await callerOfToken(tokens, token);
    expect(tokens.wasFound(token)).to.equal(true);
    await core.sql("UPDATE svc.tokens SET revoked_at = now() WHERE id = $1", [id]);
    await callerOfToken(tokens, token);

    expect(tokens.wasFound(token)).to.equal(false);
  });

  it("keeps the first date when a token is revoked twice", async () => {
    const { id } = await tokens.issue({ userId, name: "x" });
    const first = await tokens.revoke(id);
    const second = await tokens.revoke(id);

    expect(first?.revokedAt).to.be.instanceOf(Date);
    expect(second?.revokedAt).to.deep.equal(first?.revokedAt);
  });

  it("revokes nothing under an unknown id", async () => {
    expect(await tokens.revoke(999_999)).to.equal(undefined);
  });

  it("finds no user for a disabled user's token, and the user again after enabling", async () => {
    const { token } = await tokens.issue({ userId, name: "x" });

    await core.prisma.user.update({ where: { id: userId }, data: { disabledAt: new Date() } });
    expect(await callerOfToken(tokens, token)).to.equal(undefined);

    await core.prisma.user.update({ where: { id: userId }, data: { disabledAt: null } });
    expect(await callerOfToken(tokens, token)).to.have.property("id", userId);
  });

  it("lists a user's tokens without their hashes, newest first", async () => {
    const older = await tokens.issue({ userId, name: "older" });
    const newer = await tokens.issue({ userId, name: "newer" });

    const [first, second] = await tokens.list(userId);
    expect([first?.id, second?.id]).to.deep.equal([newer.id, older.id]);
    expect(first).not.to.have.property("hash");
    expect(first).not.to.have.property("token");
  });

  it("looks a token up with one statement, and notes its use with one more at most once a minute", async () => {
    const { token, id } = await tokens.issue({ userId, name: "x" });

    await Promise.all([
      callerOfToken(tokens, token),
      callerOfToken(tokens, token),
      callerOfToken(tokens, token),
    ]);
    await tokens.close();
    const firstUse = await lastUseOf(id);
    expect(firstUse).to.be.instanceOf(Date);
    expect(statements.filter((text) => text.includes("UPDATE"))).to.have.length(1);

    statements = [];
    await callerOfToken(tokens, token);
    await tokens.close();
    expect(statements).to.have.length(1);
    expect(await lastUseOf(id)).to.deep.equal(firstUse);
  });

  it("notes a use once for a burst of requests, however slow the write, and closes only after it", async () => {
    let writes = 0;
    let finish: (() => void) | undefined;
    const finished = new Promise<void>((resolve) => (finish = resolve));
    const slow: Sql = async (text, values) => {
      if (!text.includes("UPDATE")) return core.sql(text, values);
      writes += 1;
      await finished;
      return [];
    };
    const provider = createTokenProvider({ ...core, sql: slow, log });
    const { token } = await provider.issue({ userId, name: "x" });

    await callerOfToken(provider, token);
    await callerOfToken(provider, token);
    let isClosed = false;
    const closing = provider.close().then(() => (isClosed = true));
    await new Promise((resolve) => setImmediate(resolve));

    expect(writes).to.equal(1);
    expect(isClosed).to.equal(false);
    finish?.();
    await closing;
  });

  it("notes a use again when the last one is more than a minute ago", async () => {
    const { token, id } = await tokens.issue({ userId, name: "x" });
    await core.sql("UPDATE svc.tokens SET last_used_at = now() - interval '61 seconds' WHERE id = $1", [id]);

    await callerOfToken(tokens, token);
    await tokens.close();

    expect((await lastUseOf(id))?.getTime()).to.be.above(Date.now() - 30_000);
  });

  it("finds the user although the use cannot be noted, and logs the reason without the token", async () => {
    const failing: Sql = (text, values) =>
      text.includes("UPDATE") ? Promise.reject(new Error("read-only")) : core.sql(text, values);
    const provider = createTokenProvider({ ...core, sql: failing, log });
    const { token, id } = await provider.issue({ userId, name: "x" });

    expect(await callerOfToken(provider, token)).to.have.property("id", userId);
    await provider.close();

    const line = lines.find(({ tokenId }) => tokenId === id);
    expect(line).to.include({ reason: "read-only", msg: "the use of a token could not be recorded" });
    expect(JSON.stringify(lines)).not.to.contain(token);
  });
});
