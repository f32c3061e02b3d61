import { once } from "node:events";
import { Agent, request as send, type ClientRequest, type IncomingMessage } from "node:http";
import { createConnection, type Socket } from "node:net";
import { expect } from "chai";
import { Client } from "pg";
import { createOwnDatabase, type OwnDatabase } from "../support/private-servers.ts";
import { admin, createProgram, type Program } from "../support/program.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { request } from "../support/service.ts";
import { until } from "../support/wait.ts";

const service = `
http: { drainDelay: 2 }
webhooks:
  timeout: 3
  maxAttempts: 5
  backoff: [0.1]
  allowedNetworks: [127.0.0.0/8]
`;

const stopping = "stopping; a second signal ends at once";

/** A slower program is killed, and has no exit status. A stalled request delays the end by 11 s. */
const endLimitMs = 10_000;

describe("SIGTERM", function () {
  this.timeout(90_000);
  let own: OwnDatabase;
  let receiver: TestReceiver;
  let api: Program;
  let dispatcher: Program;
  let token: string;

  before(async () => {
    own = await createOwnDatabase({ service });
    receiver = await startReceiver();
    const { env } = own;
    await admin(["migrate"], env);
    const args = ["create-user", "--name", "Ada", "--email", "ada@example.com", "--admin"];
    token = String((await admin(args, env))["token"]);
    api = await createProgram({ name: "api", env });
    dispatcher = await createProgram({ name: "dispatcher", env });
    await api.start();
    const { status } = await request({
      url: `${api.origin}/svc-api/webhooks`,
      method: "POST",
      token,
      body: { url: receiver.url, resource: "notes", events: ["on_create"] },
    });
    expect(status).to.equal(201);
  });

  beforeEach(async () => {
    if (!api.isRunning()) await api.start();
    if (!dispatcher.isRunning()) await dispatcher.start();
  });

  after(async () => {
    await Promise.all([api?.dispose(), dispatcher?.dispose()]);
    await receiver?.close();
    await own?.dispose();
  });

  async function createNote(): Promise<void> {
    const url = `${api.origin}/svc-api/resources/notes`;
    expect((await request({ url, method: "POST", token, body: { text: "on_create x 1" } })).status).to.equal(
      201,
    );
  }

  it("follows a start of which every line on stdout is JSON", async () => {
    const lines = api.written().trim().split("\n");

    expect(lines.filter((line) => !line.startsWith('{"level":'))).to.deep.equal([]);
    expect(lines.join()).to.include('"msg":"started"');
  });

  it("makes the API unready at once, serves for the drain delay, and asks clients to leave", async () => {
    const agent = new Agent({ keepAlive: true });
    const first = await get(api, { token, agent });
    expect(first.headers.connection).to.equal("keep-alive");
    const told = api.untilLogged(stopping);

    const ended = api.end("SIGTERM", endLimitMs);

    await told;
    const readyz = await fetch(`${api.healthOrigin}/readyz?verbose`);
    expect(readyz.status).to.equal(503);
    expect(await readyz.text()).to.match(/\[-\] shutdown failed: draining since \S+Z, after SIGTERM\n/);
    expect((await fetch(`${api.healthOrigin}/livez`)).status).to.equal(200);
    const second = await get(api, { token, agent });
    expect([second.statusCode, second.headers.connection]).to.deep.equal([200, "close"]);
    const { code, durationMs } = await ended;
    expect(code).to.equal(0);
    expect(durationMs).to.be.above(1_900);
    agent.destroy();
  });

  it("waits for an attempt until its time limit, and records its outcome", async () => {
    receiver.answer = () => undefined;
    const seen = receiver.received.length;
    await createNote();
    await receiver.waitFor(seen + 1);

    expect((await dispatcher.end("SIGTERM", endLimitMs)).code).to.equal(0);

    const url = `${api.origin}/svc-api/webhook-deliveries?status=retrying`;
    const { body } = await request({ url, method: "GET", token });
    expect(body.data[0]).to.include({ attempt: 1 });
    receiver.answer = {};
  });

  it("does not wait for half a request on the metrics port", async () => {
    const half = createConnection(Number(new URL(dispatcher.healthOrigin).port), "127.0.0.1");
    half.on("error", () => undefined);
    await once(half, "connect");
    half.write("GET /livez HTTP/1.1\r\n");
    // After it, so that it has been read.
    await fetch(`${dispatcher.healthOrigin}/livez`);

    expect((await dispatcher.end("SIGTERM", endLimitMs)).code).to.equal(0);
    half.destroy();
  });

  for (const { what, stdout, code } of [
    // Ends with the program, whose id is that of bash.
    { what: "no program reads the log", stdout: ">(exec tail --pid=$$ -f /dev/null)", code: null },
    { what: "the disk of the log is full", stdout: "/dev/full", code: null },
    { what: "the program that reads the log has ended", stdout: ">(exit)", code: 0 },
  ])
    it(`serves and ends within its limit when ${what}`, async () => {
      const silent = await createProgram({
        name: "api",
        env: own.env,
        commandOf: (args) => ({
          command: "bash",
          args: ["-c", `exec "$0" "$@" > ${stdout}`, process.execPath, ...args],
        }),
      });
      await silent.start();
      const agent = new Agent({ keepAlive: true });
      // Their lines are more than a pipe holds, 64 KB.
      for (let count = 0; count < 250; count += 1) await get(silent, { token, agent });
      agent.destroy();

      const ended = await silent.end("SIGTERM", 3 * endLimitMs);

      await silent.dispose();
      expect(ended.durationMs).to.be.below(endLimitMs);
      expect(ended.code).to.equal(code);
    });

  it("ends at once on a second one", async () => {
    const stalled = await stall(api, token);
    const told = api.untilLogged(stopping);
    api.signal("SIGTERM");
    await told;

    expect((await api.end("SIGTERM", endLimitMs)).code).to.equal(1);
    stalled.destroy();
  });

  it("ends within its limit when a request does not end and the database does not answer, and logs what it cut", async () => {
    const lock = new Client({ connectionString: own.url });
    await lock.connect();
    const stalled = await stall(api, token);
    let cut: Promise<readonly Awaited<ReturnType<Program["untilLogged"]>>[]>;
    let endings: Awaited<ReturnType<Program["end"]>>[];
    try {
      await lock.query("BEGIN");
      await lock.query("LOCK TABLE svc.events, svc.deliveries IN ACCESS EXCLUSIVE MODE");
      await untilBothWait(lock);
      cut = Promise.all([
        api.untilLogged("requests did not end in time; closing their connections"),
        dispatcher.untilLogged("work in flight did not end in time; ending the process"),
        once(stalled, "close").then(() => ({})),
      ]);
      endings = await Promise.all([api, dispatcher].map((program) => program.end("SIGTERM", 30_000)));
    } finally {
      await lock.end();
    }
    // A read of the relay has two seconds, and its end delays no client.
    expect(endings.map(({ code }) => code)).to.deep.equal([0, 1]);
    // The drain delay and the limit of requests.
    expect(endings[0]?.durationMs).to.be.above(11_000);
    const [ofApi, ofDispatcher] = await cut;
    expect(ofApi).to.include({ requests: 1 });
    const unfinished = ofDispatcher?.["unfinished"] as readonly string[];
    expect(unfinished).to.have.length.above(0);
    expect(["fan-out", "held", "retention", "subscription-health", "sweep"]).to.include.members([
      ...unfinished,
    ]);
  });
});

