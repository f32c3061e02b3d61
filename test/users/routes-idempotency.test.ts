import { expect } from "chai";
import { notesYaml } from "../support/notes.ts";
import { request, serviceOfSuite, type Answer, type TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";

describe("tokens and users over HTTP, with an Idempotency-Key", () => {
  const service = serviceOfSuite({ mode: "servers", resources: { "notes.yaml": notesYaml } });
  let ada: TestUser;
  let admin: TestUser;

  beforeEach(async () => {
    ada = await service.createUser();
    admin = await service.createUser({ isAdmin: true });
  });

  const send = (token: string, path: string, body: unknown, key: string): Promise<Answer> =>
    request({
      url: service.baseUrl + path,
      method: "POST",
      token,
      body,
      headers: { "Idempotency-Key": key },
    });
  const whoami = (token: string): Promise<Answer> =>
    request({ url: `${service.baseUrl}/whoami`, method: "GET", token });
  const issue = (scopes: readonly string[], expiresAt?: Date, userId = ada.id) =>
    service.api.tokens.issue({ userId, name: "made", scopes, expiresAt });

  it("makes one token, shows it again, and keeps it encrypted", async () => {
    const makeOne = (): Promise<Answer> => send(ada.token, "/tokens", { name: "ci" }, "token-1");
    const [first, again] = [await makeOne(), await makeOne()];

    expect([first.status, again.status]).to.deep.equal([201, 201]);
    expect(again.headers.get("idempotent-replayed")).to.equal("true");
    expect(again.body).to.deep.equal(first.body);
    expect((await whoami(again.body.token)).status).to.equal(200);
    const kept = await service.infrastructure.sql<{ body: Buffer; sealed: boolean }>(
      "SELECT body, is_sealed AS sealed FROM svc.idempotency_keys WHERE user_id = $1",
      [ada.id],
    );
    expect(kept.map(({ sealed }) => sealed)).to.deep.equal([true]);
    expect(kept[0]?.body.includes(first.body.token)).to.equal(false);
  });

  it("gives nothing of it to a token with other scopes", async () => {
    const narrow = await issue(["notes:read"]);
    await send(ada.token, "/tokens", { name: "ci" }, "token-2");

    const replayed = await send(narrow.token, "/tokens", { name: "ci" }, "token-2");

    expect([replayed.status, replayed.body.code]).to.deep.equal([422, "idempotency.mismatch"]);
  });

  it("gives a token that ends sooner nothing that ends later", async () => {
    const soon = await issue(["*"], new Date(Date.now() + 3_600_000));
    const ends = new Date(Date.now() + 60_000).toISOString();
    const other = await issue(["*"], new Date(Date.now() + 7_200_000), admin.id);
    const path = `/users/${ada.id}/tokens`;
    await send(ada.token, "/tokens", { name: "ci" }, "token-3");
    await send(admin.token, path, { name: "ci" }, "token-3");
    await send(ada.token, "/tokens", { name: "ci", expires_at: ends }, "token-4");

    const replayed = await send(soon.token, "/tokens", { name: "ci" }, "token-3");
    const forOther = await send(other.token, path, { name: "ci" }, "token-3");
    const within = await send(soon.token, "/tokens", { name: "ci", expires_at: ends }, "token-4");

    expect([replayed.status, replayed.body.code]).to.deep.equal([422, "idempotency.mismatch"]);
    expect([forOther.status, forOther.body.code]).to.deep.equal([422, "idempotency.mismatch"]);
    expect([within.status, within.headers.get("idempotent-replayed")]).to.deep.equal([201, "true"]);
  });

  it("shows an expired token again", async () => {
    const ends = new Date(Date.now() + 1_500);
    const body = { name: "ci", expires_at: ends.toISOString() };
    const first = await send(ada.token, "/tokens", body, "token-5");
    await until(async () => Date.now() > ends.getTime(), { what: "the end of the token" });

    const again = await send(ada.token, "/tokens", body, "token-5");

    expect([first.status, again.status]).to.deep.equal([201, 201]);
    expect(again.body).to.deep.equal(first.body);
  });

  it("gives nothing of it to a token that ends sooner than in the body", async () => {
    const soon = await issue(["*"], new Date(Date.now() + 3_600_000));
    const body = { name: "ci", expires_at: new Date(Date.now() + 7_200_000).toISOString() };
    await send(ada.token, "/tokens", body, "token-6");

    const replayed = await send(soon.token, "/tokens", body, "token-6");

    expect([replayed.status, replayed.body.code]).to.deep.equal([422, "idempotency.mismatch"]);
  });

  it("makes one user, and one token for it, with their rows of the audit trail", async () => {
    const email = `${ada.id}-once@example.com`;
    const make = (): Promise<Answer> => send(admin.token, "/users", { name: "Once", email }, "user-1");
    const [first, again] = [await make(), await make()];
    const path = `/users/${first.body.id}/tokens`;
    const issueOnce = (): Promise<Answer> => send(admin.token, path, { name: "first" }, "user-2");
    const [token, same] = [await issueOnce(), await issueOnce()];

    expect([first.status, again.status, token.status, same.status]).to.deep.equal([201, 201, 201, 201]);
    expect(again.body).to.deep.equal(first.body);
    expect(first.headers.get("location")).to.match(new RegExp(`/users/${first.body.id}$`));
    expect(same.body).to.deep.equal(token.body);
    const made = await service.infrastructure.sql<{ action: string; by: number }>(
      `SELECT action, actor_id::int AS by FROM svc.audit WHERE subject_id IN ($1, $2) AND action LIKE '%.created' ORDER BY id`,
      [String(first.body.id), String(token.body.id)],
    );
    expect(made).to.deep.include({ action: "user.created", by: admin.id });
    expect(made).to.deep.include({ action: "token.created", by: admin.id });
  });
});
