import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { createOwnDatabase, type OwnDatabase } from "../support/private-servers.ts";
import { freePort } from "../support/private-process.ts";
import { admin, createProgram, type Program, type ProgramName } from "../support/program.ts";
import { startProxy, through, type Proxy } from "../support/proxy.ts";
import { until } from "../support/wait.ts";

const service = "webhooks: { allowedNetworks: [127.0.0.0/8] }\n";

describe("the start of API and dispatcher", function () {
  this.timeout(90_000);
  let own: OwnDatabase;
  let amqpUrl: string;
  const programs: Program[] = [];
  const proxies: Proxy[] = [];

  before(async () => {
    own = await createOwnDatabase({ service });
    amqpUrl = own.env["AMQP_URL"] ?? "";
  });

  afterEach(async () => {
    for (const program of programs.splice(0)) await program.dispose();
    for (const proxy of proxies.splice(0)) await proxy.close();
  });

  after(async () => {
    await own?.dispose();
  });

  async function create(
    name: ProgramName,
    overrides: Readonly<Record<string, string>> = {},
  ): Promise<Program> {
    const program = await createProgram({ name, env: { ...own.env, ...overrides } });
    programs.push(program);
    return program;
  }

  it("ends with a message that names svc-admin migrate while migrations are pending", async () => {
    const { code, output } = await failureOf(await create("api"));

    expect(code).to.equal(1);
    expect(output).to.match(
      /^svc: The database is not up to date .*:\n(?: {2}- core migration \d+_\w+\n)+ {2}- notes: not installed yet\n.*`svc-admin migrate`/m,
    );
    await admin(["migrate"], own.env);
  });

  it("ends with a message that names a pending migration by hand", async () => {
    mkdirSync(join(own.env["SVC_CONFIG_DIR"] ?? "", "migrations"));
    own.configuration.write("migrations/0001_more.sql", "CREATE TABLE more (id int PRIMARY KEY);\n");
    const { code, output } = await failureOf(await create("api"));

    expect(code).to.equal(1);
    expect(output).to.match(/^svc: The database is not up to date .*:\n {2}- migration by hand 0001_more\n/m);
    await admin(["migrate"], own.env);
  });

  it("waits for both servers in any order, says so, and is not ready meanwhile", async () => {
    const [databasePort, brokerPort] = [await freePort(), await freePort()];
    const away = {
      DATABASE_URL: through({ port: databasePort }, own.url),
      AMQP_URL: through({ port: brokerPort }, amqpUrl),
    };
    const both = [await create("api", away), await create("dispatcher", away)];
    const lines = both.map((program) =>
      Promise.all(
        ["the database does not answer yet", "waiting for RabbitMQ"].map((message) =>
          program.untilLogged(message),
        ),
      ),
    );

    for (const program of both) program.launch();

    await Promise.all(lines);
    for (const program of both) {
      expect((await fetch(`${program.healthOrigin}/livez`)).status).to.equal(200);
      expect((await fetch(`${program.healthOrigin}/readyz`)).status).to.equal(503);
      expect(await readiness(program)).to.match(
        /^503 \[-\] configuration failed: the program is starting\n\[-\] database failed: waiting for it: .*ECONNREFUSED.*\n\[-\] migrations failed: waiting for the database\n\[-\] broker failed: waiting for it: .*ECONNREFUSED.*\n\[\+\] shutdown ok\nnot ready\n$/,
      );
    }

    proxies.push(await startProxy(own.url, databasePort));
    for (const program of both) {
      const isDatabaseUp = async (): Promise<boolean> =>
        (await readiness(program)).includes("[+] database ok");
      await until(isDatabaseUp, { what: "the database to be seen" });
      const isMigrated = async (): Promise<boolean> =>
        (await readiness(program)).includes("[+] migrations ok");
      await until(isMigrated, { what: "the migrations to be seen" });
      expect(await readiness(program)).to.match(/^503 .*\n\[-\] broker failed: waiting for it: /s);
    }

    proxies.push(await startProxy(amqpUrl, brokerPort));
    await Promise.all(both.map((program) => program.untilReady()));
    expect(await readiness(both[0] as Program)).to.match(
      /^200 \[\+\] configuration ok: loaded \S+Z, hash [0-9a-f]{12}\n\[\+\] database ok\n\[\+\] migrations ok\n\[\+\] broker ok\n\[\+\] shutdown ok\nok\n$/,
    );
    for (const program of both) expect((await program.end("SIGTERM", 10_000)).code).to.equal(0);
  });

  it("stops at once on a signal while it waits", async () => {
    const nowhere = `postgresql://svc@127.0.0.1:${await freePort()}/svc`;
    const program = await create("api", { DATABASE_URL: nowhere });
    const waits = program.untilLogged("the database does not answer yet");
    program.launch();
    await waits;

    expect((await program.end("SIGTERM", 10_000)).code).to.equal(0);
  });

  it("ends with a message for a fault that waiting cannot fix", async () => {
    const cases: readonly (readonly [ProgramName, Readonly<Record<string, string>>, RegExp])[] = [
      ["api", { AMQP_URL: wrongPassword(amqpUrl) }, /^svc: RabbitMQ refuses the connection: .*ACCESS/m],
      [
        "dispatcher",
        { DATABASE_URL: own.url.replace(/\/[^/]*$/, "/nowhere") },
        /^svc: The database refuses the connection: .*"nowhere" does not exist/m,
      ],
      [
        "api",
        { SVC_LOG_LEVEL: "loud", SVC_PROT: "80" },
        /^svc: 1 fault in the settings:\n {2}SVC_LOG_LEVEL: expected one of .*\nSVC_PROT is not .* did you mean SVC_PORT\?$/m,
      ],
    ];
    for (const [name, overrides, message] of cases) {
      const { code, output } = await failureOf(await create(name, overrides));
      expect(code).to.equal(1);
      expect(output).to.match(message);
      expect(output).not.to.match(/^ {4}at /m);
    }
  });

  it("ends for a wrong password of RabbitMQ, and waits while the database is read-only", async () => {
    const url = new URL(own.url);
    url.searchParams.set("options", "-c default_transaction_read_only=on");
    const program = await create("api", {
      DATABASE_URL: url.href,
      AMQP_URL: wrongPassword(amqpUrl),
      // Another configuration than before, which the service records.
      SVC_LOG_LEVEL: "debug",
    });

    const { code, output } = await failureOf(program);

    expect(code).to.equal(1);
    expect(output).to.match(/^svc: RabbitMQ refuses the connection: /m);
  });

  for (const [what, setting] of [
    ["healthOrigin", "SVC_METRICS_PORT"],
    ["origin", "SVC_PORT"],
  ] as const) {
    it(`ends with a message when the port of ${setting} is in use`, async () => {
      const program = await create("api");
      const other = createServer().listen(Number(new URL(program[what]).port), "127.0.0.1");
      await once(other, "listening");

      const { code, output } = await failureOf(program);

      other.close();
      expect(code).to.equal(1);
      expect(output).to.include(`(${setting}): another program listens there`);
    });
  }
});

/** Runs a program that ends by itself. Returns its exit status and the end of its output. */
async function failureOf(program: Program): Promise<{ readonly code: unknown; readonly output: string }> {
  program.launch();
  await until(() => !program.isRunning(), { what: "the program to end", timeoutMs: 30_000 });
  return { code: program.exitCode(), output: program.output() };
}

async function readiness(program: Program): Promise<string> {
  const answer = await fetch(`${program.healthOrigin}/readyz?verbose`);
  return `${answer.status} ${await answer.text()}`;
}

function wrongPassword(url: string): string {
  const changed = new URL(url);
  changed.password = "wrong";
  return changed.href;
}
