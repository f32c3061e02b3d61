import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { text as readAll } from "node:stream/consumers";
import { connect as connectAmqp } from "amqplib";
import { expect } from "chai";
import { Client } from "pg";
import { openEmbedded } from "../../src/embedded/embedded.ts";
import { keepAudit } from "../support/audit.ts";
import { createCanaries, type Canaries } from "../support/canaries.ts";
import { fillDataDir } from "../support/embedded.ts";
import { call, createMemoryLog } from "../support/http.ts";
import { notesYaml } from "../support/notes.ts";
import { startPrivatePostgres } from "../support/postgres.ts";
import type { PrivateServer } from "../support/private-process.ts";
import {
  admin,
  createProgram,
  filesOf,
  type Configuration,
  type Program,
  writeConfiguration,
} from "../support/program.ts";
import { startPrivateRabbitMq } from "../support/rabbitmq.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { until } from "../support/wait.ts";

const service = `
log:
  level: trace
http:
  bodyLimit: 2kb
webhooks:
  timeout: 2
  maxAttempts: 2
  backoff: [0.05]
  jitter: 0
  sweepInterval: 0.2
  requeueAfter: 2
  allowedNetworks: [127.0.0.0/8]
`;

/** Statements that fail on the server, each with the value in another part of its error. */
const troubleSql = `
  CREATE UNIQUE INDEX notes_text_once ON notes (text);
  CREATE FUNCTION trouble() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF NEW.text LIKE 'number %' THEN PERFORM split_part(NEW.text, ' ', 2)::int; END IF;
      IF NEW.text LIKE 'refused %' THEN RAISE EXCEPTION 'not this one' USING DETAIL = NEW.text, HINT = NEW.text; END IF;
      IF NEW.text LIKE 'broken %' THEN EXECUTE format('SELECT missing(%L)', NEW.text); END IF;
      RETURN NEW;
    END
  $$;
  CREATE TRIGGER trouble BEFORE INSERT ON notes FOR EACH ROW EXECUTE FUNCTION trouble()`;

