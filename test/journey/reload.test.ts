import { expect } from "chai";
import {
  admin,
  createProgram,
  tryAdmin,
  type Configuration,
  type Program,
  writeConfiguration,
} from "../support/program.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { request, type Answer } from "../support/service.ts";
import { until } from "../support/wait.ts";

const service = `
webhooks:
  timeout: 2
  maxAttempts: 2
  backoff: [3600]
  jitter: 0
  sweepInterval: 0.1
`;

const things = `
name: things
model: Thing
fields:
  id: { type: Int, id: true }
  text: { type: String }
  user_id: { type: Int }
triggers: [on_create]
ownerColumn: user_id
`;

const applied = "the configuration was reloaded";
const refused = "the configuration was not reloaded; the previous one stays in use";

/** One sequence on one process: every test leaves it with an active configuration. */
describe("SIGHUP and svc-admin reload, on the embedded database and broker", function () {
  this.timeout(60_000);
  let configuration: Configuration;
  let program: Program;
  let receiver: TestReceiver;
  let token: string;

  before(async () => {
    receiver = await startReceiver();
    configuration = writeConfiguration({ service, resources: { "things.yaml": things } });
    program = await createProgram({ name: "all", env: configuration.env });
    // Requested while the database is still being created.
    program.launch();
    await until(async () => (await fetch(`${program.healthOrigin}/livez`)).ok, { what: "the health port" });
    program.signal("SIGHUP");
    await program.untilReady();
    const wanted = /^svc_configuration_reloads_total\{outcome="applied"\} 1$/m;
    await until(async () => wanted.test(await textOf("/metrics")), {
      what: "the reload that was asked for during the start",
    });
    const args = ["create-user", "--name", "Ada", "--email", "ada@example.com", "--admin"];
    token = String((await admin(args, configuration.env))["token"]);
  });

  after(async () => {
    await program?.dispose();
    await receiver?.close();
    configuration?.dispose();
  });

  function ask(method: string, path: string, body?: unknown): Promise<Answer> {
    return request({ url: `${program.origin}/svc-api${path}`, method, token, body });
  }

  /** Sends the signal, and returns the line of the log with the outcome. */
  async function hangUp(message = applied): Promise<Readonly<Record<string, unknown>>> {
    const line = program.untilLogged(message);
    program.signal("SIGHUP");
    return line;
  }

  async function textOf(path: string): Promise<string> {
    return (await fetch(program.healthOrigin + path)).text();
  }

  async function readiness(): Promise<{ readonly status: number; readonly text: string }> {
    const answer = await fetch(`${program.healthOrigin}/readyz?verbose`);
    return { status: answer.status, text: await answer.text() };
  }

  it("serves a resource that was added, on a table made for it", async () => {
    expect((await ask("GET", "/resources/books")).status).to.equal(404);
    configuration.write("resources/books.yaml", things.replace("things", "books").replace("Thing", "Book"));

    const line = await hangUp();

    expect(line).to.include({ event: "reload.applied", resources: 2 });
    expect((await ask("POST", "/resources/books", { text: "SICP" })).status).to.equal(201);
    expect((await ask("GET", "/resources/books")).body.total).to.equal(1);
  });

  it("answers and delivers by a changed transform, and refuses by a changed rule", async () => {
    const url = `${receiver.url}/transformed`;
    const subscription = await ask("POST", "/webhooks", { url, resource: "things", events: ["on_create"] });
    expect(subscription.status).to.equal(201);
    configuration.write(
      "resources/things.yaml",
      `${things}transform: { number: id, label: text }\ncreateRules: { text: "required|string|max:3" }\n`,
    );

    await hangUp();

    const { status, body } = await ask("POST", "/resources/things", { text: "abc" });
    expect([status, Object.keys(body as object)]).to.deep.equal([201, ["number", "label"]]);
    expect((await ask("POST", "/resources/things", { text: "abcd" })).status).to.equal(422);
    const [delivered] = await receiver.waitFor(1);
    expect(JSON.parse(String(delivered?.rawBody)))
      .to.have.property("data")
      .that.deep.equals(body);
    await ask("DELETE", `/webhooks/${subscription.body.id}`);
  });

  it("retries by a changed backoff", async () => {
    receiver.answer = { status: 500 };
    const url = `${receiver.url}/retried`;
    await ask("POST", "/webhooks", { url, resource: "things", events: ["on_create"] });
    configuration.write("service.yaml", service.replace("3600", "0.05"));
    await hangUp();
    const seen = receiver.received.length;

    await ask("POST", "/resources/things", { text: "new" });

    const arrived = await receiver.waitFor(seen + 2);
    expect(arrived.slice(seen).map(({ path }) => path)).to.deep.equal(["/retried", "/retried"]);
  });

  it("keeps the previous one when anything is wrong, reports all faults, and stays ready", async () => {
    const [before = ""] = (await readiness()).text.split("\n");
    configuration.write("service.yaml", "webhooks:\n  timeout: never\n");
    configuration.write(
      "resources/things.yaml",
      `${things}ownerColumm: user_id\nsearchableColumns: [texts]\n`,
    );

    const { level, faults } = await hangUp(refused);

    expect(level).to.equal("error");
    expect(faults).to.have.length(3);
    expect(String(faults)).to.match(/service\.yaml:2:12: .*seconds/);
    expect(String(faults)).to.match(/things\.yaml:10:1: ownerColumm: .*things\.yaml:11:21: /s);
    const { status, text } = await readiness();
    expect(status).to.equal(200);
    expect(text).to.match(
      /^\[\+\] configuration ok: .*; the reload at .*Z was refused, and this one stays in use: \S*service\.yaml:2:12: .* \(and 2 more in the log\)$/m,
    );
    expect(text).to.include(before);
    expect(await textOf("/metrics")).to.match(/^svc_configuration_reload_success 0$/m);
    expect((await ask("POST", "/resources/things", { text: "abc" })).status).to.equal(201);

    configuration.write("service.yaml", service);
    configuration.write("resources/things.yaml", things);
    await hangUp();
    expect((await readiness()).text).not.to.include("refused");
  });

  it("refuses as a whole a change that needs a restart", async () => {
    configuration.write("service.yaml", `${service}database: { poolSize: 3 }\n`);
    configuration.write("resources/things.yaml", `${things}transform: { id: id }\n`);

    const { faults } = await hangUp(refused);

    expect(faults).to.deep.equal([
      "database.poolSize was changed, which takes a restart; put it back, or restart the process",
    ]);
    const { body } = await ask("POST", "/resources/things", { text: "whole" });
    expect(Object.keys(body as object)).to.deep.equal(["id", "text", "user_id"]);
    configuration.write("service.yaml", service);
  });

  it("loads changed code again, and refuses code that fails", async () => {
    const withCode = `${things}module: ./things.mjs\n`;
    configuration.write("resources/things.yaml", withCode);
    for (const label of ["one", "two"]) {
      configuration.write(
        "resources/things.mjs",
        `export const transform = () => ({ label: "${label}" });\n`,
      );
      await hangUp();
      expect((await ask("POST", "/resources/things", { text: "code" })).body).to.deep.equal({ label });
    }

    configuration.write(
      "resources/things.mjs",
      `export const webhookBackoff = () => { throw new Error("no"); };\n`,
    );
    const { faults } = await hangUp(refused);

    expect(faults).to.deep.equal(["webhookBackoff of the resource things failed: no"]);
    expect((await ask("POST", "/resources/things", { text: "code" })).body).to.deep.equal({ label: "two" });
    configuration.write("resources/things.yaml", things);
  });

  it("is made by svc-admin reload, which prints the outcome", async () => {
    const { code, stdout } = await tryAdmin(["reload"], configuration.env);

    expect(code, stdout).to.equal(0);
    const rows = JSON.parse(stdout) as Readonly<Record<string, unknown>>[];
    expect(rows).to.have.length(1);
    expect(rows[0]).to.deep.include({ program: "all", outcome: "reloaded", faults: [] });
    expect((await readiness()).text).to.include(`hash ${String(rows[0]?.["configuration"])}`);
  });

  it("ends svc-admin reload with 1 and the faults that it finds itself, without asking a process", async () => {
    const [before = ""] = (await readiness()).text.split("\n");
    configuration.write("resources/things.yaml", `${things}ownerColumm: user_id\n`);

    const { code, stderr } = await tryAdmin(["reload"], configuration.env);

    configuration.write("resources/things.yaml", things);
    expect(code).to.equal(1);
    expect(stderr).to.match(/^svc-admin: 1 fault in the mapping files:\n.*things\.yaml:10:1: /);
    expect((await readiness()).text.split("\n")[0]).to.equal(before);
  });

  it("ends svc-admin reload with 1 and the faults of the process that refuses", async () => {
    configuration.write("service.yaml", `${service}database: { poolSize: 3 }\n`);

    const { code, stdout, stderr } = await tryAdmin(["reload"], configuration.env);

    configuration.write("service.yaml", service);
    expect(code).to.equal(1);
    const [row] = JSON.parse(stdout) as Readonly<Record<string, unknown>>[];
    expect(row).to.include({ outcome: "refused" });
    expect(String(row?.["faults"])).to.match(/^database\.poolSize was changed/);
    expect(stderr).to.match(
      /^svc-admin: 1 of 1 process did not reload:\n {2}all on \S+, process \d+, keeps the previous configuration:\n {4}- database\.poolSize was changed/,
    );
  });

  it("finds no process when none runs", async () => {
    expect((await program.end("SIGTERM")).code).to.equal(0);

    const { code, stderr } = await tryAdmin(["reload"], configuration.env);

    expect(code).to.equal(1);
    expect(stderr).to.equal(
      "svc-admin: No process of svc runs on this database. The files have no fault; the next start loads them.\n",
    );
  });
});