/**
 * Waits until both block: the relay for two seconds at a time, and the dispatcher from its next
 * read of the queue on.
 */
async function untilBothWait(observer: Client): Promise<void> {
  const waiting = new Set<string>();
  const areBoth = async (): Promise<boolean> => {
    // Otherwise a transaction never sees connections that are newer than its first look.
    await observer.query("SELECT pg_stat_clear_snapshot()");
    const { rows } = await observer.query<{ readonly program: string }>(
      "SELECT DISTINCT split_part(application_name, ' ', 2) AS program FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'svc %' AND wait_event_type = 'Lock'",
    );
    for (const { program } of rows) waiting.add(program);
    return waiting.size >= 2;
  };
  await until(areBoth, { what: "the API's relay and the dispatcher to wait", timeoutMs: 30_000 });
}

/** Sends one request on a connection of the agent. */
async function get(
  { origin }: Program,
  { token, agent }: { readonly token: string; readonly agent: Agent },
): Promise<IncomingMessage> {
  const headers = { Authorization: `Bearer ${token}` };
  const asked: ClientRequest = send(`${origin}/svc-api/whoami`, { agent, headers }).end();
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  await answer.toArray();
  return answer;
}

/** Sends a request with an unfinished body, and waits until the API has begun it. */
async function stall({ origin }: Program, token: string): Promise<Socket> {
  const socket = createConnection(Number(new URL(origin).port), "127.0.0.1");
  socket.on("error", () => undefined);
  await once(socket, "connect");
  const head = [
    "POST /svc-api/resources/notes HTTP/1.1",
    "Host: x",
    `Authorization: Bearer ${token}`,
    "Content-Type: application/json",
    "Content-Length: 100",
    "Expect: 100-continue",
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n`);
  // Status 100: the request has reached the API.
  const [chunk] = (await once(socket, "data")) as [Buffer];
  await until(() => chunk.toString().startsWith("HTTP/1.1 100"), { what: "the request to be at work" });
  socket.write("{");
  return socket;
}
