import { expect } from "chai";
import { createLazyModelsClient, type Delegate, type ModelsClient } from "../../src/db/models-client.ts";

describe("createLazyModelsClient", () => {
  const calls: string[] = [];
  let opened: number;
  let closed: number;
  let fault: Error | undefined;

  beforeEach(() => {
    calls.length = 0;
    [opened, closed, fault] = [0, 0, undefined];
  });

  /** Answers each call with what was asked for. */
  function delegateOf(way: string, model: string): Delegate {
    const answer = async (method: string, args: unknown): Promise<never> => {
      calls.push(`${way} ${model} ${method} ${JSON.stringify(args)}`);
      return method as never;
    };
    return {
      findMany: (args) => answer("findMany", args),
      findFirst: (args) => answer("findFirst", args),
      count: (args) => answer("count", args),
      create: (args) => answer("create", args),
      update: (args) => answer("update", args),
      delete: (args) => answer("delete", args),
    };
  }

  const lazy = (): ModelsClient =>
    createLazyModelsClient(async () => {
      opened += 1;
      if (fault !== undefined) throw fault;
      return {
        delegate: (model) => delegateOf("own", model),
        listDelegate: (model) => delegateOf("list", model),
        relayDelegate: (model) => delegateOf("relay", model),
        transaction: (work) => work((model) => delegateOf("transaction", model)),
        close: async () => void (closed += 1),
      };
    });

  it("opens nothing until a delegate is asked, and closes nothing then", async () => {
    const models = lazy();

    models.delegate("Note");
    await models.close();

    expect({ opened, closed }).to.deep.equal({ opened: 0, closed: 0 });
  });

  it("opens once for all that ask at a time, and passes every call on", async () => {
    const models = lazy();
    const notes = models.delegate("Note");

    const answers = await Promise.all([
      notes.findMany({ take: 1 }),
      notes.findFirst(),
      notes.count(),
      notes.create({}),
      notes.update({}),
      notes.delete({}),
      models.listDelegate("Note").findMany(),
      models.relayDelegate("Note").findMany(),
      models.transaction((delegate) => delegate("Note").count()),
    ]);
    await models.close();

    expect(answers.slice(0, 6)).to.deep.equal([
      "findMany",
      "findFirst",
      "count",
      "create",
      "update",
      "delete",
    ]);
    expect(calls).to.include.members(['own Note findMany {"take":1}', "own Note delete {}"]);
    expect(calls.map((call) => call.split(" ")[0])).to.include.members(["list", "relay", "transaction"]);
    expect({ opened, closed }).to.deep.equal({ opened: 1, closed: 1 });
  });

  it("tries again after a failure, which each gets that asked", async () => {
    const models = lazy();
    fault = new Error("refused");

    const first = await models.delegate("Note").count().catch(String);
    fault = undefined;
    const second = await models.delegate("Note").count();

    expect([first, second, opened]).to.deep.equal(["Error: refused", "count", 2]);
  });
});
