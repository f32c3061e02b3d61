import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { expect } from "chai";
import { scopeTable } from "../../src/http/scope-check.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { request, startService, type Answer, type TestService, type TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";

const resources = {
  "projects.yaml": `
name: projects
model: Project
triggers: [on_create]
webhookMaxAttempts: 1
ownerColumn: lead_id
searchableColumns: [name]
fields:
  id: { type: Int, id: true }
  name: { type: String, length: 80 }
  lead_id: { type: Int, index: true }
access:
  read: { OR: [{ lead_id: $user.id }, { members: { some: { user_id: $user.id } } }] }`,
  "members.yaml": `
name: members
model: Member
triggers: []
fields:
  id: { type: Int, id: true }
  project_id: { type: Int, references: projects.id, as: project, onDelete: cascade }
  user_id: { type: Int, index: true }
access: { read: admin }`,
};

/**
 * Callers who request the owner's records. The last one is the owner, with a token for another
 * resource.
 */
const columns = ["stranger", "reader", "owner", "admin", "disabled", "other scope"] as const;
type Column = (typeof columns)[number];

interface Row {
  readonly method: string;
  /** As in the documentation: \`/svc-api/resources/{name}/{id}\`. */
  readonly path: string;
  readonly cells: readonly string[];
}

/** Returns the status of a stream, which has no end. */
async function statusOfStream(url: string, token: string): Promise<string> {
  const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
  await response.body?.cancel();
  return String(response.status);
}

function documented(): readonly Row[] {
  const page = readFileSync("docs/access.md", "utf8");
  const [table = ""] = (page.split("<!-- isolation: held to")[1] ?? "").split("\n\n");
  return [...table.matchAll(/^\| `([A-Z]+) (\S+)` \| (.*) \|$/gm)].map(
    ([, method = "", path = "", cells = ""]) => ({
      method,
      path,
      cells: cells.split("|").map((cell) => cell.trim()),
    }),
  );
}

const rows = documented();

