import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { startCollector, type CollectedSpan, type TestCollector } from "../support/collector.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { notesYaml } from "../support/notes.ts";
import {
  admin,
  createProgram,
  type Configuration,
  type Program,
  writeConfiguration,
} from "../support/program.ts";
import { purgeQueues } from "../support/queues.ts";
import { startReceiver, type TestReceiver } from "../support/receiver.ts";
import { request } from "../support/service.ts";
import { amqpUrl } from "../support/services.ts";

const service = `
webhooks:
  allowedNetworks: [127.0.0.0/8]
`;

describe("tracing of svc api and svc dispatcher", function () {
  this.timeout(60_000);
  let collector: TestCollector;
  let receiver: TestReceiver;
  let database: TestDatabase;
  let configuration: Configuration;
  let api: Program;
  let dispatcher: Program;
  let token: string;

  before(async () => {
    [collector, receiver, database] = await Promise.all([
      startCollector(),
      startReceiver(),
      createTestDatabase(),
    ]);
    configuration = writeConfiguration({ service, resources: { "notes.yaml": notesYaml } });
    const env = {
      ...configuration.env,
      DATABASE_URL: database.url,
      AMQP_URL: await amqpUrl(),
      SVC_SECRET_KEY: randomBytes(32).toString("base64"),
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      // Spans that arrive were sent at the end.
      OTEL_BSP_SCHEDULE_DELAY: "60000",
    };
    await purgeQueues(env.AMQP_URL);
    await admin(["migrate"], env);
    token = String(
      (await admin(["create-user", "--name", "Ada", "--email", "ada@example.com"], env))["token"],
    );
    api = await createProgram({ name: "api", env });
    dispatcher = await createProgram({ name: "dispatcher", env });
    await Promise.all([api.start(), dispatcher.start()]);
    await call("/webhooks", { url: receiver.url, resource: "notes", events: ["on_create"] });
  });

  after(async () => {
    await Promise.all([api?.dispose(), dispatcher?.dispose()]);
    configuration?.dispose();
    await Promise.all([collector?.close(), receiver?.close()]);
    await database?.drop();
  });

  async function call(
    path: string,
    body: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const { status } = await request({
      url: `${api.origin}/svc-api${path}`,
      method: "POST",
      token,
      body,
      headers,
    });
    expect(status).to.equal(201);
  }

  it("leads from one process to the other, and is sent when they stop", async () => {
    const [traceId, spanId] = [randomBytes(16).toString("hex"), randomBytes(8).toString("hex")];

    await call("/resources/notes", { text: "hello" }, { traceparent: `00-${traceId}-${spanId}-01` });
    const [received] = await receiver.waitFor(1);
    const endings = await Promise.all([api, dispatcher].map((program) => program.end("SIGTERM", 10_000)));

    expect(endings.map(({ code }) => code)).to.deep.equal([0, 0]);
    const of = (kind: CollectedSpan["kind"]): CollectedSpan | undefined =>
      collector.spans.find((span) => span.traceId === traceId && span.kind === kind);
    const chain = [of("server"), of("producer"), of("consumer"), of("client")];
    expect(chain.map((span) => span?.resource["service.name"])).to.deep.equal([
      "svc-api",
      "svc-api",
      "svc-dispatcher",
      "svc-dispatcher",
    ]);
    expect(chain.map((span) => span?.parentSpanId)).to.deep.equal([
      spanId,
      ...chain.slice(0, 3).map((span) => span?.spanId),
    ]);
    expect(received?.headers["traceparent"]).to.equal(`00-${traceId}-${chain[3]?.spanId}-01`);
  });

  it("needs no work and does not delay a stop when the collector is away", async () => {
    await collector.close();
    await Promise.all([api.start(), dispatcher.start()]);

    await call("/resources/notes", { text: "hello again" });
    await receiver.waitFor(2);
    const endings = await Promise.all([api, dispatcher].map((program) => program.end("SIGTERM", 10_000)));

    expect(endings.map(({ code }) => code)).to.deep.equal([0, 0]);
  });
});
