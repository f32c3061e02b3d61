import { request as open, type IncomingMessage } from "node:http";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { notesYaml } from "../support/notes.ts";
import { serviceOfSuite, type TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";

/** A resource whose records belong to an e-mail address. */
const lettersYaml = `
name: letters
model: Letter
fields:
  id: { type: Int, id: true }
  text: { type: String }
  reader: { type: String }
triggers: []
access:
  read: { reader: $user.email }
  update: { reader: $user.email }
`;

interface Late {
  readonly status: number | undefined;
  readonly challenge: string | undefined;
  readonly code: unknown;
}

async function aSecond(): Promise<void> {
  const from = performance.now();
  await until(() => performance.now() - from > 1000, { what: "a second" });
}

describe("a request whose body comes when its admin is none any more", () => {
  const service = serviceOfSuite({
    mode: "servers",
    resources: { "notes.yaml": notesYaml, "letters.yaml": lettersYaml },
  });
  let admin: TestUser;
  let thief: TestUser;

  beforeEach(async () => {
    admin = await service.createUser({ isAdmin: true });
    thief = await service.createUser({ isAdmin: true });
  });

  /** Sends the head, does `meanwhile` once the token is known, then sends the body. */
  async function late(
    [method, path, body]: readonly [string, string, object],
    meanwhile: () => Promise<unknown>,
  ): Promise<Late> {
    const sent = open(service.baseUrl + path, {
      method,
      headers: { authorization: `Bearer ${thief.token}`, "content-type": "application/json" },
    });
    const answered = once(sent, "response") as Promise<[IncomingMessage]>;
    sent.write(" ");
    const usedText = "SELECT id FROM svc.tokens WHERE user_id = $1 AND last_used_at IS NOT NULL";
    const isKnown = async (): Promise<boolean> =>
      (await service.infrastructure.sql(usedText, [thief.id])).length > 0;
    await until(isKnown, { what: "the token to be known" });
    await meanwhile();
    sent.end(JSON.stringify(body));
    const [answer] = await answered;
    const { code } = JSON.parse(await text(answer)) as { readonly code?: unknown };
    return { status: answer.statusCode, challenge: answer.headers["www-authenticate"], code };
  }

  const disable = () => admin.request("PUT", `/users/${thief.id}`, { is_disabled: true });
  const demote = () => admin.request("PUT", `/users/${thief.id}`, { is_admin: false });
  async function revoke(): Promise<void> {
    const { body } = await admin.request("GET", `/users/${thief.id}/tokens`);
    await admin.request("DELETE", `/users/${thief.id}/tokens/${body.data[0].id}`);
  }
  const disabled: Late = {
    status: 401,
    challenge: 'Bearer error="invalid_token", error_description="The user is disabled"',
    code: "user.disabled",
  };
  const revoked: Late = {
    status: 401,
    challenge: 'Bearer error="invalid_token", error_description="The token is revoked"',
    code: "token.revoked",
  };
  const demoted: Late = { status: 403, challenge: undefined, code: "user.forbidden" };

  for (const [what, end, refused] of [
    ["disabled", disable, disabled],
    ["no admin", demote, demoted],
    ["without its token", revoke, revoked],
  ] as const) {
    it(`changes no user when the caller is ${what}`, async () => {
      const change = { is_disabled: false, is_admin: true };

      expect(await late(["PUT", `/users/${thief.id}`, change], end)).to.deep.equal(refused);
    });

    it(`makes no user when the caller is ${what}`, async () => {
      const user = { name: "x", email: `${what.replaceAll(" ", "-")}@late.example`, is_admin: true };

      expect(await late(["POST", "/users", user], end)).to.deep.equal(refused);
    });

    it(`makes no token of another user when the caller is ${what}`, async () => {
      expect(await late(["POST", `/users/${admin.id}/tokens`, { name: "x" }], end)).to.deep.equal(refused);
    });
  }

  for (const [what, end, refused] of [
    ["disabled", disable, disabled],
    ["no admin", demote, demoted],
    ["without its token", revoke, revoked],
  ] as const)
    it(`makes no webhook and no record when the caller is ${what} for more than a second`, async () => {
      const webhook = { url: "https://example.com/hook", resource: "notes", events: ["on_create"] };
      const answers = await Promise.all([
        late(["POST", "/webhooks", webhook], () => end().then(aSecond)),
        late(["POST", "/resources/notes", { text: "late" }], () => end().then(aSecond)),
      ]);

      expect(answers).to.deep.equal([refused, refused]);
      const written =
        "SELECT id FROM svc.subscriptions WHERE user_id = $1 UNION ALL SELECT id FROM notes WHERE user_id = $1";
      expect(await service.infrastructure.sql(written, [thief.id])).to.deep.equal([]);
    });

  it("changes no record of an address when the caller has had another one for more than a second", async () => {
    thief = await service.createUser();
    const letter = { text: "early", reader: thief.email };
    const { id } = (await admin.request("POST", "/resources/letters", letter)).body;
    const move = () => admin.request("PUT", `/users/${thief.id}`, { email: `moved-${id}@late.example` });

    const answer = await late(["PUT", `/resources/letters/${id}`, { text: "late" }], () =>
      move().then(aSecond),
    );

    expect(answer).to.deep.equal(demoted);
    expect((await admin.request("GET", `/resources/letters/${id}`)).body.text).to.equal("early");
  });

  it("makes no own token when the caller is disabled, for a later time when it is enabled again", async () => {
    expect(await late(["POST", "/tokens", { name: "x" }], disable)).to.deep.equal(disabled);
  });
});
