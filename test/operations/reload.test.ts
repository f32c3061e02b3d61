import { expect } from "chai";
import { haveAllReloaded } from "../../src/operations/reload-all.ts";
import { fillDataDir } from "../support/embedded.ts";
import {
  admin,
  createProgram,
  writeConfiguration,
  type Configuration,
  type Program,
} from "../support/program.ts";
import { request, type Answer } from "../support/service.ts";

const things = `name: things
model: Thing
triggers: []
fields:
  id: { type: Int, id: true }
  text: { type: String }
`;

describe("haveAllReloaded", () => {
  for (const [outcomes, isTrue] of [
    [["reloaded", "stopped"], true],
    [["reloaded", "no answer"], false],
    [["reloaded", "refused"], false],
    [[], false],
  ] as const)
    it(`is ${isTrue} for ${outcomes.join(" and ") || "no process"}`, () => {
      expect(haveAllReloaded(outcomes.map((outcome) => ({ outcome })))).to.equal(isTrue);
    });
});

describe("POST /configuration/reload", function () {
  this.timeout(60_000);
  let configuration: Configuration;
  let program: Program;
  let token: string;

  before(async () => {
    configuration = writeConfiguration({ service: "", resources: { "things.yaml": things } });
    await fillDataDir(String(configuration.env["SVC_DATA_DIR"]));
    program = await createProgram({ name: "all", env: configuration.env });
    program.launch();
    await program.untilReady();
    const args = ["create-user", "--name", "Ada", "--email", "ada@example.com", "--admin"];
    token = String((await admin(args, configuration.env))["token"]);
  });
  after(async () => {
    await program?.dispose();
    configuration?.dispose();
  });

  const ask = (method: string, path: string, headers: Record<string, string> = {}): Promise<Answer> =>
    request({ url: `${program.origin}/svc-api${path}`, method, token, headers });
  const hash = async (): Promise<string> => (await ask("GET", "/configuration")).body.hash;

  it("has every process load the files, and waits for their answers", async () => {
    const before = await hash();
    configuration.write("resources/books.yaml", things.replace("things", "books").replace("Thing", "Book"));

    const key = { "Idempotency-Key": "k" };
    const { status, body } = await ask("POST", "/configuration/reload", key);

    expect(status).to.equal(200);
    const again = await ask("POST", "/configuration/reload", key);
    expect([again.body, again.headers.get("idempotent-replayed")]).to.deep.equal([body, "true"]);
    expect((await ask("POST", "/configuration/reload", { "Idempotency-Key": "" })).status).to.equal(400);
    expect(body).to.deep.include({ is_reloaded: true, faults: [] });
    expect(body.processes).to.have.length(1);
    expect(body.processes[0]).to.deep.include({
      program: "all",
      outcome: "reloaded",
      faults: [],
      configuration: await hash(),
    });
    expect(await hash()).not.to.equal(before);
    expect((await ask("GET", "/resources/books")).status).to.equal(200);
    const [entry] = (await ask("GET", "/audit?action=reload.requested")).body.data;
    expect(entry).to.deep.include({ actor_kind: "user", actor_id: 2, details: { processes: 1 } });
    const [process] = (await ask("GET", "/stats")).body.processes;
    expect(process).to.include({ program: "all", configuration: await hash() });
  });

  it("shows every fault in its file, and then asks no process", async () => {
    const before = await hash();
    configuration.write("resources/things.yaml", `${things}colour: red\n`);

    const { status, body } = await ask("POST", "/configuration/reload");

    expect(status).to.equal(200);
    expect(body).to.deep.include({ is_reloaded: false, processes: [] });
    expect(body.faults).to.have.length(1);
    const [{ file, line, column, message, excerpt }] = body.faults;
    expect({ line, column }).to.deep.equal({ line: 7, column: 1 });
    expect(file).to.match(/resources\/things\.yaml$/);
    expect(message).to.include("colour: unknown key");
    expect(excerpt.at(-2)).to.deep.equal({ line: 7, text: "colour: red" });
    expect(await hash()).to.equal(before);
    expect((await ask("GET", "/audit?action=reload.requested")).body.data).to.have.length(1);
    const [entry] = (await ask("GET", "/audit?action=configuration.refused")).body.data;
    expect(entry).to.deep.include({
      actor_kind: "user",
      actor_id: 2,
      subject_id: before,
      details: { faults: 1 },
    });
    configuration.write("resources/things.yaml", things);
  });

  it("shows the reason why a process refused files without faults of their own", async () => {
    configuration.write("service.yaml", "database: { poolSize: 4 }\n");

    const { body } = await ask("POST", "/configuration/reload");

    expect(body).to.deep.include({ is_reloaded: false, faults: [] });
    const [{ outcome, faults }] = body.processes;
    expect(outcome).to.equal("refused");
    expect(faults[0]).to.deep.include({ file: null, line: null });
    expect(faults[0].message).to.include("database.poolSize was changed, which takes a restart");
  });
});
