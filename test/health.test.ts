import { expect } from "chai";
import { createReadiness } from "../src/health.ts";

async function told(check: () => Promise<string | void>): Promise<string> {
  return check().then(
    (remark) => `ok ${remark ?? ""}`,
    (error: unknown) => String(error),
  );
}

describe("createReadiness", () => {
  it("is not ready from the first moment on, and says what is waited for", async () => {
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

  it("goes by what was said last about a part", async () => {
    const readiness = createReadiness();

    readiness.waitsFor("database", "refused");
    expect(await told(readiness.checks.database)).to.equal("Error: waiting for it: refused");

    readiness.watch("database", () => Promise.resolve("up"));
    expect(await told(readiness.checks.database)).to.equal("ok up");
  });
});
