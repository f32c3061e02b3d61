import { expect } from "chai";
import { createOwnDatabase, type OwnDatabase } from "../support/private-servers.ts";
import { admin, createProgram, type Program } from "../support/program.ts";
import { psql } from "../support/psql.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { request } from "../support/service.ts";

const service = `
webhooks:
  timeout: 5
  sweepInterval: 0.2
  allowedNetworks: [127.0.0.0/8]
`;

const gadgetsYaml = `
name: gadgets
model: Gadget
fields:
  id: { type: Int, id: true }
  text: { type: String }
triggers: [on_create]
`;

describe("a new resource, which the API knows before the dispatcher does", function () {
  this.timeout(90_000);
  let own: OwnDatabase;
  let api: Program;
  /** Keeps the older mapping files. */
  let old: Program;
  let dispatcher: Program;
  let receiver: TestReceiver;
  let token: string;

  before(async () => {
    own = await createOwnDatabase({ service });
    const { env } = own;
    await admin(["migrate"], env);
    receiver = await startReceiver();
    api = await createProgram({ name: "api", env });
    old = await createProgram({ name: "api", env });
    dispatcher = await createProgram({ name: "dispatcher", env });
    await Promise.all([api.start(), old.start(), dispatcher.start()]);
    ({ token } = (await admin(
      ["create-user", "--name", "Ada", "--email", "ada@example.com", "--admin"],
      env,
    )) as { token: string });
  });

  after(async () => {
    await receiver?.close();
    await Promise.all([api?.dispose(), old?.dispose(), dispatcher?.dispose()]);
    await own?.dispose();
  });

  async function post(path: string, body: object): Promise<void> {
    const url = `${api.origin}/svc-api/${path}`;
    expect((await request({ url, method: "POST", token, body })).status, path).to.equal(201);
  }

  it("delivers its first events once the dispatcher has loaded it too", async () => {
    await post("webhooks", { url: `${receiver.url}/all`, resource: "*", events: ["on_create"] });
    own.configuration.write("resources/gadgets.yaml", gadgetsYaml);
    await admin(["migrate"], own.env);
    await reload(api);
    const left = dispatcher.untilLogged(
      "events wait in the outbox: their resource is not in the mapping files of this process",
    );
    await post("resources/gadgets", { text: "first" });
    await left;
    await reload(dispatcher);
    const [first] = await receiver.waitFor(1, { timeoutMs: 20_000 });

    expect(JSON.parse(String(first?.rawBody))).to.deep.include({
      resource: "gadgets",
      data: { id: 1, text: "first" },
    });
  });

  it("delivers its changes by another program, beside an API with the older files", async () => {
    await psql(own.url, {
      sql: "INSERT INTO gadgets (text) SELECT 'imported' FROM generate_series(1, 6)",
    });

    const requests = await receiver.waitFor(7, { timeoutMs: 20_000 });

    expect(requests).to.have.length(7);
  });
});

async function reload(program: Program): Promise<void> {
  const reloaded = program.untilLogged("the configuration was reloaded");
  program.signal("SIGHUP");
  await reloaded;
}
