import { expect } from "chai";
import { EventEmitter, once } from "node:events";
import { runWorkers } from "../../src/app/workers.ts";
import { aborted, type Worker } from "../../src/kit/worker.ts";
import { createMemoryLog } from "../support/http.ts";

const idle: Worker = { name: "idle", run: aborted };

describe("runWorkers", () => {
  it("rejects `failed` with the error of a worker while the others still run", async () => {
    const error = new Error("the broker's certificate has expired");
    const { log } = createMemoryLog();
    const running = runWorkers([idle, { name: "relay", run: () => Promise.reject(error) }], log);

    const thrown = await running.failed.catch((reason: unknown) => reason);

    expect(thrown).to.equal(error);
    await running.stop();
  });

  it("rejects `failed` when a worker ends by itself, and names it", async () => {
    const { log } = createMemoryLog();
    const running = runWorkers([idle, { name: "sweep", run: () => Promise.resolve() }], log);

    const thrown = await running.failed.catch((reason: unknown) => reason);

    expect(thrown).to.be.an("error").with.property("message", "The worker sweep ended by itself.");
    await running.stop();
  });

  it("waits in stop() until every worker has finished its work", async () => {
    const { log, lines } = createMemoryLog();
    const inHand = new EventEmitter();
    const worker: Worker = {
      name: "deliver",
      async run(signal) {
        await aborted(signal);
        await once(inHand, "finished");
      },
    };
    const running = runWorkers([idle, worker], log);
    let isStopped = false;

    const stopped = running.stop().then(() => (isStopped = true));
    await new Promise((resolve) => setImmediate(resolve));
    expect(isStopped).to.equal(false);
    inHand.emit("finished");
    await stopped;

    expect(lines).to.deep.equal([]);
    // An ordinary stop is not a failure.
    expect(await Promise.race([running.failed, Promise.resolve("quiet")])).to.equal("quiet");
  });

  it("logs a worker that fails while it stops, and still resolves", async () => {
    const { log, lines } = createMemoryLog();
    const worker: Worker = {
      name: "relay",
      async run(signal) {
        await aborted(signal);
        throw new Error("half a batch");
      },
    };

    await runWorkers([worker, idle], log).stop();

    expect(lines.map(({ reason }) => reason)).to.deep.equal(["half a batch"]);
  });
});
