import { expect } from "chai";
import {
  createOutcomeWriter,
  type OutcomeWriterOptions,
} from "../../../src/deliveries/attempt/outcome-writer.ts";
import { createMemoryLog } from "../../support/http.ts";
import { until } from "../../support/wait.ts";

describe("createOutcomeWriter", () => {
  it("repeats a write while the database is away, but not after the process was told to stop", async () => {
    const away = Object.assign(new Error("shutting down"), { code: "57P01" });
    let tries = 0;
    const store: Pick<OutcomeWriterOptions["store"], "record"> = {
      async record() {
        tries += 1;
        return Promise.reject(away);
      },
    };
    const { log } = createMemoryLog();
    const unused = { onQueued: () => undefined, announce: () => undefined };
    const writer = createOutcomeWriter({ store: store as OutcomeWriterOptions["store"], log, ...unused });

    const outcome = { id: "1", uuid: "u", status: "delivered", attemptsBefore: 0 } as const;
    const failure = writer.record({ id: "1", unwritten: 1 }, outcome).catch((error: unknown) => error);
    await until(() => tries === 2, { what: "the second try" });
    writer.stop();

    expect(await failure).to.equal(away);
    expect(tries).to.be.at.most(3);
  });
});
