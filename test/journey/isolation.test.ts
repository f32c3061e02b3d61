import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import {
  modes,
  request,
  startService,
  type Answer,
  type TestService,
  type TestUser,
} from "../support/service.ts";
import { until } from "../support/wait.ts";

const owned = `
  id: { type: Int, id: true }
  text: { type: String }
  user_id: { type: Int }
ownerColumn: user_id
`;
const resources = {
  "notes.yaml": `
name: notes
model: Note
triggers: []
searchableColumns: [text]
fields: ${owned}`,
  "notices.yaml": `
name: notices
model: Notice
triggers: []
fields:
  id: { type: Int, id: true }
  text: { type: String }`,
  "alarms.yaml": `
name: alarms
model: Alarm
triggers: [on_create]
webhookMaxAttempts: 1
fields: ${owned}`,
};

/**
 * Callers. Ada owns the records of `{note}`, `{webhook}` and `{delivery}`; the last five have no
 * valid token.
 */
const relations = [
  "owner",
  "stranger",
  "admin",
  "no token",
  "unknown",
  "revoked",
  "expired",
  "disabled",
] as const;
type Relation = (typeof relations)[number];

// Every endpoint (specification 4.1, contract 4). A list says whose records are in it; `{notice}`
// has no owner. The revoked and expired tokens are the owner's, the disabled user is an admin.
const table = `
request                                   | owner     | stranger  | admin         | no token | unknown | revoked | expired | disabled
GET /whoami                               | 200       | 200       | 200           | 401      | 401     | 401     | 401     | 401
GET /resources                            | 200       | 200       | 200           | 401      | 401     | 401     | 401     | 401
GET /resources/notes                      | 200 [ada] | 200 [bob] | 200 [ada bob] | 401      | 401     | 401     | 401     | 401
HEAD /resources/notes                     | 200       | 200       | 200           | 401      | 401     | 401     | 401     | 401
POST /resources/notes                     | 201       | 201       | 201           | 401      | 401     | 401     | 401     | 401
GET /resources/notes/{note}               | 200       | 403       | 200           | 401      | 401     | 401     | 401     | 401
HEAD /resources/notes/{note}              | 200       | 403       | 200           | 401      | 401     | 401     | 401     | 401
PUT /resources/notes/{note}               | 200       | 403       | 200           | 401      | 401     | 401     | 401     | 401
POST /resources/notes/batch               | 200       | 200       | 200           | 401      | 401     | 401     | 401     | 401
DELETE /resources/notes/{note}            | 204       | 403       | 204           | 401      | 401     | 401     | 401     | 401
GET /resources/notes/999999               | 404       | 404       | 404           | 401      | 401     | 401     | 401     | 401
PUT /resources/notes/999999               | 404       | 404       | 404           | 401      | 401     | 401     | 401     | 401
DELETE /resources/notes/999999            | 404       | 404       | 404           | 401      | 401     | 401     | 401     | 401
PATCH /resources/notes/{note}             | 200       | 403       | 200           | 401      | 401     | 401     | 401     | 401
GET /resources/nothing                    | 404       | 404       | 404           | 401      | 401     | 401     | 401     | 401
GET /resources/notices                    | 200 []    | 200 []    | 200 [any]     | 401      | 401     | 401     | 401     | 401
POST /resources/notices                   | 201       | 201       | 201           | 401      | 401     | 401     | 401     | 401
GET /resources/notices/{notice}           | 403       | 403       | 200           | 401      | 401     | 401     | 401     | 401
PUT /resources/notices/{notice}           | 403       | 403       | 200           | 401      | 401     | 401     | 401     | 401
DELETE /resources/notices/{notice}        | 403       | 403       | 204           | 401      | 401     | 401     | 401     | 401
GET /webhooks                             | 200 [ada] | 200 [bob] | 200 []        | 401      | 401     | 401     | 401     | 401
POST /webhooks                            | 201       | 201       | 201           | 401      | 401     | 401     | 401     | 401
GET /webhooks/{webhook}                   | 200       | 404       | 404           | 401      | 401     | 401     | 401     | 401
PUT /webhooks/{webhook}                   | 200       | 404       | 404           | 401      | 401     | 401     | 401     | 401
PATCH /webhooks/{webhook}                 | 200       | 404       | 404           | 401      | 401     | 401     | 401     | 401
DELETE /webhooks/{webhook}                | 204       | 404       | 404           | 401      | 401     | 401     | 401     | 401
GET /webhook-deliveries                   | 200 [ada] | 200 [bob] | 200 [ada bob] | 401      | 401     | 401     | 401     | 401
GET /webhook-deliveries?webhook_id={hook} | 200 [ada] | 200 []    | 200 [ada]     | 401      | 401     | 401     | 401     | 401
GET /webhook-deliveries?event_id={event}  | 200 [ada] | 200 []    | 200 [ada]     | 401      | 401     | 401     | 401     | 401
GET /webhook-deliveries?status=failed     | 200 [ada] | 200 [bob] | 200 [ada bob] | 401      | 401     | 401     | 401     | 401
GET /webhook-deliveries/{delivery}        | 200       | 404       | 200           | 401      | 401     | 401     | 401     | 401
POST /webhook-deliveries/{delivery}/retry | 201       | 403       | 201           | 401      | 401     | 401     | 401     | 401
POST /webhook-deliveries/999999/retry     | 404       | 404       | 404           | 401      | 401     | 401     | 401     | 401
GET /tokens                               | 200       | 200       | 200           | 401      | 401     | 401     | 401     | 401
POST /tokens                              | 201       | 201       | 201           | 401      | 401     | 401     | 401     | 401
GET /tokens/{token}                       | 200       | 404       | 404           | 401      | 401     | 401     | 401     | 401
DELETE /tokens/{token}                    | 204       | 404       | 404           | 401      | 401     | 401     | 401     | 401
DELETE /tokens/999999                     | 404       | 404       | 404           | 401      | 401     | 401     | 401     | 401
GET /users                                | 403       | 403       | 200           | 401      | 401     | 401     | 401     | 401
POST /users                               | 403       | 403       | 201           | 401      | 401     | 401     | 401     | 401
GET /users/{user}                         | 403       | 403       | 200           | 401      | 401     | 401     | 401     | 401
PUT /users/{user}                         | 403       | 403       | 200           | 401      | 401     | 401     | 401     | 401
GET /users/999999                         | 403       | 403       | 404           | 401      | 401     | 401     | 401     | 401
POST /users/{user}/tokens                 | 403       | 403       | 201           | 401      | 401     | 401     | 401     | 401
GET /nothing                              | 404       | 404       | 404           | 401      | 401     | 401     | 401     | 401
`;

