import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { runAdmin } from "../../src/cli/program.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { summaryOf } from "../../src/operations/audit-list.ts";
import { createMemoryTerminal } from "../support/memory-terminal.ts";

type Json = Readonly<Record<string, unknown>>;

/** A row with its age in hours. */
interface Given {
  readonly hours: number;
  readonly action: string;
  readonly actor: readonly [kind: string, id: number | null, name: string | null, source?: string];
  readonly subject: readonly [kind: string, id: string | null];
  readonly details?: Json;
}

const given: readonly Given[] = [
  {
    hours: 50,
    action: "migration.applied",
    actor: ["operator", null, "root"],
    subject: ["migration", null],
    details: { steps: 12 },
  },
  {
    hours: 30,
    action: "user.created",
    actor: ["operator", null, "ada"],
    subject: ["user", "7"],
    details: { after: { name: "x" } },
  },
  { hours: 20, action: "token.created", actor: ["operator", null, "ada"], subject: ["token", "7"] },
  {
    hours: 10,
    action: "webhook.secret_replaced",
    actor: ["user", 7, null, "2001:0db8:1111:2222:3333:4444:5555:6666"],
    subject: ["webhook", "12"],
    details: { before: { is_active: true, url: "a" }, after: { is_active: false, url: "b" } },
  },
  {
    hours: 2,
    action: "configuration.reloaded",
    actor: ["service", null, "api"],
    subject: ["configuration", "abc"],
    details: {
      resources: { added: ["new"], removed: [], changed: ["notes"] },
      settings: ["http.maxPerPage"],
      hidden: { parts: "long" },
    },
  },
  { hours: 1, action: "user.disabled", actor: ["database", null, "eve\u001b[2J"], subject: ["user", "8"] },
];

