import { expect } from "chai";
import type { IncomingMessage } from "../../src/broker/broker.ts";
import { createUnsettled } from "../../src/deliveries/unsettled.ts";

describe("createUnsettled", () => {
  let settled: string[];

  beforeEach(() => {
    settled = [];
  });

  const message = (messageId: string, seal?: string): IncomingMessage => ({
    messageId,
    routingKey: "notes.on_create",
    body: Buffer.from("1"),
    headers: seal === undefined ? {} : { "x-svc-seal": seal },
    ack: () => void settled.push(`ack ${messageId}`),
    requeue: () => void settled.push(`requeue ${messageId}`),
  });

  it("acknowledges a repeat of a message that is not settled", () => {
    const enter = createUnsettled();

    expect(enter(message("1", "s"))).to.include({ messageId: "1", routingKey: "notes.on_create" });
    expect(enter(message("1", "s"))).to.equal(undefined);
    expect(settled).to.deep.equal(["ack 1"]);
  });

  for (const act of ["ack", "requeue"] as const)
    it(`takes a message again after its ${act}`, () => {
      const enter = createUnsettled();
      enter(message("1", "s"))?.[act]();

      expect(enter(message("1", "s"))).not.to.equal(undefined);
      expect(settled).to.deep.equal([`${act} 1`]);
    });

  it("does not treat a message with another seal, or with none, as a repeat", () => {
    const enter = createUnsettled();
    const taken = [message("1", "s"), message("1", "t"), message(""), message(""), message("2", "s")].map(
      (one) => enter(one) !== undefined,
    );

    expect([taken, settled]).to.deep.equal([[true, true, true, true, true], []]);
  });
});