/** Runs successful and failing operations, with a secret in every possible place. */
async function journey({
  canaries,
  api,
  adminEnv,
  receiver,
  runSql,
}: {
  readonly canaries: Canaries;
  readonly api: Program;
  readonly adminEnv: Readonly<Record<string, string>>;
  readonly receiver: TestReceiver;
  readonly runSql: (text: string) => Promise<void>;
}): Promise<{ readonly request: Request }> {
  const user = async (name: string, ...options: string[]): Promise<string> => {
    const args = ["create-user", "--name", name, "--email", `${name.toLowerCase()}@example.com`, ...options];
    const token = String((await admin(args, adminEnv))["token"]);
    canaries.adopt(`${name}'s token`, token);
    return token;
  };
  const [ada, eve] = [await user("Ada"), await user("Eve")];
  await user("Grace", "--admin");
  const port = Number(new URL(api.origin).port);

  /** Sends a secret in every header and in the query; keeps error answers. */
  const request: Request = async (method, path, body, headers = {}) => {
    const sent: Record<string, string> = { Authorization: `Bearer ${ada}` };
    const names = "Cookie X-Api-Key X-Custom User-Agent Referer X-Forwarded-For Origin";
    for (const name of names.split(" ")) sent[name] = canaries.make(`the header ${name}`);
    if (body !== undefined) sent["Content-Type"] = "application/json";
    // Lists refuse unknown parameters.
    const isList = method === "GET" && /^\/(?:webhook-deliveries|webhooks|resources\/\w+)(?:\?|$)/.test(path);
    const query = isList
      ? ""
      : `${path.includes("?") ? "&" : "?"}access_token=${canaries.make("the query string")}`;
    const answer = await call(port, `/svc-api${path}${query}`, {
      method,
      headers: { ...sent, ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    if (answer.status >= 400) canaries.keep(`the answer ${answer.status} to ${method} ${path}`, answer.text);
    return answer;
  };
  const secretly = (place: string, prefix = ""): string => `${prefix}${canaries.make(place)}`;

  // A webhook whose URL has secrets, on a receiver that answers with some, and fails.
  receiver.answer = {
    status: 500,
    headers: {
      "X-Debug": secretly("a header of the receiver"),
      "Set-Cookie": secretly("a cookie of the receiver"),
    },
    body: secretly("the body of the receiver"),
  };
  const url = `${receiver.url}/${secretly("the path of the webhook")}?key=${secretly("the query of the webhook")}`;
  const webhook = await request("POST", "/webhooks", {
    url,
    resource: "notes",
    events: ["on_create"],
    description: secretly("the description of the webhook"),
  });
  expect(webhook.status).to.equal(201);
  canaries.adopt("the secret of the webhook", (webhook.json as { readonly secret: string }).secret);

  await request("PUT", `/webhooks/${(webhook.json as { readonly id: number }).id}`, {
    url: `${url}&more=${secretly("the query of a changed webhook")}`,
    description: secretly("the description of a changed webhook"),
  });

  const note = await request("POST", "/resources/notes", { text: secretly("a field of the record") });
  expect(note.status).to.equal(201);
  const failed = await until(
    async () => {
      const list = await request("GET", "/webhook-deliveries?status=failed");
      return (list.json as { readonly data: readonly { readonly id: number }[] }).data[0];
    },
    { what: "a failed delivery" },
  );
  await request("POST", `/webhook-deliveries/${failed.id}/retry`);

  // Errors of clients.
  await request("GET", "/whoami", undefined, { Authorization: secretly("a wrong scheme", "Basic ") });
  await request("GET", "/whoami", undefined, { Authorization: secretly("a wrong token", "Bearer svc_") });
  await request("POST", "/resources/notes", `{"text": ${secretly("broken JSON")}`);
  await request("POST", "/resources/notes", `{"text": "a\n${secretly("JSON with a raw line break")}"}`);
  await request("POST", "/resources/notes", secretly("a form", "text="), { "Content-Type": "text/plain" });
  await request("POST", "/resources/notes", { text: secretly("a body that is too large").repeat(100) });
  await request("POST", "/resources/notes", { text: [secretly("a value of the wrong type")] });
  await request("POST", "/resources/notes", { text: `${secretly("a value with a zero byte")}\u0000` });
  await request("POST", "/webhooks", {
    url: `http://ada:${secretly("a password in a URL")}@127.0.0.1/`,
    resource: secretly("an unknown resource"),
    events: [secretly("an unknown trigger")],
  });
  await request("GET", `/resources/notes?search=${secretly("a search")}&page=${secretly("a page")}`);
  await request("GET", "/nowhere");
  await request("PATCH", "/resources/notes");
  await raw(
    port,
    `GET http://ada:${secretly("a password in the target")}@a:b/?${secretly("a query in the target")} HTTP/1.1`,
  );
  await raw(
    port,
    `GET /svc-api/whoami?${secretly("the query of a broken request")} HTTP/1.1`,
    `Broken ${secretly("a broken header")}`,
  );

  // Statements that the database refuses.
  await runSql(troubleSql);
  const once = secretly("a value that must be unique");
  await request("POST", "/resources/notes", { text: once });
  const statuses = [
    await request("POST", "/resources/notes", { text: once }),
    await request("POST", "/resources/notes", { text: secretly("a value that is no number", "number ") }),
    await request("POST", "/resources/notes", { text: secretly("the detail of an error", "refused ") }),
    await request("POST", "/resources/notes", { text: secretly("a statement of a trigger", "broken ") }),
  ].map(({ status }) => status);
  expect(statuses).to.deep.equal([422, 422, 422, 500]);

  // Answers to other users.
  for (const path of [
    "/webhooks",
    "/webhook-deliveries",
    "/resources/notes",
    `/webhook-deliveries/${failed.id}`,
  ]) {
    const answer = await call(port, `/svc-api${path}`, { headers: { Authorization: `Bearer ${eve}` } });
    canaries.keep(`Eve's answer to ${path}`, answer.text);
  }
  return { request };
}

type Request = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Readonly<Record<string, string>>,
) => ReturnType<typeof call>;

/**
 * Sends a raw request of these lines. Returns the answer when the server has closed the connection.
 */
async function raw(port: number, ...lines: readonly string[]): Promise<void> {
  const socket = connect({ port, host: "127.0.0.1" });
  socket.on("error", () => undefined);
  socket.end(`${lines.join("\r\n")}\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
  await readAll(socket).catch(() => undefined);
}

/** Keeps all answers of the metrics port. */
async function keepHealth(canaries: Canaries, program: Program): Promise<{ readonly metrics: string }> {
  const read = async (path: string): Promise<string> => (await fetch(program.healthOrigin + path)).text();
  canaries.keep("/readyz?verbose", await read("/readyz?verbose"));
  const metrics = await read("/metrics");
  canaries.keep("/metrics", metrics);
  return { metrics };
}

async function notReady(program: Program): Promise<boolean> {
  return (await fetch(`${program.healthOrigin}/readyz`)).status === 503;
}

async function withClient(url: string, act: (client: Client) => Promise<unknown>): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await act(client);
  } finally {
    await client.end();
  }
}

describe("secrets in what the service says", function () {
  this.timeout(120_000);
  let canaries: Canaries;
  let configuration: Configuration;
  let receiver: TestReceiver;
  const programs: Program[] = [];

  beforeEach(async () => {
    canaries = createCanaries();
    configuration = writeConfiguration({
      service,
      resources: { "notes.yaml": `${notesYaml}searchableColumns: [text]\n` },
    });
    receiver = await startReceiver();
  });

  afterEach(async () => {
    for (const program of programs.splice(0)) await program.dispose();
    await receiver.close();
    configuration.dispose();
  });

  async function start(
    name: Parameters<typeof createProgram>[0]["name"],
    env: Readonly<Record<string, string>>,
  ) {
    const program = await createProgram({ name, env: { ...configuration.env, ...env } });
    programs.push(program);
    return program;
  }

  async function onEmbedded<T>(act: (url: string) => Promise<T>): Promise<T> {
    const { log } = createMemoryLog();
    const embedded = await openEmbedded({ dataDir: configuration.env["SVC_DATA_DIR"] ?? "", log });
    try {
      return await act(embedded.url);
    } finally {
      await embedded.close();
    }
  }

  it("are nowhere on the embedded database", async () => {
    const secretKey = randomBytes(32).toString("base64");
    canaries.adopt("SVC_SECRET_KEY", secretKey);
    await fillDataDir(String(configuration.env["SVC_DATA_DIR"]));
    const all = await start("all", { SVC_SECRET_KEY: secretKey });
    await all.start();
    await journey({
      canaries,
      api: all,
      adminEnv: configuration.env,
      receiver,
      runSql: (text) => onEmbedded((url) => withClient(url, (client) => client.query(text))),
    });
    await keepHealth(canaries, all);
    await onEmbedded((url) => keepAudit({ canaries, url, env: configuration.env }));
    await all.end("SIGTERM");
    // The first user's token is printed once, on purpose, when no user has one yet.
    const output = all.written().replace(/^.*Bearer svc_.*$/m, "");
    canaries.keep("the output", output);

    expect(output).to.include('"event":"delivery.attempt"').and.include('"errorCode":"server.error"');
    expect(canaries.leaks()).to.deep.equal([]);
  });

  it("are nowhere on PostgreSQL and RabbitMQ, also while these are away", async () => {
    const [postgres, rabbitMq] = await Promise.all([startPrivatePostgres(), startPrivateRabbitMq()]);
    try {
      await onServers(postgres, rabbitMq);
    } finally {
      for (const program of programs.splice(0)) await program.dispose();
      await Promise.all([postgres.dispose(), rabbitMq.dispose()]);
    }
  });

  async function onServers(postgres: PrivateServer, rabbitMq: PrivateServer): Promise<void> {
    const secretKey = randomBytes(32).toString("base64");
    const env = { DATABASE_URL: postgres.url, AMQP_URL: rabbitMq.url, SVC_SECRET_KEY: secretKey };
    canaries.adopt("DATABASE_URL", new URL(postgres.url).password);
    canaries.adopt("AMQP_URL", new URL(rabbitMq.url).password);
    canaries.adopt("SVC_SECRET_KEY", secretKey);
    const adminEnv = { ...configuration.env, ...env };
    await admin(["migrate"], adminEnv);
    const api = await start("api", env);
    const dispatcher = await start("dispatcher", filesOf(env, configuration));
    await Promise.all([api.start(), dispatcher.start()]);
    const { request } = await journey({
      canaries,
      api,
      adminEnv,
      receiver,
      runSql: (text) => withClient(postgres.url, (client) => client.query(text)),
    });

    const stranger = await connectAmqp(rabbitMq.url);
    const channel = await stranger.createConfirmChannel();
    for (const queue of ["svc.fanout", "svc.deliveries.first"])
      channel.sendToQueue(queue, Buffer.from(canaries.make(`a stranger's message in ${queue}`)));
    await channel.waitForConfirms();
    await stranger.close();

    await postgres.kill();
    await until(() => notReady(api), { what: "an API without its database" });
    expect((await request("GET", "/resources/notes")).status).to.equal(503);
    for (const program of [api, dispatcher]) {
      const { metrics } = await keepHealth(canaries, program);
      expect(metrics)
        .to.include('svc_scrape_source_success{source="database"} 0')
        .and.include("svc_build_info{");
      expect(metrics).not.to.include("svc_outbox_events{");
    }
    await postgres.start();
    await rabbitMq.kill();
    await until(() => notReady(dispatcher), { what: "a dispatcher without its broker" });
    for (const program of [api, dispatcher]) await keepHealth(canaries, program);
    await rabbitMq.start();
    await Promise.all([api.untilReady(), dispatcher.untilReady()]);
    await request("POST", "/resources/notes", { text: canaries.make("a record of later") });

    await admin(["secret-key", "rotate"], adminEnv);
    await keepAudit({ canaries, url: postgres.url, env: adminEnv });

    // A refused configuration.
    writeFileSync(
      join(configuration.env["SVC_CONFIG_DIR"] ?? "", "service.yaml"),
      `secretKey: ${canaries.make("a faulty setting in the file")}\nhttp:\n  port: ${canaries.make("a faulty port")}\n`,
    );
    const refused = api.untilLogged("the configuration was not reloaded; the previous one stays in use");
    api.signal("SIGHUP");
    await refused;
    await keepHealth(canaries, api);
    const isRecorded = async (): Promise<boolean> =>
      (await keepAudit({ canaries, url: postgres.url })).includes("configuration.refused");
    await until(isRecorded, { what: "the refusal's row" });
    for (const program of [api, dispatcher]) {
      await program.end("SIGTERM");
      canaries.keep("the output", program.written());
    }

    expect(api.written()).to.include('"errorCode":"server.unavailable"').and.include("lost the connection");
    expect(dispatcher.written()).to.include('"event":"delivery.attempt"').and.include('"statusCode":500');
    expect(canaries.leaks()).to.deep.equal([]);
  }

  it("are not in the output of a start that fails", async () => {
    const good = { AMQP_URL: "amqp://127.0.0.1:1", SVC_SECRET_KEY: randomBytes(32).toString("base64") };
    const key = canaries.make("SVC_SECRET_KEY");
    for (const env of [
      { ...good, DATABASE_URL: canaries.make("DATABASE_URL") },
      { ...good, DATABASE_URL: `postgresql://svc:${canaries.make("DATABASE_URL")}@127.0.0.1:port/svc` },
      { ...good, DATABASE_URL: "postgresql://127.0.0.1:1/svc", AMQP_URL: canaries.make("AMQP_URL") },
      { ...good, DATABASE_URL: "postgresql://127.0.0.1:1/svc", SVC_SECRET_KEY: key },
      { SVC_PORT: canaries.make("SVC_PORT"), SVC_PUBLIC_URL: canaries.make("SVC_PUBLIC_URL") },
      filesOf({ DATABASE_URL: canaries.make("DATABASE_URL_FILE"), SVC_SECRET_KEY: key }, configuration),
    ]) {
      const program = await start("api", env);
      program.launch();
      await until(() => program.exitCode() !== undefined, { what: "the end of the program" });

      expect(program.written()).to.include("svc: ");
      canaries.keep(`the output with ${Object.keys(env).join(", ")}`, program.written());
    }

    expect(canaries.leaks()).to.deep.equal([]);
  });
});
