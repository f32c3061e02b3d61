import { expect } from "chai";
import type { ModelsClient } from "../../src/db/models-client.ts";
import { openModelsClient } from "../../src/db/prisma-internals/models-client.ts";
import { createSql } from "../../src/db/sql.ts";
import type { AccessRule, Definition } from "../../src/mapping/definition.ts";
import { prismaSchemaOf } from "../../src/mapping/models.ts";
import { databaseOfSuite } from "../support/own-database.ts";
import { definition, definitionsOf, field, keyField, ownersOnly } from "../support/definitions.ts";
import type { Answer } from "../support/http.ts";
import { recordDatabaseOf } from "./serving.ts";
import { ask, startApi, type Api } from "./serving-api.ts";

const filter = (where: Readonly<Record<string, unknown>>): AccessRule => ({ kind: "filter", where });

const mine: AccessRule = filter({
  OR: [{ lead_id: "$user.id" }, { members: { some: { user_id: "$user.id" } } }],
});

const transformOf = (
  ...entries: readonly (readonly [string, readonly string[]])[]
): Pick<Definition, "transform"> => ({
  transform: {
    kind: "object",
    entries: entries.map(([key, path]) => [key, { kind: "path", path }] as const),
  },
});

/** A team's projects: members read, the lead changes, and tasks have the rules of their project. */
const projects = definition({
  name: "projects",
  model: "Project",
  fields: [keyField(), field("name", "String"), field("lead_id", "Int")],
  ownerColumn: "lead_id",
  includes: ["tasks"],
  access: { ...ownersOnly, read: mine, reference: mine },
});

const members = definition({
  name: "members",
  model: "Member",
  fields: [
    keyField(),
    field("project_id", "Int", {
      references: { resource: "projects", field: "id", as: "project", onDelete: "cascade" },
    }),
    field("user_id", "Int"),
  ],
  access: { ...ownersOnly, read: { kind: "admin" }, reference: { kind: "admin" } },
});

const tasks = definition({
  name: "tasks",
  model: "Task",
  fields: [
    keyField(),
    field("title", "String"),
    field("state", "String", { default: { kind: "literal", value: "open" } }),
    field("project_id", "Int", {
      references: { resource: "projects", field: "id", as: "project", onDelete: "cascade" },
    }),
    field("helper_id", "Int", {
      isOptional: true,
      references: { resource: "members", field: "id", as: "helper", onDelete: "setNull" },
    }),
  ],
  ...transformOf(
    ["id", ["id"]],
    ["title", ["title"]],
    ["state", ["state"]],
    ["project_id", ["project_id"]],
    ["project", ["project", "name"]],
  ),
  baseQuery: { include: { project: true } },
  includes: ["project"],
  createRules: {
    title: "required|string",
    project_id: "required|integer",
    helper_id: "nullable|integer",
    state: "string",
  },
  updateRules: { title: "string", state: "string", project_id: "integer" },
  access: {
    read: filter({
      project: { is: { OR: [{ lead_id: "$user.id" }, { members: { some: { user_id: "$user.id" } } }] } },
    }),
    create: filter({ state: "open" }),
    update: filter({ NOT: { state: "closed" } }),
    delete: { kind: "admin" },
    reference: { kind: "everyone" },
  },
});

const definitions = definitionsOf(projects, members, tasks);

const idsOf = ({ json }: Answer): readonly unknown[] =>
  (json as { readonly data: readonly { readonly id: unknown }[] }).data.map(({ id }) => id);
const errorsOf = ({ json }: Answer): unknown => (json as { readonly errors: unknown }).errors;

/**
 * Ada, 7, leads the first project; Bob, 8, is a member of it and leads the second. Root is an
 * admin.
 */
