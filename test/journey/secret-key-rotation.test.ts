import { createHmac, randomBytes } from "node:crypto";
import { expect } from "chai";
import { runAdmin } from "../../src/cli/program.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { createMemoryTerminal } from "../support/memory-terminal.ts";
import { createNote, notesYaml, subscribe } from "../support/notes.ts";
import { startReceiver, type ReceivedRequest, type TestReceiver } from "../support/receiver.ts";
import { request, startService, type TestService, type TestUser } from "../support/service.ts";

/** Returns the number of requests to `path` with the signature by `secret`. */
function verified(requests: readonly ReceivedRequest[], path: string, secret: string): number {
  return requests.filter(({ path: at, rawBody, headers }) => {
    const expected = `sha256=${createHmac("sha256", secret).update(rawBody).digest("hex")}`;
    return at === path && headers["x-service-signature"] === expected;
  }).length;
}

describe("a change of SVC_SECRET_KEY", function () {
  this.timeout(60_000);
  const [oldKey, newKey] = [randomBytes(32).toString("base64"), randomBytes(32).toString("base64")];
  let database: TestDatabase;
  let receiver: TestReceiver;
  let service: TestService | undefined;
  let user: TestUser;
  let secret: string;

  before(async () => {
    [database, receiver] = await Promise.all([createTestDatabase(), startReceiver()]);
  });

  after(async () => {
    await service?.stop();
    await receiver.close();
    await database.drop();
  });

  async function start(env: Readonly<Record<string, string>>): Promise<TestService> {
    return startService({
      mode: "servers",
      resources: { "notes.yaml": notesYaml },
      env: { DATABASE_URL: database.url, ...env },
    });
  }

  /** Restarts the service with other keys; the user's token stays valid. */
  async function restart(env: Readonly<Record<string, string>>): Promise<void> {
    await service?.stop();
    service = undefined;
    service = await start(env);
    const { baseUrl } = service;
    user = {
      ...user,
      request: (method, path, body) => request({ url: baseUrl + path, method, token: user.token, body }),
    };
  }

  it("is refused at the start while the old key is not given", async () => {
    service = await start({ SVC_SECRET_KEY: oldKey });
    user = await service.createUser();
    ({ secret } = await subscribe(user, receiver, { url: `${receiver.url}/old` }));
    await service.stop();
    service = undefined;

    const error = await start({ SVC_SECRET_KEY: newKey }).catch((thrown: unknown) => thrown);

    expect(String(error)).to.contain("are encrypted with a key that was not given");
    expect(String(error)).to.match(/1 of 1: key id [0-9a-f]{8}, subscriptions 1\n/);
  });

  it("continues with both keys, while the secrets are encrypted again beside the deliveries", async () => {
    await restart({ SVC_SECRET_KEY: newKey, SVC_PREVIOUS_SECRET_KEYS: oldKey });
    const { secret: newSecret } = await subscribe(user, receiver, { url: `${receiver.url}/new` });
    const env = { DATABASE_URL: database.url, SVC_SECRET_KEY: newKey, SVC_PREVIOUS_SECRET_KEYS: oldKey };
    const terminal = createMemoryTerminal();

    const writes = Array.from({ length: 20 }, () => createNote(user));
    const args = ["secret-key", "rotate", "--json"];
    const status = await runAdmin({ args, env, cwd: process.cwd(), terminal });
    await Promise.all(writes);
    const requests = await receiver.waitFor(40);

    expect(status).to.equal(0);
    expect(JSON.parse(terminal.read().stdout)).to.deep.equal({ reencrypted: 1, current: 1, unreadable: [] });
    expect(verified(requests, "/old", secret)).to.equal(20);
    expect(verified(requests, "/new", newSecret)).to.equal(20);
  });

  it("is complete then: the new key alone is enough", async () => {
    await restart({ SVC_SECRET_KEY: newKey });
    await createNote(user);

    const requests = await receiver.waitFor(42);
    expect(verified(requests, "/old", secret)).to.equal(21);
  });
});
