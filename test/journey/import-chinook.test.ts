import { expect } from "chai";
import { verify } from "@octokit/webhooks-methods";
import { loadDefinitions } from "../../src/mapping/load.ts";
import { createMappingFolder } from "../mapping/mapping-folder.ts";
import { loadChinook, structureOf, triggersOf } from "../support/chinook.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { admin, mappingFiles, type AdminRun } from "../support/import.ts";
import { psql } from "../support/psql.ts";
import { startReceiver } from "../support/receiver.ts";
import { startService, type TestService, type TestUser } from "../support/service.ts";
import { walkResources } from "../support/walk.ts";

/** docs/existing-databases.md, "Five minutes from a database to its first webhook". */
describe("svc-admin import of Chinook", function () {
  this.timeout(60_000);
  let database: TestDatabase;
  let folder: ReturnType<typeof createMappingFolder>;
  let structure: readonly string[];
  let plan: AdminRun;
  let service: TestService;
  let ada: TestUser;

  const run = (...args: readonly string[]): Promise<AdminRun> =>
    admin({ url: database.url, configDir: folder.configDir }, ...args);

  before(async () => {
    database = await createTestDatabase();
    await loadChinook(database.url);
    structure = await structureOf(database.url);
    folder = createMappingFolder({});
  });
  after(async () => {
    await service?.stop();
    await database.drop();
    folder.remove();
  });

  it("writes a file for each of its tables, and leaves out none", async () => {
    const { status, stdout, stderr } = await run("import", "--json");

    expect(status, stderr).to.equal(0);
    expect(JSON.parse(stdout).leftOut).to.deep.equal([]);
    const check = JSON.parse((await run("resources", "check", "--json")).stdout);
    expect(check).to.deep.include({ faults: [], warnings: [] });
    plan = await run("migrate", "--plan", "--json");
    const titles = JSON.parse(plan.stdout).steps.map(({ title }: { title: string }) => title);
    const others = titles.filter(
      (title: string) => !/^core migration |^[a-z_]+: capture trigger on /.test(title),
    );
    expect(others).to.deep.equal([]);
  });

  it("is served whole, with only triggers added", async () => {
    service = await startService({
      mode: "servers",
      resources: await mappingFiles(folder.configDir),
      env: { DATABASE_URL: database.url },
    });
    ada = await service.createUser({ isAdmin: true });
    const definitions = await loadDefinitions(folder.configDir);

    expect(definitions.size).to.equal(11);
    expect(await structureOf(database.url)).to.deep.equal(structure);
    const captured = new Set((await triggersOf(database.url)).map((line) => line.split(" ")[0]));
    expect(captured.size).to.equal(11);
    expect((await walkResources(ada, definitions)).faults).to.deep.equal([]);
    const { body } = await ada.request(
      "GET",
      "/resources/track?include=album&filter[album_id]=1&sort=-track_id&per_page=1",
    );
    expect(body.data[0].album).to.have.property("title");
  });

  it("sends a change by psql as a webhook that verifies", async () => {
    const receiver = await startReceiver();
    try {
      const { body } = await ada.request("POST", "/webhooks", {
        url: receiver.url,
        resource: "invoice",
        events: ["on_update"],
      });
      await psql(database.url, { sql: "UPDATE invoice SET total = total + 1 WHERE invoice_id = 1" });
      const [request] = await receiver.waitFor(1);

      const text = request?.rawBody.toString() ?? "";
      expect(JSON.parse(text)).to.deep.include({ event: "on_update", resource: "invoice" });
      const signature = String(request?.headers["x-service-signature"]);
      expect(await verify(body.secret, text, signature)).to.equal(true);
    } finally {
      await receiver.close();
    }
  });
});