describe("access", () => {
  const database = databaseOfSuite({ poolSize: 4 });
  let models: ModelsClient;
  let api: Api;
  const fallbacks: string[] = [];

  before(async () => {
    await database.pool.query(`
      CREATE TABLE projects (id serial PRIMARY KEY, name text NOT NULL, lead_id int NOT NULL);
      CREATE TABLE members (id serial PRIMARY KEY, project_id int NOT NULL REFERENCES projects ON DELETE CASCADE, user_id int NOT NULL);
      CREATE TABLE tasks (id serial PRIMARY KEY, title text NOT NULL, state text NOT NULL DEFAULT 'open',
        project_id int NOT NULL REFERENCES projects ON DELETE CASCADE, helper_id int REFERENCES members ON DELETE SET NULL)`);
    models = await openModelsClient({
      schemaText: prismaSchemaOf(definitions),
      pool: database.pool,
      isEmbedded: false,
    });
    const records = recordDatabaseOf({ database, models, onFallback: (name) => fallbacks.push(name) });
    api = await startApi(
      {
        url: database.url,
        database,
        models,
        records,
        fallbacks,
        sql: createSql({ pool: database.pool, isEmbedded: false }),
        statements: () => [],
        close: async () => {},
      },
      definitions,
    );
  });

  after(async () => {
    await api.server.close();
    await models.close();
  });

  beforeEach(async () => {
    await database.pool.query(`TRUNCATE projects, members, tasks RESTART IDENTITY;
      INSERT INTO projects (name, lead_id) VALUES ('Moon', 7), ('Mars', 8), ('Sun', 9);
      INSERT INTO members (project_id, user_id) VALUES (1, 8);
      INSERT INTO tasks (title, state, project_id) VALUES ('dig', 'open', 1), ('fly', 'closed', 1), ('land', 'open', 2), ('burn', 'open', 3)`);
  });

  afterEach(() => {
    expect(fallbacks).to.deep.equal([]);
  });

  for (const [who, project, task] of [
    ["ada", [1], [1, 2]],
    ["bob", [1, 2], [1, 2, 3]],
    ["root", [1, 2, 3], [1, 2, 3, 4]],
  ] as const) {
    it(`lists to ${who} the records of the filter, and counts no more`, async () => {
      const [first, second] = [
        await ask(api, who, "GET /projects"),
        await ask(api, who, "GET /tasks?per_page=1&page=1"),
      ];

      expect(idsOf(first)).to.deep.equal(project);
      expect(first.json).to.include({ total: project.length });
      expect(second.json).to.include({ total: task.length });
    });
  }

  it("answers 403 for an existing record that is not readable, and 404 for none", async () => {
    const statuses = await Promise.all(
      ["GET /tasks/1", "GET /tasks/4", "GET /tasks/99"].map(
        async (request) => (await ask(api, "ada", request)).status,
      ),
    );

    expect(statuses).to.deep.equal([200, 403, 404]);
  });

  it("includes only readable records", async () => {
    await database.pool.query("UPDATE tasks SET project_id = 2 WHERE id = 2");
    const answer = await ask(api, "ada", "GET /projects?include=tasks");

    expect(answer.json).to.have.nested.property("data[0].tasks").with.length(1);
    expect(answer.json).to.have.nested.property("data[0].tasks[0].title", "dig");
  });

  it("creates records that fit, and rolls back others", async () => {
    const fits = await ask(api, "ada", "POST /tasks", { title: "new", project_id: 1 });
    const not = await ask(api, "ada", "POST /tasks", { title: "no", project_id: 1, state: "closed" });

    expect([fits.status, not.status]).to.deep.equal([201, 403]);
    const { rows } = await database.pool.query("SELECT title FROM tasks WHERE title IN ('new', 'no')");
    expect(rows).to.deep.equal([{ title: "new" }]);
  });

  it("refuses a reference to an unreadable record with the same answer as to a missing one", async () => {
    const answers = [
      await ask(api, "ada", "POST /tasks", { title: "spy", project_id: 2 }),
      await ask(api, "ada", "POST /tasks", { title: "spy", project_id: 99 }),
      await ask(api, "ada", "PUT /tasks/1", { project_id: 3 }),
    ];

    const refusal = { project_id: ["The selected project id is invalid."] };
    expect(answers.map(({ status }) => status)).to.deep.equal([422, 422, 422]);
    expect(answers.map(errorsOf)).to.deep.equal([refusal, refusal, refusal]);
    expect((await ask(api, "bob", "POST /tasks", { title: "fly", project_id: 2 })).status).to.equal(201);
    expect((await ask(api, "root", "POST /tasks", { title: "fly", project_id: 3 })).status).to.equal(201);
  });

  it("accepts null as a reference, which has no target to read", async () => {
    const task = { title: "new", project_id: 1 };
    const none = await ask(api, "ada", "POST /tasks", { ...task, helper_id: null });
    const one = await ask(api, "ada", "POST /tasks", { ...task, helper_id: 1 });

    expect([none.status, one.status]).to.deep.equal([201, 422]);
    expect(errorsOf(one)).to.deep.equal({ helper_id: ["The selected helper id is invalid."] });
  });

  it("updates records that both rules allow, and deletes for admins only", async () => {
    const statuses: number[] = [];
    for (const [who, request, body] of [
      ["ada", "PUT /tasks/1", { title: "dug" }],
      ["ada", "PUT /tasks/2", { title: "no" }],
      ["ada", "PUT /tasks/4", { title: "no" }],
      ["ada", "DELETE /tasks/1", undefined],
      ["ada", "DELETE /tasks/4", undefined],
      ["root", "DELETE /tasks/4", undefined],
      ["bob", "PUT /projects/1", { name: "no" }],
      ["bob", "PUT /projects/2", { name: "Red" }],
    ] as const)
      statuses.push((await ask(api, who, request, body)).status);

    expect(statuses).to.deep.equal([200, 403, 403, 403, 403, 204, 403, 200]);
  });

  it("sets the owner to the caller, at any owner in the body", async () => {
    const answer = await ask(api, "ada", "POST /projects", { name: "Io", lead_id: 8 });

    expect(answer.json).to.include({ lead_id: 7 });
  });

  it("also sets it to an admin who names none", async () => {
    const { status, json } = await ask(api, "root", "POST /projects", { name: "Io" });

    expect(status).to.equal(201);
    expect(json).to.include({ lead_id: 1 });
  });
});
