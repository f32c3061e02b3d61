import { expect } from "chai";
import { createLazyModels, type LazyModels, type ModelsClient } from "../../src/db/models-client.ts";

describe("createLazyModels", () => {
  let opened: number;
  let closed: number;
  let fault: Error | undefined;

  beforeEach(() => {
    [opened, closed, fault] = [0, 0, undefined];
  });

  const lazy = (): LazyModels =>
    createLazyModels(async () => {
      opened += 1;
      if (fault !== undefined) throw fault;
      return { close: async () => void (closed += 1) } as ModelsClient;
    });

  it("opens nothing until the client is asked for, and closes nothing then", async () => {
    await lazy().close();

    expect({ opened, closed }).to.deep.equal({ opened: 0, closed: 0 });
  });

  it("opens once for all that ask", async () => {
    const models = lazy();

    const [one, other] = await Promise.all([models.get(), models.get()]);
    await models.close();

    expect(one).to.equal(other);
    expect({ opened, closed }).to.deep.equal({ opened: 1, closed: 1 });
  });

  it("retries after a failure, which every caller gets", async () => {
    const models = lazy();
    fault = new Error("refused");

    const failed = await Promise.all([models.get().catch(String), models.get().catch(String)]);
    fault = undefined;
    await models.get();

    expect([failed, opened]).to.deep.equal([["Error: refused", "Error: refused"], 2]);
  });
});
