import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { notesYaml } from "../support/ledger.ts";
import { startPrivatePostgres } from "../support/postgres.ts";
import type { PrivateServer } from "../support/private-process.ts";
import {
  admin,
  createProgram,
  type Configuration,
  type Program,
  writeConfiguration,
} from "../support/program.ts";
import { startPrivateRabbitMq } from "../support/rabbitmq.ts";
import { request } from "../support/service.ts";
import { until } from "../support/wait.ts";

/** What the chart's readiness probe of the API rests on. */
describe("the API while RabbitMQ is away", function () {
  this.timeout(90_000);
  let postgres: PrivateServer;
  let rabbitMq: PrivateServer;
  let configuration: Configuration;
  let api: Program;
  let token: string;

  const readiness = async (query = ""): Promise<number> =>
    (await fetch(`${api.healthOrigin}/readyz${query}`)).status;

  before(async () => {
    [postgres, rabbitMq] = await Promise.all([startPrivatePostgres(), startPrivateRabbitMq()]);
    configuration = writeConfiguration({ service: "", resources: { "notes.yaml": notesYaml } });
    const env = {
      ...configuration.env,
      DATABASE_URL: postgres.url,
      AMQP_URL: rabbitMq.url,
      SVC_SECRET_KEY: randomBytes(32).toString("base64"),
    };
    await admin(["migrate"], env);
    const user = await admin(["create-user", "--name", "Ada", "--email", "ada@example.com"], env);
    token = String(user["token"]);
    api = await createProgram({ name: "api", env });
    await api.start();
    await rabbitMq.dispose();
    await until(async () => (await readiness()) === 503, {
      what: "the API missing RabbitMQ",
      timeoutMs: 20_000,
    });
  });

  after(async () => {
    await api?.dispose();
    configuration?.dispose();
    await Promise.all([postgres?.dispose(), rabbitMq?.dispose()]);
  });

  it("is ready but for the broker", async () => {
    expect(await readiness("?exclude=broker")).to.equal(200);
  });

  it("takes records, whose events wait", async () => {
    const { status } = await request({
      url: `${api.origin}/svc-api/resources/notes`,
      method: "POST",
      token,
      body: { text: "while it is away" },
    });

    expect(status).to.equal(201);
  });
});
