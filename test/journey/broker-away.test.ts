import { expect } from "chai";
import { startPrivateServers, type PrivateServers } from "../support/private-servers.ts";
import { admin, createProgram, type Program } from "../support/program.ts";
import { request } from "../support/service.ts";
import { until } from "../support/wait.ts";

/** The chart's readiness probe of the API depends on this. */
describe("the API while RabbitMQ is away", function () {
  this.timeout(90_000);
  let servers: PrivateServers;
  let api: Program;
  let token: string;

  const readiness = async (query = ""): Promise<number> =>
    (await fetch(`${api.healthOrigin}/readyz${query}`)).status;

  before(async () => {
    servers = await startPrivateServers({ service: "" });
    const { env } = servers;
    await admin(["migrate"], env);
    const user = await admin(["create-user", "--name", "Ada", "--email", "ada@example.com"], env);
    token = String(user["token"]);
    api = await createProgram({ name: "api", env });
    await api.start();
    await servers.rabbitMq.dispose();
    await until(async () => (await readiness()) === 503, {
      what: "the API missing RabbitMQ",
      timeoutMs: 20_000,
    });
  });

  after(async () => {
    await api?.dispose();
    await servers?.dispose();
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
