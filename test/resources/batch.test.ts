import { expect } from "chai";
import { AppError } from "../../src/kit/errors.ts";
import { runBatch, type Batch } from "../../src/resources/batch.ts";

const tenMegabytes = JSON.stringify("x".repeat(10 * 1024 ** 2));

/** Returns creates that answer `json` each. */
function batchOf(count: number, json: string, changes: Partial<Batch> = {}): Batch {
  return {
    operations: Array.from({ length: count }, () => ({ method: "create" as const, data: {} })),
    records: {
      show: () => Promise.resolve(json),
      refuseCreate: () => undefined,
      create: () => Promise.resolve({ id: "1", json }),
      createMany: () => Promise.resolve(undefined),
      removeMany: () => Promise.resolve(false),
      update: () => Promise.resolve({ json, isWritten: true }),
      remove: () => Promise.resolve(),
    },
    request: {
      database: undefined as never,
      caller: { id: 7, name: "Ada", email: "ada@example.com", isAdmin: false, claims: {} },
      isLarge: true,
    },
    reserve: () => Promise.resolve(),
    now: () => 0,
    beganAt: 0,
    ...changes,
  };
}

async function refusalOf(batch: Batch): Promise<AppError> {
  try {
    await runBatch(batch);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error("it was not refused");
}

describe("runBatch", () => {
  it("stops before the operation at 30 s, with 503 and the cause for the log", async () => {
    let clockMs = 0;
    const refusal = await refusalOf(batchOf(10, "{}", { now: () => (clockMs += 10_000) }));

    expect([refusal.status, refusal.message]).to.deep.equal([503, "Server Error"]);
    expect((refusal.cause as Error).message).to.equal(
      "The batch took longer than 30 s, at operation 3 of 10",
    );
  });

  it("counts the time of an earlier try, because the client waits for both", async () => {
    let clockMs = 0;
    const batch = batchOf(10, "{}", { now: () => (clockMs += 10_000), beganAt: -20_000 });

    expect((await refusalOf(batch)).cause).to.have.property(
      "message",
      "The batch took longer than 30 s, at operation 1 of 10",
    );
  });

  it("refuses an answer of more than 15 MiB with 413", async () => {
    const refusal = await refusalOf(batchOf(2, tenMegabytes));

    expect([refusal.status, Object.keys(refusal.errors ?? {})]).to.deep.equal([413, ["operations.1.data"]]);
  });

  it("reserves memory for the records presented so far, and gives up without it", async () => {
    const reserved: number[] = [];
    const reserve = (bytes: number): Promise<void> => {
      reserved.push(bytes);
      return reserved.length < 3
        ? Promise.resolve()
        : Promise.reject(new AppError("server.overloaded", "Server Error"));
    };

    const refusal = await refusalOf(batchOf(5, "{}", { reserve }));

    const one = '{"status":201,"record":{}}'.length;
    expect(reserved).to.deep.equal([one, 2 * one, 3 * one]);
    expect(refusal.status).to.equal(503);
  });
});
