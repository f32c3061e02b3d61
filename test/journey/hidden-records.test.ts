import { expect } from "chai";
import { startReceiver } from "../support/receiver.ts";
import { serviceOfSuite, request, type Answer, type TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";

const members = "members: { some: { user_id: $user.id } }";

/**
 * A team and its records: members read them, and records that only their author reads refer to
 * records that others read.
 */
const resources = {
  "projects.yaml": `
name: projects
model: Project
triggers: [on_create, on_update, on_delete]
ownerColumn: lead_id
searchableColumns: [name]
includes: [tasks, members]
fields:
  id: { type: Int, id: true }
  name: { type: String, length: 80 }
  lead_id: { type: Int, index: true }
access:
  read: { OR: [{ lead_id: $user.id }, { ${members} }] }`,
  "members.yaml": `
name: members
model: Member
triggers: [on_create, on_update, on_delete]
fields:
  id: { type: Int, id: true }
  project_id: { type: Int, references: projects.id, as: project, onDelete: cascade }
  user_id: { type: Int, index: true }
access: { read: { user_id: $user.id }, create: { project: { lead_id: $user.id } }, update: admin, delete: admin }`,
  "tasks.yaml": `
name: tasks
model: Task
triggers: [on_create, on_update, on_delete]
searchableColumns: [title]
includes: [project, comments, tasks]
fields:
  id: { type: Int, id: true }
  title: { type: String, length: 80 }
  state: { type: Enum, values: [open, done], default: open }
  points: { type: Int, optional: true }
  labels: { type: String, list: true, default: [] }
  project_id: { type: Int, references: projects.id, as: project, onDelete: cascade }
  parent_id: { type: Int, optional: true, references: tasks.id, as: parent, onDelete: setNull }
transform:
  id: id
  title: title
  state: state
  points: points
  labels: labels
  project: { id: project.id, name: project.name }
createRules:
  title: required|string|max:80
  points: nullable|integer
  project_id: required|integer|exists:projects,id
  parent_id: nullable|integer|exists:tasks,id
  labels: array
  labels.*: string|exists:projects,name
updateRules:
  title: sometimes|required|string
  points: nullable|integer
  project_id: sometimes|required|integer
  parent_id: nullable|integer
baseQuery: { include: { project: true }, orderBy: [{ points: desc }] }
access:
  read: { project: { OR: [{ lead_id: $user.id }, { ${members} }] } }
  create: { project: { ${members} } }
  update: { project: { ${members} } }
  delete: { project: { ${members} } }`,
  "comments.yaml": `
name: comments
model: Comment
triggers: [on_create, on_update, on_delete]
ownerColumn: author_id
searchableColumns: [text]
includes: [task]
fields:
  id: { type: Int, id: true }
  text: { type: String }
  task_id: { type: Int, references: tasks.id, as: task, onDelete: cascade }
  author_id: { type: Int, index: true }`,
};

/** Filters and sorts of a list, with values of shown and of hidden records. */
const shown: Readonly<Record<string, Readonly<Record<string, readonly (string | number)[]>>>> = {
  projects: { id: [1, 900], name: ["ours", "secret"], lead_id: [1, 2] },
  members: { id: [1, 900], project_id: [1, 900], user_id: [1, 2] },
  tasks: {
    id: [1, 900],
    title: ["first", "hidden"],
    state: ["open", "done"],
    points: [3, 77],
    "project.id": [1, 900],
    "project.name": ["ours", "secret"],
  },
  comments: { id: [1, 900], text: ["mine", "whisper"], task_id: [1, 900], author_id: [1, 2] },
};

const includes: Readonly<Record<string, readonly string[]>> = {
  projects: ["tasks", "members"],
  members: [],
  tasks: ["project", "comments", "tasks"],
  comments: ["task"],
};

function* listsOf(name: string): Generator<string> {
  const paths = Object.entries(shown[name] ?? {});
  yield* [
    "",
    "?count=estimated",
    "?count=none",
    "?cursor=",
    "?cursor=&per_page=1",
    "?per_page=1&page=2",
    "?page=99",
  ];
  for (const term of ["secret", "hidden", "whisper", "o", "%25"]) yield `?search=${term}`;
  for (const relation of includes[name] ?? []) {
    yield `?include=${relation}`;
    yield `?include=${relation}&fields=id`;
  }
  for (const [path, values] of paths) {
    for (const count of ["exact", "none"])
      yield* [`?sort=${path}&count=${count}`, `?sort=-${path}&per_page=1&count=${count}`];
    yield `?fields=${path}`;
    yield `?filter[${path}][null]=true`;
    yield `?filter[${path}][in]=${values.join(",")}`;
    const isText = typeof values[0] === "string" && path !== "state";
    const operators = isText ? ["eq", "ne", "gte", "contains", "starts_with", "ends_with"] : ["eq", "ne"];
    const numeric = typeof values[0] === "number" ? ["lt", "gte"] : [];
    for (const value of values) {
      for (const operator of [...operators, ...numeric]) yield `?filter[${path}][${operator}]=${value}`;
      yield `?filter[not][${path}]=${value}`;
      yield `?filter[or][0][${path}]=${value}&filter[or][1][id]=1`;
    }
  }
  // No list has these: their answers must not depend on the records.
  for (const path of [
    "members.user_id",
    "comments.text",
    "parent.title",
    "project.lead_id",
    "project.members.user_id",
    "task.title",
  ])
    yield `?filter[${path}]=1`;
  yield* ["?include=nothing", "?sort=nothing", "?fields=project.lead_id"];
}

/** Writes that refer to hidden or missing records, in every place of a reference. */
const writes: readonly (readonly [method: string, path: string, body?: object])[] = [
  ["POST", "/resources/tasks", { title: "a", project_id: 900 }],
  ["POST", "/resources/tasks", { title: "a", project_id: 1, parent_id: 900 }],
  ["POST", "/resources/tasks", { title: "a", project_id: 1, labels: ["secret"] }],
  ["POST", "/resources/tasks", { title: "a", project_id: 1, labels: ["ours"], points: 77 }],
  ["PUT", "/resources/tasks/1", { project_id: 900 }],
  ["PATCH", "/resources/tasks/1", { parent_id: 900 }],
  ["PATCH", "/resources/tasks/1", { points: 5 }],
  ["POST", "/resources/members", { project_id: 900, user_id: 2 }],
  ["POST", "/resources/members", { project_id: 1, user_id: 2 }],
  ["POST", "/resources/comments", { text: "x", task_id: 900 }],
  ["POST", "/resources/comments", { text: "x", task_id: 1 }],
  ["PATCH", "/resources/comments/1", { task_id: 900 }],
  ["POST", "/resources/projects", { name: "secret" }],
  ["PATCH", "/resources/projects/1", { name: "renamed" }],
  [
    "POST",
    "/resources/tasks/batch",
    {
      operations: [
        { method: "create", data: { title: "b", project_id: 1 } },
        { method: "create", data: { title: "c", project_id: 900 } },
        { method: "update", id: 1, data: { parent_id: 900 } },
      ],
    },
  ],
  ["GET", "/resources/tasks/1?include=comments,tasks,project"],
  ["GET", "/resources/projects/1?include=tasks,members"],
  ["DELETE", "/resources/tasks/2"],
  ["DELETE", "/resources/projects/1"],
];

/** Ada, 1, has records that are hidden from Bob, 2. Bob leads one project and is a member of it. */
describe("what Bob may not read", () => {
  const service = serviceOfSuite({ mode: "servers", resources, webhooks: { maxAttempts: 1 } });
  let ada: TestUser;
  let bob: TestUser;

  before(async () => {
    ada = await service.createUser({ name: "Ada" });
    bob = await service.createUser({ name: "Bob" });
    expect([ada.id, bob.id]).to.deep.equal([1, 2]);
  });

  const visible = `
    INSERT INTO projects (id, name, lead_id) VALUES (1, 'ours', 2);
    INSERT INTO members (id, project_id, user_id) VALUES (1, 1, 2);
    INSERT INTO tasks (id, title, points, project_id) VALUES (1, 'first', 3, 1), (2, 'second', 4, 1);
    INSERT INTO comments (id, text, task_id, author_id) VALUES (1, 'mine', 1, 2);`;
  const hidden = `
    INSERT INTO projects (id, name, lead_id) VALUES (900, 'secret', 1);
    INSERT INTO members (id, project_id, user_id) VALUES (900, 900, 1), (901, 1, 1);
    INSERT INTO tasks (id, title, points, project_id, parent_id) VALUES (900, 'hidden', 77, 900, NULL), (901, 'hidden too', 78, 900, 1);
    INSERT INTO comments (id, text, task_id, author_id) VALUES (900, 'whisper', 1, 1), (901, 'whisper', 900, 1);`;

  /** Creates the records again, without events, and with the same next ids. */
  async function seed(isWithHidden: boolean): Promise<void> {
    await service.infrastructure.database.pool.query(`
      BEGIN;
      SET LOCAL session_replication_role = replica;
      TRUNCATE projects, members, tasks, comments RESTART IDENTITY CASCADE;
      ${visible} ${isWithHidden ? hidden : ""}
      SELECT setval(pg_get_serial_sequence(name, 'id'), 100) FROM unnest(ARRAY['projects', 'members', 'tasks', 'comments']) AS name;
      COMMIT`);
  }

  /** Returns the whole answer as a text, without the cursor, which differs each time. */
  async function told(method: string, path: string, body?: unknown): Promise<string> {
    const answer: Answer = await request({ url: service.baseUrl + path, method, token: bob.token, body });
    const names = ["etag", "location", "content-length", "allow"];
    const headers = names.map((name) =>
      name === "content-length" && path.includes("cursor") ? "" : answer.headers.get(name),
    );
    const text = JSON.stringify([answer.status, headers, answer.body]);
    return text.replaceAll(/(cursor(?:=|":"))[\w.~%-]+/g, "$1…");
  }

  async function differencesOf(
    asked: readonly (readonly [string, string, unknown?])[],
  ): Promise<readonly unknown[]> {
    const worlds: string[][] = [];
    for (const isWithHidden of [false, true]) {
      await seed(isWithHidden);
      const answers: string[] = [];
      // Reads run concurrently; the ids of writes depend on their order.
      const atOnce = asked.every(([method]) => method === "GET") ? 8 : 1;
      for (let start = 0; start < asked.length; start += atOnce) {
        const portion = asked.slice(start, start + atOnce);
        answers.push(...(await Promise.all(portion.map((one) => told(...one)))));
      }
      worlds.push(answers);
    }
    return asked.flatMap((one, index) =>
      worlds[0]?.[index] === worlds[1]?.[index] ? [] : [[one, worlds[0]?.[index], worlds[1]?.[index]]],
    );
  }

  it("changes no list, filter, sort, total, page, include, search or error", async () => {
    const asked = Object.keys(shown).flatMap((name) =>
      [...listsOf(name)].map((query) => ["GET", `/resources/${name}${query}`] as const),
    );

    expect(asked.length).to.be.within(300, 600);
    expect(await differencesOf(asked)).to.deep.equal([]);
  });

  it("changes no answer to a write with references", async () => {
    expect(await differencesOf(writes)).to.deep.equal([]);
  });

  it("answers 403 to a request by its id, and reveals nothing else", async () => {
    await seed(true);

    for (const name of Object.keys(shown)) {
      expect((await ada.request("GET", `/resources/${name}/900`)).status, name).to.equal(200);
      for (const method of ["GET", "PUT", "PATCH", "DELETE"]) {
        const body = method === "GET" || method === "DELETE" ? undefined : {};
        const { status, body: answer } = await bob.request(method, `/resources/${name}/900`, body);
        expect([status, answer], `${method} ${name}`).to.deep.equal([
          403,
          { message: "This action is unauthorized.", code: "record.forbidden" },
        ]);
      }
    }
  });

  it("sends no event, and leaves no delivery", async () => {
    await seed(false);
    const receiver = await startReceiver();
    try {
      for (const resource of Object.keys(shown)) {
        const events = ["on_create", "on_update", "on_delete"];
        const made = await bob.request("POST", "/webhooks", {
          url: `${receiver.url}/${resource}`,
          resource,
          events,
        });
        expect(made.status, resource).to.equal(201);
      }
      const sql = service.infrastructure.database.pool;
      await sql.query(hidden);
      await sql.query(`
        UPDATE projects SET name = 'secret still' WHERE id = 900;
        UPDATE tasks SET title = 'hidden still' WHERE id = 900;
        UPDATE comments SET text = 'whisper still' WHERE id >= 900;
        DELETE FROM projects WHERE id = 900;
        DELETE FROM comments WHERE id = 900;
        DELETE FROM members WHERE id = 901`);
      // A record that Bob may read, last: all before it has been fanned out then.
      await bob.request("PATCH", "/resources/tasks/1", { title: "the last" });
      await receiver.waitFor(1);
      await until(async () => (await sql.query("SELECT FROM svc.outbox")).rows.length === 0, {
        what: "an empty outbox",
      });

      expect(receiver.received.map(({ rawBody }) => JSON.parse(String(rawBody)).data.title)).to.deep.equal([
        "the last",
      ]);
      const deliveries = await bob.request("GET", "/webhook-deliveries");
      expect(
        deliveries.body.data.map(({ resource, record_id: id }: Answer["body"]) => [resource, id]),
      ).to.deep.equal([["tasks", "1"]]);
    } finally {
      await receiver.close();
    }
  });
});