describe("the table of isolation in docs/access.md", () => {
  let service: TestService;
  let receiver: TestReceiver;
  let tokens: Readonly<Record<Column, string>>;
  let owner: TestUser;
  let failed: Answer["body"];

  before(async () => {
    service = await startService({
      mode: "servers",
      resources,
      webhooks: { manualRetryLimit: 1_000, maxPerUser: 1_000 },
    });
    receiver = await startReceiver();
    receiver.answer = { status: 500 };
    owner = await service.createUser();
    const [stranger, reader, admin, disabled] = [
      await service.createUser(),
      await service.createUser(),
      await service.createUser({ isAdmin: true }),
      await service.createUser({ isAdmin: true }),
    ];
    const { sql } = service.infrastructure;
    await sql("UPDATE svc.users SET disabled_at = now() WHERE id = $1", [disabled.id]);
    const narrow = await service.api.tokens.issue({ userId: owner.id, name: "n", scopes: ["members:write"] });
    tokens = {
      stranger: stranger.token,
      reader: reader.token,
      owner: owner.token,
      admin: admin.token,
      disabled: disabled.token,
      "other scope": narrow.token,
    };
    // Each new project has the reader as a member.
    await sql(`CREATE FUNCTION join_reader() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN INSERT INTO members (project_id, user_id) VALUES (NEW.id, ${reader.id}); RETURN NEW; END $$`);
    await sql(
      "CREATE TRIGGER join_reader AFTER INSERT ON projects FOR EACH ROW EXECUTE FUNCTION join_reader()",
    );
    await owner.request("POST", "/webhooks", webhookBody());
    await owner.request("POST", "/resources/projects", { name: "first" });
    failed = await until(
      async () => (await owner.request("GET", "/webhook-deliveries?status=failed")).body.data[0],
      { what: "a failed delivery" },
    );
    receiver.answer = { status: 200 };
  });
  after(async () => {
    await receiver.close();
    await service.stop();
  });

  const webhookBody = (): object => ({ url: receiver.url, resource: "projects", events: ["on_create"] });

  const replayBody = { since: "2020-01-01", until: "2020-01-02" };

  /** Makes a record of the owner, for the path's `{id}`. */
  async function idFor(path: string): Promise<unknown> {
    if (path.includes("/resources/")) {
      const made = await owner.request("POST", "/resources/projects", { name: "made" });
      return made.body.id;
    }
    if (path.includes("/webhook-replays")) {
      const { id } = (await owner.request("POST", "/webhooks", webhookBody())).body;
      const made = await owner.request("POST", `/webhooks/${id}/replay`, replayBody);
      const text = "UPDATE svc.replays SET state = 'paused' WHERE id = $1";
      await service.infrastructure.sql(text, [made.body.id]);
      return made.body.id;
    }
    if (path.includes("/webhooks")) return (await owner.request("POST", "/webhooks", webhookBody())).body.id;
    if (path.includes("/webhook-deliveries")) return failed.id;
    if (path.includes("/users")) return owner.id;
    return (await service.api.tokens.issue({ userId: owner.id, name: "spare" })).id;
  }

  function bodyFor(method: string, path: string): object | undefined {
    if (method === "GET" || method === "DELETE" || path.endsWith("/retry")) return undefined;
    if (path.endsWith("/batch")) return { operations: [{ method: "create", data: { name: "new" } }] };
    if (path.includes("/resources/")) return { name: "new" };
    if (path.includes("/webhook-replays")) return undefined;
    if (path.endsWith("/reload")) return {};
    if (path.endsWith("/replay")) return replayBody;
    if (path.endsWith("/preview")) return { resource: "projects", events: ["on_create"] };
    if (path.includes("/webhooks"))
      return method === "POST" ? (path.endsWith("/webhooks") ? webhookBody() : {}) : { is_active: false };
    if (path.endsWith("/tokens")) return { name: "new" };
    return { name: "new", ...(method === "POST" ? { email: `${randomUUID()}@example.com` } : {}) };
  }

  /** Returns the status; of a list also whether it has a record of the owner. */
  async function cellOf({ method, path }: Row, column: Column): Promise<string> {
    const id = path.includes("{id}") ? await idFor(path) : undefined;
    const spare = path.includes("{tokenId}")
      ? (await service.api.tokens.issue({ userId: owner.id, name: "spare" })).id
      : "";
    const target = path
      .replace("/svc-api", "")
      .replace("{name}", "projects")
      .replace("{id}", String(id))
      .replace("{tokenId}", String(spare))
      .replace("{uuid}", failed.event_uuid ?? failed.event_id);
    if (path.endsWith("/stream")) return statusOfStream(service.baseUrl + target, tokens[column]);
    const body = bodyFor(method, path);
    const answer = await request({ url: service.baseUrl + target, method, token: tokens[column], body });
    const list: unknown = answer.body?.data;
    if ((method !== "GET" && !path.endsWith("/preview")) || !Array.isArray(list))
      return String(answer.status);
    const isOwners = (one: Answer["body"]): boolean =>
      [one.lead_id, one.user_id, path.endsWith("/users") ? one.id : undefined].includes(owner.id) ||
      one.subscription_id === failed.subscription_id ||
      // Only the owner replays.
      (path.endsWith("/webhook-replays") && one.webhook_id > 0) ||
      one.data?.lead_id === owner.id;
    return `${answer.status} ${list.some(isOwners) ? "with" : "without"}`;
  }

  it("has every route that is served", () => {
    const routes = Object.keys(scopeTable).map((key) => key.replaceAll(/:(\w+)/g, "{$1}"));
    const inTable = new Set(rows.map(({ method, path }) => `${method} ${path.replace("/svc-api", "")}`));
    // `*` means every method of a resource's record; the table lists them.
    const expected = routes.flatMap((route) =>
      route.startsWith("* ")
        ? ["PUT", "PATCH", "DELETE", "POST"].map((method) => route.replace("*", method))
        : [route],
    );

    expect([...inTable].filter((one) => one.includes("/resources/")).length).to.be.at.least(7);
    const missing = expected.filter((route) => !inTable.has(route) && !route.includes("/resources/{name}"));
    expect(missing).to.deep.equal([]);
  });

  for (const row of rows)
    it(`${row.method} ${row.path} answers as documented`, async () => {
      const actual: string[] = [];
      for (const column of columns) actual.push(await cellOf(row, column));

      expect(actual).to.deep.equal(row.cells);
    });
});
