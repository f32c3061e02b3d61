import { expect } from "chai";
import { loadConfig } from "../../src/config/load.ts";
import { createReadiness, startHealth } from "../../src/app/readiness.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";

async function told(check: () => Promise<string | void>): Promise<string> {
  return check().then(
    (remark) => `ok ${remark ?? ""}`,
    (error: unknown) => String(error),
  );
}

describe("createReadiness", () => {
  it("is not ready from the first moment on, and shows the reason", async () => {
    const { checks } = createReadiness();

    const answers = await Promise.all(
      Object.entries(checks).map(async ([name, check]) => `${name}: ${await told(check)}`),
    );

    expect(answers).to.deep.equal([
      "configuration: Error: the program is starting",
      "database: Error: waiting for it",
      "migrations: Error: waiting for the database",
      "broker: Error: waiting for it",
      "shutdown: ok ",
    ]);
  });

  it("uses the last report about a part", async () => {
    const readiness = createReadiness();

    readiness.waitsFor("database", "refused");
    expect(await told(readiness.checks.database)).to.equal("Error: waiting for it: refused");

    readiness.watch("database", () => Promise.resolve("up"));
    expect(await told(readiness.checks.database)).to.equal("ok up");
  });
});

describe("startHealth", () => {
  it("listens on the host of the metrics, not on that of the API", async () => {
    // No machine has the first address.
    const env = { SVC_HOST: "192.0.2.1", SVC_METRICS_HOST: "127.0.0.1", SVC_METRICS_PORT: "0" };
    const config = loadConfig({ env, cwd: "/", program: "all" });
    const health = await startHealth(config, createMetrics(), createReadiness());
    try {
      expect((await fetch(`http://127.0.0.1:${health.port}/livez`)).status).to.equal(200);
    } finally {
      await health.close();
    }
  });
});
