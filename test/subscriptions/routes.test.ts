import { randomBytes, randomUUID } from "node:crypto";
import { expect } from "chai";
import { createIndexSql } from "../../src/db/sql.ts";
import { createApp } from "../../src/http/app.ts";
import { startServer, type HttpServer } from "../../src/http/server.ts";
import { createUrlOf } from "../../src/http/url-of.ts";
import { createCursors } from "../../src/querying/cursor.ts";
import { createRouter } from "../../src/http/state.ts";
import { createTargetPolicy } from "../../src/outbound/targets.ts";
import { addSubscriptionRoutes } from "../../src/subscriptions/routes.ts";
import { createSecretBox } from "../../src/subscriptions/secret.ts";
import { createSubscriptionStore } from "../../src/subscriptions/store.ts";
import { createFailureLimit } from "../../src/http/failure-limit.ts";
import { createAuthenticate } from "../../src/users/authenticate.ts";
import { createTokenProvider } from "../../src/users/provider.ts";
import { stateSql } from "../support/delivery-states.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { createPosts } from "../support/posts.ts";
import { call, createMemoryLog, type Answer } from "../support/http.ts";

const good = { url: "https://example.com/hook", resource: "orders", events: ["on_create", "on_delete"] };
const dateTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/;

type Json = Record<string, unknown>;

