import { expect } from "chai";
import { Client } from "pg";
import { openConfiguration } from "../../src/app/configuration.ts";
import { notesYaml } from "../support/notes.ts";
import { startService, type TestService } from "../support/service.ts";

describe("addEvents", () => {
  let service: TestService;
  let writer: Client;

  before(async () => {
    service = await startService({ mode: "servers", resources: { "notes.yaml": notesYaml } });
    writer = new Client({ connectionString: service.infrastructure.databaseUrl });
    await writer.connect();
  });
  after(async () => {
    await writer.end();
    await service.stop();
  });

  it("shows earlier events after a reload, while a transaction is open for long", async () => {
    const ada = await service.createUser();
    await ada.request("POST", "/resources/notes", { text: "a" });
    const list = async (): Promise<unknown> => (await ada.request("GET", "/events")).body.data.length;
    expect(await list()).to.equal(1);
    await writer.query("BEGIN; SELECT pg_current_xact_id()");

    const { api, infrastructure } = service;
    api.prepare(await openConfiguration(api.configuration(), infrastructure))();

    expect(await list()).to.equal(1);
  });
});