interface Row {
  readonly method: string;
  readonly path: string;
  readonly expected: Readonly<Record<Relation, string>>;
}

const rows = table
  .trim()
  .split("\n")
  .slice(1)
  .map((line): Row => {
    const [asked = "", ...cells] = line.split("|").map((cell) => cell.trim());
    const [method = "", path = ""] = asked.split(" ");
    const expected = Object.fromEntries(relations.map((relation, index) => [relation, cells[index] ?? ""]));
    return { method, path, expected: expected as Row["expected"] };
  });

/** Returns the names under which the list's records were created. */
function ownersOf(data: readonly Answer["body"][]): readonly string[] {
  const names = data.map(({ text, url }) => text ?? new URL(url).pathname.slice(1));
  return [...new Set<string>(names)].toSorted();
}

for (const mode of modes) {
  describe(`isolation (${mode})`, () => {
    let service: TestService;
    let receiver: TestReceiver;
    let ada: TestUser;
    let bob: TestUser;
    let tokens: Readonly<Record<Relation, string | undefined>>;
    /** Ada's failed delivery. */
    let failed: Answer["body"];
    const secrets: string[] = [];
    const told: string[] = [];

    before(async () => {
      service = await startService({ mode, resources, webhooks: { manualRetryLimit: 1_000 } });
      receiver = await startReceiver();
      receiver.answer = { status: 500 };
      [ada, bob] = [await service.createUser({ name: "Ada" }), await service.createUser({ name: "Bob" })];
      const admin = await service.createUser({ isAdmin: true });
      const disabled = await service.createUser({ isAdmin: true });
      await service.infrastructure.sql("UPDATE svc.users SET disabled_at = now() WHERE id = $1", [
        disabled.id,
      ]);
      const issue = (expiresAt?: Date): Promise<{ id: number; token: string }> =>
        service.api.tokens.issue({ userId: ada.id, name: "spent", expiresAt });
      const [revoked, expired] = [await issue(), await issue(new Date(Date.now() - 1_000))];
      await service.api.tokens.revoke(revoked.id);
      tokens = {
        owner: ada.token,
        stranger: bob.token,
        admin: admin.token,
        "no token": undefined,
        unknown: `svc_${"0".repeat(43)}`,
        revoked: revoked.token,
        expired: expired.token,
        disabled: disabled.token,
      };
      for (const [name, user] of [
        ["ada", ada],
        ["bob", bob],
      ] as const) {
        await insert("notes", name, user);
        await subscribe(user, name);
        await user.request("POST", "/resources/alarms", { text: name });
      }
      await insert("notices", "any");
      await until(
        async () => {
          const list = await request({ ...to("/webhook-deliveries?status=failed"), token: admin.token });
          failed = list.body.data.find(({ url }: Answer["body"]) => url.endsWith("/ada"));
          return list.body.data.length === 2;
        },
        { what: "two failed deliveries" },
      );
      receiver.answer = { status: 200 };
    });

    after(async () => {
      await receiver.close();
      await service.stop();
    });

    afterEach(async () => {
      for (const name of ["notes", "notices"])
        await service.infrastructure.sql(`DELETE FROM ${name} WHERE text = 'new'`);
      await service.infrastructure.sql("DELETE FROM svc.subscriptions WHERE description = 'new'");
    });

    const to = (path: string, method = "GET"): { url: string; method: string } => ({
      url: service.baseUrl + path,
      method,
    });

    async function insert(name: string, text: string, user?: TestUser): Promise<number> {
      const [row] = await service.infrastructure.sql<{ id: number }>(
        user === undefined
          ? `INSERT INTO ${name} (text) VALUES ($1) RETURNING id`
          : `INSERT INTO ${name} (text, user_id) VALUES ($1, $2) RETURNING id`,
        user === undefined ? [text] : [text, user.id],
      );
      return row?.id ?? 0;
    }

    async function subscribe(user: TestUser, name: string): Promise<number> {
      const answer = await user.request("POST", "/webhooks", webhookBody(name));
      expect(answer.status).to.equal(201);
      secrets.push(answer.body.secret);
      return answer.body.id;
    }

    const webhookBody = (name: string): object => ({
      url: `${receiver.url}/${name}`,
      resource: "alarms",
      events: ["on_create"],
      description: name,
    });

    /** Creates the record of the path's placeholder. */
    async function pathOf(template: string): Promise<string> {
      const made: Readonly<Record<string, () => unknown>> = {
        note: () => insert("notes", "ada", ada),
        notice: () => insert("notices", "any"),
        webhook: () => subscribe(ada, "ada"),
        hook: () => failed.subscription_id,
        event: () => failed.event_id,
        delivery: () => failed.id,
        token: async () => (await service.api.tokens.issue({ userId: ada.id, name: "spare" })).id,
        user: () => ada.id,
      };
      const name = /\{(\w+)\}/.exec(template)?.[1];
      if (name === undefined) return template;
      return template.replace(/\{\w+\}/, String(await made[name]?.()));
    }

    const bodyOf = (method: string, path: string): object | undefined => {
      const isWebhook = path.startsWith("/webhooks");
      if (path.endsWith("/retry")) return undefined;
      if (path.endsWith("/batch")) return { operations: [{ method: "create", data: { text: "new" } }] };
      if (method === "POST" && path.endsWith("/tokens")) return { name: "new" };
      if (path.startsWith("/users") && method !== "GET")
        return { name: "new", ...(method === "POST" ? { email: `${randomUUID()}@example.com` } : {}) };
      if (method === "POST") return isWebhook ? webhookBody("new") : { text: "new" };
      if (method !== "PUT" && method !== "PATCH") return undefined;
      return isWebhook ? { is_active: false } : { text: "changed" };
    };

    /** Returns all rows that a request could change, as one text. */
    async function stored(): Promise<string> {
      const [all] = await service.infrastructure.sql<{ text: string }>(`SELECT concat(
        (SELECT json_agg(n ORDER BY id) FROM notes n), (SELECT json_agg(n ORDER BY id) FROM notices n),
        (SELECT json_agg(s ORDER BY id) FROM svc.subscriptions s), (SELECT count(*) FROM svc.deliveries),
        (SELECT count(*) FROM svc.tokens WHERE revoked_at IS NULL), (SELECT json_agg(u ORDER BY id) FROM svc.users u)) AS text`);
      return all?.text ?? "";
    }

    /** Returns the status, and the owners of the records of a list. */
    async function cellOf({ method, path: template }: Row, relation: Relation): Promise<string> {
      const path = await pathOf(template);
      const before = await stored();
      const body = bodyOf(method, path);
      const answer = await request({ ...to(path, method), token: tokens[relation], body });
      told.push(JSON.stringify({ ...answer.body, secret: undefined }));
      if (answer.status >= 400) {
        expect(await stored(), "a refused request changes nothing").to.equal(before);
        if (method !== "HEAD") expect(Object.keys(answer.body)).to.deep.equal(["message", "code"]);
      }
      const isOfRecords = !["/resources", "/tokens", "/users"].includes(path);
      const isList = answer.status === 200 && method === "GET" && isOfRecords;
      const data = isList ? answer.body?.data : undefined;
      return data === undefined ? String(answer.status) : `200 [${ownersOf(data).join(" ")}]`;
    }

    for (const row of rows) {
      it(`${row.method} ${row.path} answers each user by their access`, async () => {
        const actual: Record<string, string> = {};
        for (const relation of relations) actual[relation] = await cellOf(row, relation);

        expect(actual).to.deep.equal(row.expected);
      });
    }

    it("never shows a webhook's secret except in the answer to its creation", () => {
      expect(secrets.length).to.be.greaterThan(2);
      for (const secret of secrets) {
        expect(secret).to.match(/^sec_[0-9A-Za-z]{48}$/);
        expect(told.filter((text) => text.includes(secret))).to.deep.equal([]);
        expect(receiver.received.filter(({ rawBody }) => rawBody.includes(secret))).to.deep.equal([]);
      }
      const hints = secrets.map((secret) => `sec_****${secret.slice(-4)}`);
      expect(told.some((text) => hints.some((hint) => text.includes(hint)))).to.equal(true);
    });

    for (const query of [
      "search=b",
      "search=%25",
      "search=bob&search=o",
      "per_page=100",
      "per_page=1&page=2",
      "user_id={bob}",
      "where[user_id]={bob}",
      "search=bob&OR[]=1",
      "owner=bob&is_admin=1&admin=true",
    ]) {
      it(`shows Ada none of Bob's notes for ?${query}`, async () => {
        await insert("notes", "ada's bob", ada);
        const { status, body } = await ada.request(
          "GET",
          `/resources/notes?${query.replace("{bob}", String(bob.id))}`,
        );

        // A parameter that no list has is refused, not ignored.
        expect(status).to.equal(/user_id|OR|owner/.test(query) ? 422 : 200);
        if (status === 422) return;
        expect(body.data.filter(({ user_id }: Answer["body"]) => user_id !== ada.id)).to.deep.equal([]);
        const [own] = await service.infrastructure.sql<{ count: number }>(
          "SELECT count(*)::int AS count FROM notes WHERE user_id = $1",
          [ada.id],
        );
        expect(body.total).to.be.at.most(own?.count ?? 0);
      });
    }

    it("takes the owner from the token and not from the body", async () => {
      const created = await ada.request("POST", "/resources/notes", { text: "new", user_id: bob.id });
      const updated = await ada.request("PUT", `/resources/notes/${created.body.id}`, { user_id: bob.id });

      expect([created.status, created.body.user_id]).to.deep.equal([201, ada.id]);
      expect([updated.status, updated.body.user_id]).to.deep.equal([200, ada.id]);
    });

    it("takes the user of a webhook from the token and not from the body", async () => {
      const body = { ...webhookBody("new"), user_id: bob.id, id: 1 };
      const refused = await ada.request("POST", "/webhooks", { ...body, secret: "mine" });
      const created = await ada.request("POST", "/webhooks", body);
      const updated = await ada.request("PUT", `/webhooks/${created.body.id}`, body);

      expect([refused.status, Object.keys(refused.body.errors)]).to.deep.equal([422, ["secret"]]);
      expect([created.status, created.body.user_id]).to.deep.equal([201, ada.id]);
      expect([updated.status, updated.body.user_id]).to.deep.equal([200, ada.id]);
      expect(updated.body.masked_secret).to.equal(`sec_****${created.body.secret.slice(-4)}`);
    });
  });
}