describe("svc-admin audit list", () => {
  let core: CoreDatabase;
  let folder: string;

  before(async () => {
    core = await openCoreDatabase();
    folder = await mkdtemp(join(tmpdir(), "svc-audit-"));
    for (const { hours, action, actor, subject, details = {} } of given)
      await core.sql(
        `INSERT INTO svc.audit (occurred_at, action, actor_kind, actor_id, actor_name, source, subject_kind, subject_id, details)
         VALUES (now() - $1 * interval '1 hour', $2, $3, $4, $5, $6, $7, $8, $9)`,
        [
          hours,
          action,
          actor[0],
          actor[1],
          actor[2],
          actor[3] ?? "ops-1",
          subject[0],
          subject[1],
          JSON.stringify(details),
        ],
      );
  });

  after(async () => {
    await core.close();
    await rm(folder, { recursive: true });
  });

  async function run(
    ...args: readonly string[]
  ): Promise<{ readonly status: number; readonly stdout: string; readonly stderr: string }> {
    const terminal = createMemoryTerminal();
    const env = { DATABASE_URL: core.url, SVC_SECRET_KEY: Buffer.alloc(32).toString("base64") };
    const status = await runAdmin({ args: ["audit", "list", ...args], env, cwd: folder, terminal });
    return { status, ...terminal.read() };
  }

  async function json(...args: readonly string[]): Promise<readonly Json[]> {
    return JSON.parse((await run(...args, "--json")).stdout) as Json[];
  }

  const actions = given.map(({ action }) => action).toReversed();

  for (const [args, expected] of [
    [[], actions],
    [["--limit", "2"], actions.slice(0, 2)],
    [["--since", "24h"], actions.slice(0, 4)],
    [
      ["--since", "24h", "--until", "5h"],
      ["webhook.secret_replaced", "token.created"],
    ],
    [["--until", "40h"], ["migration.applied"]],
    [["--since", "2020-01-01", "--until", "2020-01-02T10:00"], []],
    [
      ["--action", "user"],
      ["user.disabled", "user.created"],
    ],
    [["--action", "user.created"], ["user.created"]],
    [
      ["--actor", "operator"],
      ["token.created", "user.created", "migration.applied"],
    ],
    [
      ["--actor", "operator:ada"],
      ["token.created", "user.created"],
    ],
    [["--actor", "user:7"], ["webhook.secret_replaced"]],
    [
      ["--subject", "user"],
      ["user.disabled", "user.created"],
    ],
    [["--subject", "user:7"], ["user.created"]],
    [
      ["--subject", "user:7", "--action", "user", "--actor", "operator:ada", "--since", "2d"],
      ["user.created"],
    ],
  ] as const) {
    it(`gives ${expected.length} of ${given.length} rows, newest first, for ${args.join(" ") || "no option"}`, async () => {
      expect((await json(...args)).map(({ action }) => action)).to.deep.equal([...expected]);
    });
  }

  it("continues from the time of a printed row", async () => {
    const [first] = await json("--limit", "1");

    const [next] = await json("--limit", "1", "--until", String(first?.["occurred_at"]));

    expect(next).to.include({ action: "configuration.reloaded" });
  });

  it("prints all of a row with --json, except data that is only for the next comparison", async () => {
    const [row] = await json("--action", "configuration");

    expect(row).to.have.all.keys(
      "id",
      "occurred_at",
      "action",
      "actor_kind",
      "actor_id",
      "actor_name",
      "token_id",
      "source",
      "request_id",
      "subject_kind",
      "subject_id",
      "details",
    );
    expect(row?.["occurred_at"]).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/);
    expect(row?.["details"]).to.deep.equal({
      resources: { added: ["new"], removed: [], changed: ["notes"] },
      settings: ["http.maxPerPage"],
    });
  });

  it("prints a table of at most 100 columns, complete and without control characters", async () => {
    const { status, stdout } = await run();

    expect(status).to.equal(0);
    const lines = stdout.trimEnd().split("\n");
    expect(Math.max(...lines.map((line) => line.length))).to.equal(100);
    expect(stdout).not.to.include("\u001b").and.not.to.include("…");
    const cells = lines.map((line) => line.split("│").map((cell) => cell.trim()));
    const column = (index: number): string => cells.map((line) => line[index] ?? "").join("");
    expect(column(2)).to.include("configuration.reloaded").and.include("webhook.secret_replaced");
    expect(column(3)).to.include("webhook 12: url,is_active").and.include("migration: 12 steps");
    expect(column(3)).to.include("configuration abc:new, notes,http.maxPerPage");
    expect(column(4)).to.include("2001:0db8:1111:2222:3333:4444:5555:6666").and.include("operator ada");
  });

  it("names one of a count as one", () => {
    const row = { occurred_at: new Date(), action: "configuration.refused", actor_kind: "service" };
    const rest = { actor_id: null, actor_name: null, token_id: null, source: null, request_id: null };
    const subject = { id: "1", subject_kind: "configuration", subject_id: "abc" };

    expect(summaryOf({ ...row, ...rest, ...subject, details: { faults: 1 } })["subject"]).to.equal(
      "configuration abc: 1 fault",
    );
  });

  it("says so when nothing fits", async () => {
    expect((await run("--actor", "user:99")).stdout).to.equal("No row of the audit trail matches.\n");
    expect(await json("--actor", "user:99")).to.deep.equal([]);
  });

  it("reads more than one page, each row once", async () => {
    await core.sql(
      `INSERT INTO svc.audit (occurred_at, action, actor_kind, subject_kind, details)
       SELECT date_trunc('day', now()) - interval '10 days', 'token.revoked', 'service', 'token', '{}' FROM generate_series(1, 1200)`,
    );

    const rows = await json("--action", "token.revoked", "--limit", "1100");

    expect(new Set(rows.map(({ id }) => id))).to.have.property("size", 1100);
  });

  for (const [args, message] of [
    [["--since", "yesterday"], /a duration such as 24h/],
    [["--since", "2026-13-01"], /a duration such as 24h/],
    [["--since", "2026-03-28 14:30"], /a duration such as 24h/],
    [["--actor", "nobody"], /Expected user, operator, service, database/],
    [["--actor", "user:"], /such as user:7/],
    [["--subject", "resource:7"], /Expected user, token, webhook/],
    [["--action", "tokens"], /Expected one of user, user\.created/],
    [["--limit", "0"], /from 1 to 10000/],
    [["--limit", "10001"], /from 1 to 10000/],
    [["--limit", "1e3"], /from 1 to 10000/],
  ] as const) {
    it(`ends with 2 for ${args.join(" ")}`, async () => {
      const { status, stdout, stderr } = await run(...args);

      expect(status).to.equal(2);
      expect(stdout).to.equal("");
      expect(stderr).to.match(message);
    });
  }
});
