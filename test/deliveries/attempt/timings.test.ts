import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { AttemptResult } from "../../../src/deliveries/delivery.ts";
import { hang, startReceiver, type TestReceiver } from "../../support/receiver.ts";
import { createTestSenders } from "../../support/senders.ts";

const parts = ({ dnsMs, connectMs, tlsMs, firstByteMs }: AttemptResult): readonly string[] =>
  [dnsMs, connectMs, tlsMs, firstByteMs].map((ms) => typeof ms);

async function endLate(response: ServerResponse): Promise<void> {
  response.writeHead(200).flushHeaders();
  // The sender reads the head in one of the first turns, however long that turn takes.
  for (let turn = 0; turn < 20; turn += 1) await sleep(5);
  response.end("late");
}

describe("the timings of an attempt", () => {
  const senders = createTestSenders();
  let receiver: TestReceiver;

  beforeEach(async () => {
    receiver = await startReceiver();
  });
  afterEach(async () => {
    senders.close();
    await receiver.close();
  });

  it("are of the look-up, the connection and the answer, and of the answer alone on a kept one", async () => {
    const { post } = senders.open();
    const byName = `http://localhost:${receiver.port}`;
    const results = [await post(byName), await post(byName), await post(receiver.url)];

    expect(results.map(parts)).to.deep.equal([
      ["number", "number", "undefined", "number"],
      ["undefined", "undefined", "undefined", "number"],
      ["undefined", "number", "undefined", "number"],
    ]);
    expect(results.map(({ address }) => address)).to.deep.equal(["127.0.0.1", "127.0.0.1", "127.0.0.1"]);
  });

  it("count the answer's head, not its body", async () => {
    receiver.answer = (_, response) => void endLate(response);
    const { firstByteMs = 0, durationMs } = await senders.send(receiver.url);

    expect(durationMs - firstByteMs).to.be.at.least(50);
  });

  it("end where the attempt did", async () => {
    receiver.answer = hang;
    expect(parts(await senders.send(receiver.url, { timeoutMs: 200 }))[3]).to.equal("undefined");
    await receiver.close();
    const refused = await senders.send(receiver.url);
    expect(refused).to.include({ error: "refused", address: undefined, connectMs: undefined });
  });
});
