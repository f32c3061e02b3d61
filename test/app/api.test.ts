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
      http: { memoryBudgetBytes: 24 * 1024 ** 2, concurrency: 3, concurrencyPerUser: 2 },
    });
  });
  after(() => service.stop());

  async function reload(): Promise<void> {
    const { api, infrastructure } = service;
    api.prepare(await openConfiguration(api.configuration(), infrastructure))();
  }

  it("counts the requests of a user that began before a reload", async () => {
    const ada = await service.createUser();
    const whoami = async (): Promise<number> => (await ada.request("GET", "/whoami")).status;
    const slow = [await openRaw(service.api.port), await openRaw(service.api.port)];
    for (const connection of slow)
      connection.send(
        `POST /svc-api/resources/notes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${ada.token}\r\n` +
          "Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
      );
    await until(async () => (await whoami()) === 503, { what: "both to be open" });

    await reload();

    expect(await whoami()).to.equal(503);
    for (const { socket } of slow) socket.destroy();
    await until(async () => (await whoami()) === 200, { what: "the places of those that left" });
  });

  it("counts the requests at work that began before a reload", async () => {
    const users = [await service.createUser(), await service.createUser(), await service.createUser()];
    const other = await service.createUser();
    const whoami = async (): Promise<number> => (await other.request("GET", "/whoami")).status;
    const client = await service.infrastructure.database.pool.connect();
    await client.query("BEGIN; LOCK TABLE notes IN ACCESS EXCLUSIVE MODE");
    const posts = users.map((user) => user.request("POST", "/resources/notes", { text: "a" }));
    const waits = "SELECT FROM pg_locks WHERE relation = 'notes'::regclass AND NOT granted";
    await until(async () => (await client.query(waits)).rowCount === 3, { what: "all to be at work" });
    const before = await whoami();

    await reload();
    const after = await whoami();
    await client.query("ROLLBACK");
    client.release();

    expect([before, after]).to.deep.equal([503, 503]);
    expect((await Promise.all(posts)).map(({ status }) => status)).to.deep.equal([201, 201, 201]);
  });

  it("counts the memory of requests that began before a reload", async () => {
    const { api } = service;
    const ada = await service.createUser();
    const slow = await openRaw(api.port);
    slow.send(
      `POST /svc-api/resources/notes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${ada.token}\r\n` +
        "Content-Type: application/json\r\nContent-Length: 990000\r\n\r\n{",
    );
    const body = `{"text":"a"}${" ".repeat(900_000)}`;
    const post = async (): Promise<number> => (await ada.request("POST", "/resources/notes", body)).status;
    await until(async () => (await post()) === 503, { what: "the slow body to be read" });

    await reload();

    expect(await post()).to.equal(503);
    slow.socket.destroy();
    await until(async () => (await post()) === 201, { what: "the memory of the slow one" });
  });
});
