import { expect } from "chai";
import { createOwnDatabase, type OwnDatabase } from "../support/private-servers.ts";
import { admin, createProgram, type Program } from "../support/program.ts";
import { startProxy, through } from "../support/proxy.ts";
import { request } from "../support/service.ts";
import { until } from "../support/wait.ts";

/** The chart's readiness probe of the API depends on this. */
describe("the API while RabbitMQ is away", function () {
  this.timeout(90_000);
  let own: OwnDatabase;
  let api: Program;
  let token: string;

  const readiness = async (query = ""): Promise<number> =>
    (await fetch(`${api.healthOrigin}/readyz${query}`)).status;

  before(async () => {
    own = await createOwnDatabase({ service: "" });
    const amqpUrl = own.env["AMQP_URL"] ?? "";
    const proxy = await startProxy(amqpUrl);
    const env = { ...own.env, AMQP_URL: through(proxy, amqpUrl) };
    await admin(["migrate"], env);
    const user = await admin(["create-user", "--name", "Ada", "--email", "ada@example.com"], env);
    token = String(user["token"]);
    api = await createProgram({ name: "api", env });
    await api.start();
    await proxy.close();
    await until(async () => (await readiness()) === 503, {
      what: "the API missing RabbitMQ",
      timeoutMs: 20_000,
    });
  });

  after(async () => {
    await api?.dispose();
    await own?.dispose();
  });

  it("is ready but for the broker", async () => {
    expect(await readiness("?exclude=broker")).to.equal(200);
  });

  it("accepts records, whose events wait", async () => {
    const { status } = await request({
      url: `${api.origin}/svc-api/resources/notes`,
      method: "POST",
      token,
      body: { text: "while it is away" },
    });

    expect(status).to.equal(201);
  });
});
