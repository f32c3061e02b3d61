import { expect } from "chai";
import type { ConsumeMessage } from "amqplib";
import { createAcknowledgements } from "../../src/broker/acknowledgements.ts";
import { until } from "../support/wait.ts";

const message = (deliveryTag: number): ConsumeMessage => ({ fields: { deliveryTag } }) as ConsumeMessage;

describe("acknowledgements", () => {
  let sent: string[];
  let isClosed: boolean;
  const channel = {
    ack({ fields }: { readonly fields: { readonly deliveryTag: number } }, allUpTo?: boolean): void {
      if (isClosed) throw new Error("Channel closed");
      sent.push(`${fields.deliveryTag}${allUpTo === true ? " and before" : ""}`);
    },
    nack({ fields }: { readonly fields: { readonly deliveryTag: number } }): void {
      if (isClosed) throw new Error("Channel closed");
      sent.push(`back ${fields.deliveryTag}`);
    },
  };
  const opened = (tags: readonly number[], most = 100): ReturnType<typeof createAcknowledgements> => {
    const acknowledgements = createAcknowledgements(channel, most);
    for (const tag of tags) acknowledgements.open(message(tag));
    return acknowledgements;
  };

  beforeEach(() => {
    sent = [];
    isClosed = false;
  });

  it("acknowledges messages of a short time together, in any order", async () => {
    const acknowledgements = opened([1, 2, 3]);
    for (const tag of [2, 3, 1]) acknowledgements.ack(message(tag));
    expect(sent).to.deep.equal([]);
    await until(() => sent.length > 0, { what: "the acknowledgement" });
    expect(sent).to.deep.equal(["3 and before"]);
  });

  it("acknowledges no message that is still being handled", () => {
    const acknowledgements = opened([1, 2, 3, 4, 5]);
    for (const tag of [5, 1, 2, 4]) acknowledgements.ack(message(tag));
    acknowledgements.flush();
    expect(sent).to.deep.equal(["2 and before", "4", "5"]);
    acknowledgements.ack(message(3));
    acknowledgements.flush();
    expect(sent.slice(3)).to.deep.equal(["3 and before"]);
  });

  it("acknowledges those after one that is still being handled", () => {
    const acknowledgements = opened([1, 2]);
    acknowledgements.ack(message(2));
    acknowledgements.flush();
    expect(sent).to.deep.equal(["2"]);
  });

  it("counts a returned message as settled, and returns it at once", () => {
    const acknowledgements = opened([1, 2, 3]);
    acknowledgements.ack(message(1));
    acknowledgements.requeue(message(2));
    acknowledgements.ack(message(3));
    acknowledgements.flush();
    expect(sent).to.deep.equal(["back 2", "3 and before"]);
  });

  it("limits the waiting acknowledgements to a part of the prefetch", () => {
    const acknowledgements = opened([1, 2, 3], 2);
    acknowledgements.ack(message(1));
    expect(sent).to.deep.equal([]);
    acknowledgements.ack(message(2));
    expect(sent).to.deep.equal(["2 and before"]);
  });

  it("leaves waiting messages to the broker when the channel closes", async () => {
    const acknowledgements = opened([1, 2]);
    acknowledgements.ack(message(1));
    isClosed = true;
    acknowledgements.requeue(message(2));
    acknowledgements.flush();
    expect(sent).to.deep.equal([]);
  });
});
