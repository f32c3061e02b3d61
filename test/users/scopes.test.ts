import { expect } from "chai";
import { includesScope } from "../../src/kit/scopes.ts";
import { request, serviceOfSuite, startService, type TestService } from "../support/service.ts";

const resources = {
  "notes.yaml": `
name: notes
model: Note
triggers: [on_create]
fields: { id: { type: Int, id: true }, text: { type: String }, user_id: { type: Int } }
ownerColumn: user_id`,
  "notices.yaml": `
name: notices
model: Notice
triggers: []
isAdmin: [boss@example.com]
fields:
  id: { type: Int, id: true }
  text: { type: String }
  note_id: { type: Int, optional: true, references: notes.id }
  user_id: { type: Int }
includes: [note]
ownerColumn: user_id`,
};

/** Every request, and the scope that it needs; `-`: any token. */
const requests = `
GET /whoami -
HEAD /whoami -
GET /resources -
GET /resources/notes notes:read
HEAD /resources/notes notes:read
OPTIONS /resources/notes -
POST /resources/notes notes:write
PUT /resources/notes notes:write
GET /resources/notes/1 notes:read
HEAD /resources/notes/1 notes:read
PUT /resources/notes/1 notes:write
PATCH /resources/notes/1 notes:write
DELETE /resources/notes/999 notes:write
POST /resources/notes/batch notes:write
GET /resources/notices notices:read
POST /resources/notices notices:write
GET /webhooks webhooks
POST /webhooks webhooks
GET /webhooks/1 webhooks
PUT /webhooks/1 webhooks
DELETE /webhooks/1 webhooks
GET /webhook-deliveries webhooks
GET /webhook-deliveries/1 webhooks
POST /webhook-deliveries/1/retry webhooks
GET /tokens -
GET /users admin
POST /users admin
GET /users/1 admin
PUT /users/1 admin
POST /users/1/tokens admin`
  .trim()
  .split("\n")
  .map((line) => line.split(" ") as [string, string, string]);

const held = ["*", "read", "write", "notes:read", "notes:write", "notices:read", "webhooks", "admin"];

describe("scopes over HTTP", () => {
  const service = serviceOfSuite({ mode: "servers", resources });
  let ada: Awaited<ReturnType<TestService["createUser"]>>;

  before(async () => {
    ada = await service.createUser();
    await ada.request("POST", "/resources/notes", { text: "a" });
  });

  const tokenWith = async (scopes: readonly string[], userId = ada.id): Promise<string> =>
    (await service.api.tokens.issue({ userId, name: "scoped", scopes })).token;
  const ask = (token: string, method: string, path: string, body?: unknown) =>
    request({ url: service.baseUrl + path, method, token, body });

  for (const scope of held)
    it(`gives a token with ${scope} exactly the rights of the table`, async () => {
      const token = await tokenWith([scope]);
      for (const [method, path, needed] of requests) {
        const body = ["POST", "PUT", "PATCH"].includes(method) ? {} : undefined;
        const answer = await ask(token, method, path, body);

        const isRefused = answer.headers.get("www-authenticate")?.includes("insufficient_scope") === true;
        const isAllowed = needed === "-" || includesScope([scope], needed);
        expect(isRefused, `${method} ${path}`).to.equal(!isAllowed);
        expect(answer.status, `${method} ${path}`).to.be.below(500);
        if (isAllowed) continue;
        expect(answer.status, `${method} ${path}`).to.equal(403);
        if (method === "HEAD") continue;
        expect(answer.body.message).to.equal(`This token lacks the scope ${needed}.`);
      }
    });

  it("answers 404 for an unknown resource before it checks a scope", async () => {
    expect((await ask(await tokenWith(["webhooks"]), "GET", "/resources/nothing")).status).to.equal(404);
  });

  it("requires the scope of each resource whose records a list includes", async () => {
    const lacking = "This token lacks the scope notes:read.";
    for (const [scopes, status, message] of [
      [["notices:read"], 403, lacking],
      [["notices:write", "webhooks"], 403, lacking],
      [["notices:read", "notes:read"], 200, undefined],
      [["read"], 200, undefined],
    ] as const) {
      const answer = await ask(await tokenWith(scopes), "GET", "/resources/notices?include=note");
      expect([answer.status, answer.body.message], scopes.join()).to.deep.equal([status, message]);
    }
  });

  it("treats an admin's token without * and admin as that of a user without the flag", async () => {
    const admin = await service.createUser({ isAdmin: true });
    const listed = async (scopes: readonly string[]): Promise<number> =>
      (await ask(await tokenWith(scopes, admin.id), "GET", "/resources/notes")).body.total;

    expect(await listed(["read"])).to.equal(0);
    expect(await listed(["read", "admin"])).to.equal(1);
    expect(await listed(["*"])).to.equal(1);
    expect((await ask(await tokenWith(["read"], admin.id), "GET", "/resources/notes/1")).status).to.equal(
      403,
    );
  });

  it("does the same for the isAdmin of a mapping file", async () => {
    const prisma = service.prisma;
    const boss = await prisma.user.create({ data: { name: "Boss", email: "boss@example.com" } });
    await ada.request("POST", "/resources/notices", { text: "a" });
    const listed = async (scopes: readonly string[]): Promise<number> =>
      (await ask(await tokenWith(scopes, boss.id), "GET", "/resources/notices")).body.total;

    expect(await listed(["*"])).to.equal(1);
    expect(await listed(["notices:read"])).to.equal(0);
    const webhook = await ask(await tokenWith(["webhooks"], boss.id), "POST", "/webhooks", {});
    expect([webhook.status, webhook.body.message]).to.deep.equal([403, "This token lacks the scope admin."]);
  });

  it("makes no webhook of an admin by a token that may not read all users' records", async () => {
    const admin = await service.createUser({ isAdmin: true });
    const body = { url: "https://receiver.example.com/", resource: "notes", events: ["on_create"] };

    const limited = await ask(await tokenWith(["webhooks"], admin.id), "POST", "/webhooks", body);
    const full = await ask(await tokenWith(["webhooks", "admin"], admin.id), "POST", "/webhooks", body);
    expect([limited.status, full.status]).to.deep.equal([403, 201]);
    for (const method of ["PUT", "PATCH"]) {
      const change = { url: "https://elsewhere.example.com/" };
      const token = await tokenWith(["webhooks"], admin.id);
      expect((await ask(token, method, `/webhooks/${full.body.id}`, change)).status).to.equal(403);
    }
    expect((await ask(await tokenWith(["webhooks"]), "POST", "/webhooks", body)).status).to.equal(201);
  });

  it("changes no webhook of operational events by such a token, under any isAdmin of resources", async () => {
    const notes = `${resources["notes.yaml"]}\nisAdmin: nobody`;
    const other = await startService({ mode: "servers", resources: { "notes.yaml": notes } });
    try {
      const admin = await other.createUser({ isAdmin: true });
      const url = "https://receiver.example.com/";
      const body = { url, resource: "service", events: ["webhook.failing"] };
      const made = await admin.request("POST", "/webhooks", body);
      const limited = { userId: admin.id, name: "limited", scopes: ["webhooks"] };
      const { token } = await other.api.tokens.issue(limited);
      const path = `${other.baseUrl}/webhooks/${made.body.id}`;
      const changed = await request({ url: path, method: "PUT", token, body: { url: `${url}other` } });

      expect([made.status, changed.status]).to.deep.equal([201, 403]);
    } finally {
      await other.stop();
    }
  });
});
