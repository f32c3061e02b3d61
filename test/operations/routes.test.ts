import { expect } from "chai";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { startService, type Answer, type TestService, type TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";

const sum = (counts: readonly number[]): number => counts.reduce((one, other) => one + other, 0);

describe("the routes of operators", () => {
  let service: TestService;
  let receiver: TestReceiver;
  let admin: TestUser;
  let user: TestUser;

  before(async () => {
    receiver = await startReceiver();
    service = await startService({ mode: "servers", webhooks: { maxAttempts: 1 } });
    [admin, user] = [await service.createUser({ isAdmin: true }), await service.createUser()];
  });
  after(async () => {
    await receiver?.close();
    await service?.stop();
  });

  const get = (path: string, who = admin): Promise<Answer> => who.request("GET", path);
  const figuresOf = async (who: TestUser): Promise<readonly number[]> => {
    const { hour } = (await get("/stats", who)).body.rates;
    return [hour.changes, hour.deliveries, hour.failures].map(sum);
  };
  const countOfAudit = async (query: string): Promise<number> =>
    (await get(`/audit?${query}`)).body.data.length;
  const all = async (path: string): Promise<readonly Answer["body"][]> => {
    const rows = [];
    for (let next: string | null = path; next !== null;) {
      const { body } = await get(next);
      rows.push(...body.data);
      next = body.next_cursor === null ? null : `${path}&cursor=${encodeURIComponent(body.next_cursor)}`;
    }
    return rows;
  };

  describe("GET /stats", () => {
    it("counts the changes, deliveries and failures of a user, and of all", async () => {
      const events = ["on_create"];
      const make = (who: TestUser): Promise<Answer> =>
        who.request("POST", "/webhooks", { url: receiver.url, resource: "tasks", events });
      await make(user);
      await user.request("POST", "/resources/tasks", { title: "one" });
      await receiver.waitFor(1);
      receiver.answer = { status: 500 };
      await user.request("POST", "/resources/tasks", { title: "two" });

      await until(async () => (await figuresOf(user))[2] === 1, {
        timeoutMs: 20_000,
        what: "a failure in the figures",
      });
      receiver.answer = { status: 200 };

      expect(await figuresOf(user)).to.deep.equal([2, 1, 1]);
      expect(await figuresOf(admin)).to.deep.equal([2, 1, 1]);
      expect(await figuresOf(await service.createUser())).to.deep.equal([0, 0, 0]);
    });

    it("shows their owner, and the rights of the token", async () => {
      const { token } = await service.api.tokens.issue({
        userId: admin.id,
        name: "narrow",
        scopes: ["tasks:read"],
      });
      const narrow = await fetch(`${service.baseUrl}/stats`, {
        headers: { authorization: `Bearer ${token}` },
      });

      expect((await get("/stats")).body).to.deep.include({
        of: "all",
        caller: { is_admin: true, scopes: ["*"] },
      });
      expect((await get("/stats", user)).body).to.deep.include({ of: "own", processes: null });
      expect(await narrow.json()).to.deep.include({
        of: "own",
        caller: { is_admin: false, scopes: ["tasks:read"] },
        receivers: null,
        processes: null,
      });
    });
  });

  describe("GET /audit", () => {
    it("lists who changed each subject, page by page, forwards and back", async () => {
      for (let count = 0; count < 5; count += 1)
        await admin.request("POST", "/tokens", { name: `t${count}` });

      const rows = await all("/audit?action=token.created&per_page=2");
      const second = (
        await get(
          `/audit?action=token.created&per_page=2&cursor=${(await get("/audit?action=token.created&per_page=2")).body.next_cursor}`,
        )
      ).body;
      const first = (await get(`/audit?action=token.created&per_page=2&cursor=${second.prev_cursor}`)).body;

      expect(rows.length).to.be.at.least(5);
      expect(new Set(rows.map(({ id }) => id)).size).to.equal(rows.length);
      expect(rows.map(({ id }) => id)).to.deep.equal(rows.map(({ id }) => id).toSorted((a, b) => b - a));
      expect(first.data.map(({ id }: Answer["body"]) => id)).to.deep.equal(
        rows.slice(0, 2).map(({ id }) => id),
      );
      expect(rows[0]).to.deep.include({
        action: "token.created",
        actor_kind: "user",
        actor_id: admin.id,
        subject_kind: "token",
      });
    });

    it("filters by time, action, actor and subject", async () => {
      const later = new Date(Date.now() + 60_000).toISOString();

      expect(await countOfAudit(`actor=user:${admin.id}&action=token`)).to.be.at.least(5);
      expect(await countOfAudit(`subject=user:${user.id}`)).to.equal(1);
      expect(await countOfAudit("subject=user:999999")).to.equal(0);
      expect(await countOfAudit(`since=${later}`)).to.equal(0);
      expect(await countOfAudit("since=1h&subject=user")).to.be.at.least(2);
      expect(await countOfAudit("until=36500d")).to.equal(0);
      // The `+` of an offset, not encoded, is a space in a query string.
      expect(await countOfAudit("since=2199-03-28T14:30:00+02:00")).to.equal(0);
      expect(await countOfAudit("until=2199-03-28T14:30:00+02:00&actor=service")).to.be.at.least(1);
      expect(await countOfAudit(`until=${later}&actor=service`)).to.be.at.least(1);
    });

    it("names the parameter that a filter in brackets stands for", async () => {
      const { status, body } = await get("/audit?filter[action]=token&filter[colour]=red");

      expect([status, body.errors]).to.deep.equal([
        422,
        {
          "filter[action]": ["There is no filter[action] here; use the parameter action."],
          "filter[colour]": ["There is no field colour."],
        },
      ]);
    });

    it("refuses unknown filters, and a cursor of another filter", async () => {
      const { next_cursor: cursor } = (await get("/audit?per_page=1")).body;
      const faults = [];
      for (const query of [
        "action=x",
        "actor=dog",
        "actor=user:",
        "since=today",
        "until=0h",
        "page=2",
        "colour=red",
        `action=token&cursor=${cursor}`,
        "actor=user:%00",
      ]) {
        const { status, body } = await get(`/audit?${query}`);
        faults.push([status, Object.keys(body.errors)[0]]);
      }

      expect(faults).to.deep.equal([
        [422, "action"],
        [422, "actor"],
        [422, "actor"],
        [422, "since"],
        [422, "until"],
        [422, "page"],
        [422, "colour"],
        [422, "cursor"],
        [422, "actor"],
      ]);
    });
  });

  describe("GET /dead-letters", () => {
    it("lists failed deliveries of all users, and how many wait in the broker", async () => {
      const failed = await until(
        async () =>
          (await get("/dead-letters")).body.data.find((one: Answer["body"]) => one.dead_lettered_at !== null),
        {
          what: "a dead letter",
        },
      );
      const { body } = await get("/dead-letters");

      expect(failed).to.include({ status: "failed", user_id: user.id, resource: "tasks" });
      expect(body.queued).to.be.at.least(1);
      expect((await get(`/dead-letters?webhook_id=${failed.subscription_id}`)).body.data).to.have.length(1);
      expect((await get("/dead-letters?webhook_id=2147483647")).body.data).to.deep.equal([]);
      expect((await get("/dead-letters?webhook_id=2147483648")).status).to.equal(422);
      expect((await get("/dead-letters?webhook_id=x")).status).to.equal(422);
    });

    it("continues page by page, forwards and back", async () => {
      receiver.answer = { status: 500 };
      for (let count = 0; count < 4; count += 1)
        await user.request("POST", "/resources/tasks", { title: `t${count}` });
      await until(async () => (await all("/dead-letters?per_page=2")).length >= 5, {
        what: "5 dead letters",
      });
      receiver.answer = { status: 200 };

      const rows = await all("/dead-letters?per_page=2");
      const { next_cursor: next } = (await get("/dead-letters?per_page=2")).body;
      const { prev_cursor: back } = (await get(`/dead-letters?per_page=2&cursor=${next}`)).body;

      expect(rows.map(({ id }) => id)).to.deep.equal(rows.map(({ id }) => id).toSorted((a, b) => b - a));
      expect((await get(`/dead-letters?per_page=2&cursor=${back}`)).body.data).to.deep.equal(
        rows.slice(0, 2),
      );
    });
  });

  describe("GET /configuration", () => {
    it("shows definitions with their Prisma model, and settings without secrets", async () => {
      const { body } = await get("/configuration");
      const tasks = body.resources.find(({ name }: Answer["body"]) => name === "tasks");
      const text = JSON.stringify(body);

      expect(body.hash).to.equal("test");
      expect(tasks.definition).to.include({ name: "tasks", ownerColumn: "user_id" });
      expect(tasks.prisma_model).to.match(/^model \w+ \{/);
      expect(body.settings.find(({ key }: Answer["body"]) => key === "database.url")).to.deep.equal({
        key: "database.url",
        variable: "DATABASE_URL",
        value: null,
        default: null,
        is_secret: true,
        is_set: true,
        takes_restart: true,
      });
      for (const secret of [
        service.config.database.url,
        service.config.broker.url,
        service.config.secretKey?.toString("base64"),
      ])
        expect(text).not.to.include(secret);
    });
  });

  it("are for admins with the scope only", async () => {
    const { token } = await service.api.tokens.issue({
      userId: admin.id,
      name: "narrow",
      scopes: ["read", "webhooks"],
    });
    const answers = [];
    for (const [method, path] of [
      ["GET", "/audit"],
      ["GET", "/dead-letters"],
      ["GET", "/configuration"],
      ["POST", "/configuration/reload"],
    ] as const) {
      const limited = await fetch(`${service.baseUrl}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}` },
      });
      answers.push(
        (await user.request(method, path)).body.code,
        ((await limited.json()) as Answer["body"]).code,
      );
    }

    expect(new Set(answers)).to.deep.equal(new Set(["user.forbidden", "token.scope"]));
  });
});
