import { expect } from "chai";
import { useRelayScene } from "../support/relay-scene.ts";
import { until } from "../support/wait.ts";

// Reads that take too long; relay.test.ts has the rest.
describe("createRelay", () => {
  const scene = useRelayScene();
  const { start, addEvents, published, untilPublished } = scene;

  it("goes on with what is new while the rest of the outbox takes longer than a statement may", async () => {
    await addEvents(1, "papers");
    let isSlow = true;
    start({
      outbox: {
        ...scene.outbox,
        read: (options) =>
          isSlow && options.scans.some(({ range }) => range.from.transaction < 0n)
            ? Promise.reject(Object.assign(new Error("too slow"), { code: "57014" }))
            : scene.outbox.read(options),
      },
    });
    await until(() => scene.lines.some(({ msg }) => msg === "relay turn failed; trying again"), {
      what: "a failed turn",
    });
    await scene.work.addEvent({ recordId: "new" });
    await untilPublished(1);
    expect(published()).to.deep.equal(["new"]);

    isSlow = false;
    scene.skewMs += 60_000;

    await until(() => published().includes("1"), { what: "the rest" });
  });
});
