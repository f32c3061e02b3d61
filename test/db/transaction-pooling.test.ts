import { expect } from "chai";
import { waitForDatabase } from "../../src/db/client.ts";
import { refuseTransactionPooling } from "../../src/db/transaction-pooling.ts";
import { OperatorError } from "../../src/kit/errors.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { startTransactionPooler, type TransactionPooler } from "../support/transaction-pooler.ts";

describe("refuseTransactionPooling", () => {
  let created: TestDatabase;
  let pooler: TransactionPooler;

  beforeEach(async () => {
    created = await createTestDatabase();
    pooler = await startTransactionPooler(created.url);
  });

  afterEach(async () => {
    pooler.close();
    await created.drop();
  });

  it("refuses a pooler that gives the session of an idle connection to another one", async () => {
    // Every program waits like this first, and the pooler signs in to the server.
    await waitForDatabase({
      url: pooler.url,
      log: createLog({ level: "silent" }),
      signal: AbortSignal.timeout(15_000),
    });

    const failure = await refuseTransactionPooling(pooler.url).then(
      () => undefined,
      (error: unknown) => error,
    );

    expect(failure).to.be.instanceOf(OperatorError);
    expect(failure)
      .to.have.property("message")
      .that.matches(/transaction or statement mode.*pool_mode = session/);
  });

  it("accepts a server that gives each connection a session", async () => {
    await refuseTransactionPooling(created.url);
  });

  it("leaves a server that does not answer to the next statement", async () => {
    await refuseTransactionPooling("postgresql://svc@127.0.0.1:1/svc");
  });
});