describe("webhook subscription routes", () => {
  let core: CoreDatabase;
  let server: HttpServer;
  let ada = { id: 0, token: "" };
  let ben = ada;
  const { log } = createMemoryLog();
  const secretBox = createSecretBox(randomBytes(32));

  before(async () => {
    core = await openCoreDatabase();
    const { prisma } = core;
    const listSql = createIndexSql(core.database.pool);
    const tokens = createTokenProvider({ ...core, log });
    const router = createRouter("/svc-api");
    addSubscriptionRoutes(router, {
      store: createSubscriptionStore({ ...core, secretBox, maxPerUser: 5 }),
      sql: core.sql,
      listSql,
      ...createPosts(core.database.pool, secretBox),
      maxPerPage: 100,
      cursors: createCursors("secret"),
      urlOf: createUrlOf({ publicUrl: undefined, hosts: [] }),
      preview: async () => "{}",
      rulesFor: ({ id }) => ({
        resourceNames: [],
        filterFaults: () => new Map(),
        triggersOf: (name) => (name === "orders" ? ["on_create", "on_update", "on_delete"] : undefined),
        refusalOfResource: (resource) =>
          resource === "orders" && id === 0 ? "Only admins read orders." : undefined,
        refusalOfUrl: (url) => createTargetPolicy([]).refusalOfUrl(url),
      }),
    });
    const failures = createFailureLimit({ count: 100, windowMs: 60_000 });
    const authenticate = createAuthenticate({ tokens, failures });
    const app = createApp({ log, routePrefix: "/svc-api", authenticate, router, isUnavailable: () => false });
    server = await startServer(app.callback(), { host: "127.0.0.1", port: 0 });
    const addUser = async (name: string): Promise<{ id: number; token: string }> => {
      const data = { name, email: `${name}@example.com`, isAdmin: name === "ben" };
      const { id } = await prisma.user.create({ data });
      return { id, token: (await tokens.issue({ userId: id, name: "test" })).token };
    };
    ada = await addUser("ada");
    // An admin, who may not manage the subscriptions of others either.
    ben = await addUser("ben");
  });

  beforeEach(() => core.sql("DELETE FROM svc.subscriptions"));

  after(async () => {
    await server.close();
    await core.close();
  });

  const send = (method: string, path: string, body?: unknown, user = ada): Promise<Answer> =>
    call(server.port, `/svc-api${path}`, {
      method,
      headers: { Authorization: `Bearer ${user.token}`, "Content-Type": "application/json" },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });

  async function create(body: Json = good, user = ada): Promise<Json> {
    const answer = await send("POST", "/webhooks", body, user);
    expect(answer.status).to.equal(201);
    return answer.json as Json;
  }

  describe("POST /webhooks", () => {
    it("refuses one more than a user may have with 422, under concurrency, and accepts one after a deletion", async () => {
      const answers = await Promise.all(Array.from({ length: 9 }, () => send("POST", "/webhooks", good)));

      const statuses = [...Array<number>(5).fill(201), ...Array<number>(4).fill(422)];
      expect(answers.map(({ status }) => status)).to.have.members(statuses);
      const message =
        "You have 5 webhooks, and one user may have 5 (setting webhooks.maxPerUser). Delete one that is not needed, or change it into the new one.";
      const refused = answers.find(({ status }) => status === 422);
      expect(refused?.json)
        .to.include({ message })
        .and.deep.include({ errors: { webhook: [message] } });

      const made = answers.find(({ status }) => status === 201);
      await send("DELETE", `/webhooks/${String((made as { json: Json }).json["id"])}`);
      await create();
    });

    it("gives an admin no limit", async () => {
      for (let count = 0; count < 6; count++) await create(good, ben);
    });

    it("answers 201 and the subscription with its secret", async () => {
      const created = await create({ ...good, description: "Shop" });

      const keys =
        "id user_id url resource events filter headers rate_limit is_active disabled_at " +
        "disabled_reason failing_since last_success_at last_attempt_at description secret standard_secret previous_secret_until created_at updated_at";
      expect(created).to.have.all.keys(...keys.split(" "));
      expect(created).to.deep.include({ ...good, user_id: ada.id, is_active: true, description: "Shop" });
      expect(created["id"]).to.be.a("number");
      expect(created["secret"]).to.match(/^sec_[0-9A-Za-z]{32,}$/);
      expect(created["created_at"]).to.match(dateTime);
      expect(created["updated_at"]).to.match(dateTime);
    });

    it("stores the secret encrypted, differently each time", async () => {
      const [first, second] = [await create(), await create()];

      const rows = await core.sql<{ encrypted_secret: Buffer }>(
        "SELECT encrypted_secret FROM svc.subscriptions ORDER BY id",
      );
      expect(rows.map((row) => secretBox.decrypt(row.encrypted_secret))).to.deep.equal([
        first["secret"],
        second["secret"],
      ]);
      expect(first["secret"]).not.to.equal(second["secret"]);
      expect(rows[0]?.encrypted_secret.toString("latin1")).not.to.contain(String(first["secret"]).slice(4));
    });

    it("answers 422 with every field's messages and their summary", async () => {
      const answer = await send("POST", "/webhooks", { ...good, url: "x", events: [] });

      expect(answer.status).to.equal(422);
      expect(answer.json).to.deep.equal({
        message: "The url field must be a valid URL. (and 1 more error)",
        code: "validation.failed",
        errors: { url: ["The url field must be a valid URL."], events: ["The events field is required."] },
      });
    });

    it("answers 422 for an unknown key, to PUT too", async () => {
      const { id } = await create();
      for (const request of ["POST /webhooks", `PUT /webhooks/${String(id)}`]) {
        const [method = "", path = ""] = request.split(" ");
        const answer = await send(method, path, { ...good, isActive: false });

        const message = "There is no field isActive; did you mean is_active?";
        expect(answer.status).to.equal(422);
        expect(answer.json).to.deep.include({ message, errors: { isActive: [message] } });
      }
    });

    for (const url of [
      "http://127.0.0.1:1/",
      "http://[::1]/",
      "http://10.1.2.3/",
      "http://169.254.169.254/",
      "http://user:pw@example.com/",
    ]) {
      it(`answers 422 for ${url}`, async () => {
        const answer = await send("POST", "/webhooks", { ...good, url });

        expect(answer.status).to.equal(422);
        expect(answer.json).to.have.nested.property("errors.url").with.length(1);
      });
    }

    for (const [what, body] of [
      ["a list", []],
      ["malformed JSON", "{"],
    ] as const) {
      it(`answers 400 for ${what}`, async () => {
        expect((await send("POST", "/webhooks", body)).status).to.equal(400);
      });
    }
  });

  describe("GET /webhooks", () => {
    it("lists the caller's own, newest first, with the secrets masked", async () => {
      const older = await create();
      const newer = await create({ ...good, is_active: false });
      await create(good, ben);

      const answer = await send("GET", "/webhooks");

      const { data } = answer.json as { data: Json[] };
      expect(answer.status).to.equal(200);
      expect(data.map(({ id }) => id)).to.deep.equal([newer["id"], older["id"]]);
      expect(data[0]).to.include({
        is_active: false,
        masked_secret: `sec_****${String(newer["secret"]).slice(-4)}`,
      });
      expect(data[0]).not.to.have.property("secret");
      expect(answer.text).not.to.contain(String(newer["secret"]).slice(0, -4));
    });

    it("answers an empty list when there are none", async () => {
      expect((await send("GET", "/webhooks")).json).to.deep.equal({ data: [] });
    });
  });

  describe("GET /webhooks/{id}", () => {
    it("answers like the creation, with the secret masked", async () => {
      const { secret, standard_secret: _, ...created } = await create();

      const answer = await send("GET", `/webhooks/${String(created["id"])}`);

      expect(answer.status).to.equal(200);
      expect(answer.json).to.deep.equal({ ...created, masked_secret: `sec_****${String(secret).slice(-4)}` });
    });
  });

  describe("PUT /webhooks/{id}", () => {
    it("changes url, events, is_active and description, each alone", async () => {
      const { id } = await create();
      for (const change of [
        { url: "https://example.org/" },
        { events: ["on_update"] },
        { is_active: false },
        { description: "new" },
      ]) {
        const answer = await send("PUT", `/webhooks/${String(id)}`, change);

        expect(answer.status).to.equal(200);
        expect(answer.json).to.deep.include(change);
      }
      expect((await send("GET", `/webhooks/${String(id)}`)).json).to.deep.include({
        url: "https://example.org/",
        events: ["on_update"],
        is_active: false,
        description: "new",
        resource: "orders",
        user_id: ada.id,
      });
    });

    it("answers 200 and the same for an empty change", async () => {
      const { secret, standard_secret: _, ...created } = await create();

      const answer = await send("PUT", `/webhooks/${String(created["id"])}`, {
        id: created["id"],
        user_id: ada.id,
        updated_at: created["updated_at"],
      });

      expect(answer.status).to.equal(200);
      expect(answer.json).to.deep.equal({ ...created, masked_secret: `sec_****${String(secret).slice(-4)}` });
    });

    it("answers 422 for another resource, and changes nothing", async () => {
      const { id } = await create();

      const answer = await send("PUT", `/webhooks/${String(id)}`, { resource: "notes", is_active: false });

      expect(answer.status).to.equal(422);
      expect(answer.json).to.deep.equal({
        message: "The resource field is prohibited.",
        code: "validation.failed",
        errors: { resource: ["The resource field is prohibited."] },
      });
      expect((await send("GET", `/webhooks/${String(id)}`)).json).to.include({ is_active: true });
    });

    it("answers 404 before it reads the body", async () => {
      expect((await send("PUT", "/webhooks/999999", "{")).status).to.equal(404);
    });
  });

  describe("DELETE /webhooks/{id}", () => {
    it("answers 204 without a body, and the subscription is gone", async () => {
      const { id } = await create();

      const answer = await send("DELETE", `/webhooks/${String(id)}`);

      expect([answer.status, answer.text]).to.deep.equal([204, ""]);
      expect((await send("GET", `/webhooks/${String(id)}`)).status).to.equal(404);
    });

    it("cancels its unfinished deliveries, those in flight too, and no others", async () => {
      const { id } = await create();
      const other = await create();
      const [event] = await core.sql<{ id: string; uuid: string }>(
        "INSERT INTO svc.events (resource, trigger, record_id, snapshot) VALUES ('orders', 'on_create', '1', '{}') RETURNING id, uuid",
      );
      const add = async (
        subscriptionId: unknown,
        status: string,
        place?: "queue" | "flight",
      ): Promise<string> => {
        const [uuid, state] = [randomUUID(), stateSql("$6")];
        const [row] = await core.sql<{ id: string }>(
          `INSERT INTO svc.deliveries (uuid, event_id, event_uuid, subscription_id, user_id, resource, root_delivery_id, trigger_kind,
             status, max_attempts, url, attempt, last_error)
           VALUES ($1, $2, $3, $4, $5, 'orders', 1, 'manual', $6, 3, 'https://example.com', ${state.attempt}, ${state.lastError}) RETURNING id`,
          [uuid, event?.id, event?.uuid, subscriptionId, ada.id, status],
        );
        if (place === "queue")
          await core.sql(
            "INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id, due_at) VALUES ($1, $2, $3, now())",
            [row?.id, subscriptionId, ada.id],
          );
        if (place === "flight")
          await core.sql(
            "INSERT INTO svc.flights (delivery_ids, ends_at) VALUES (ARRAY[$1::bigint], now())",
            [row?.id],
          );
        return uuid;
      };
      const unfinished = [
        await add(id, "pending", "queue"),
        await add(id, "retrying", "queue"),
        await add(id, "pending", "flight"),
      ];
      const kept = [
        await add(id, "delivered"),
        await add(id, "failed"),
        await add(other["id"], "pending", "queue"),
      ];

      await send("DELETE", `/webhooks/${String(id)}`);

      const rows = await core.sql<Json>("SELECT uuid, status, last_error FROM svc.deliveries");
      const byUuid = new Map(rows.map(({ uuid, ...row }) => [uuid, row]));
      for (const uuid of unfinished) {
        expect(byUuid.get(uuid)).to.deep.equal({
          status: "cancelled",
          last_error: "The subscription was deleted.",
        });
      }
      const queued = await core.sql("SELECT subscription_id AS id FROM svc.delivery_queue");
      expect(queued).to.deep.equal([{ id: other["id"] }]);
      expect(kept.map((uuid) => byUuid.get(uuid)?.["status"])).to.deep.equal([
        "delivered",
        "failed",
        "pending",
      ]);
    });
  });

  for (const method of ["GET", "PUT", "DELETE"]) {
    describe(`${method} /webhooks/{id} of somebody else, or of nobody`, () => {
      it("answers 404 for another user's, to an admin too, and leaves it unchanged", async () => {
        const { id } = await create();

        const answer = await send(
          method,
          `/webhooks/${String(id)}`,
          method === "PUT" ? { is_active: false } : undefined,
          ben,
        );

        expect(answer.status).to.equal(404);
        expect(answer.json).to.deep.equal({
          message: "The webhook subscription could not be found.",
          code: "webhook.not_found",
        });
        expect((await send("GET", `/webhooks/${String(id)}`)).json).to.include({ is_active: true });
      });

      for (const id of "0 -1 1.5 01 abc 2147483648 99999999999999999999 1%00 %31e1".split(" ")) {
        it(`answers 404 for the id ${id}`, async () => {
          expect((await send(method, `/webhooks/${id}`)).status).to.equal(404);
        });
      }
    });
  }

  it("names unknown fields of a preview and a rotation beside other faults", async () => {
    const path = `/webhooks/${String((await create())["id"])}/rotate-secret`;
    const preview = await send("POST", "/webhooks/preview", { resource: "x", x: 1 });
    const rotation = await send("POST", path, { grace: "x", x: 1 });
    expect(preview.json).to.have.property("errors").with.all.keys("resource", "events", "x");
    expect(rotation.json).to.have.property("errors").with.all.keys("grace", "x");
  });

  it("accepts only a POST on the path of the preview, which is no webhook's", async () => {
    for (const path of ["/webhooks/preview", "/webhooks/preview/"])
      for (const method of ["GET", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
        const { status, headers } = await send(method, path);
        const expected = [method === "OPTIONS" ? 204 : 405, "POST"];
        expect([status, headers["allow"]], `${method} ${path}`).to.deep.equal(expected);
      }
  });

  it("needs a token", async () => {
    expect((await call(server.port, "/svc-api/webhooks")).status).to.equal(401);
  });
});
