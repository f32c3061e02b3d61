import { expect } from "chai";
import { openConfiguration } from "../../src/app/configuration.ts";
import { notesYaml } from "../support/notes.ts";
import { openRaw } from "../support/raw.ts";
import { startService, type TestService } from "../support/service.ts";
import { until } from "../support/wait.ts";

describe("createApi", () => {
  let service: TestService;

  before(async () => {
    service = await startService({
      mode: "servers",
      resources: { "notes.yaml": notesYaml },
      http: { memoryBudgetBytes: 24 * 1024 ** 2 },
    });
  });
  after(() => service.stop());

  it("counts the memory of requests that began before a reload", async () => {
    const { api, infrastructure } = service;
    const ada = await service.createUser();
    const slow = await openRaw(api.port);
    slow.send(
      `POST /svc-api/resources/notes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${ada.token}\r\n` +
        "Content-Type: application/json\r\nContent-Length: 990000\r\n\r\n{",
    );
    const body = `{"text":"a"}${" ".repeat(900_000)}`;
    const post = async (): Promise<number> => (await ada.request("POST", "/resources/notes", body)).status;
    await until(async () => (await post()) === 503, { what: "the slow body to be read" });

    api.prepare(await openConfiguration({ checked: api.configuration(), infrastructure }))();

    expect(await post()).to.equal(503);
    slow.socket.destroy();
    await until(async () => (await post()) === 201, { what: "the memory of the slow one" });
  });
});
