import { expect } from "chai";
import type { IncomingMessage, OutgoingMessage } from "../../src/broker/broker.ts";
import {
  createAnnounce,
  deadDeliveryMessage,
  deadMessage,
  deliveryMessage,
  isDeliveryMessage,
} from "../../src/deliveries/messages.ts";

const uuid = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";

const nothing = (): void => undefined;

function incoming({
  messageId,
  routingKey,
  body,
}: Pick<OutgoingMessage, "messageId" | "routingKey" | "body">): IncomingMessage {
  return { messageId, routingKey, body, headers: {}, ack: nothing, requeue: nothing };
}

const of = (body: string | Buffer): IncomingMessage =>
  incoming({ messageId: "m", routingKey: "k", body: Buffer.from(body) });

const idsOf = (messages: readonly OutgoingMessage[]): readonly string[] =>
  messages.map(({ messageId }) => messageId);

describe("createAnnounce", () => {
  const deliveries = ["a", "b", "c", "d", "e"].map((name, index) => ({ id: String(index + 1), uuid: name }));
  const announced = (count: number, dispatchers: number): readonly OutgoingMessage[] => {
    const published: OutgoingMessage[] = [];
    const broker = {
      async publish(messages: readonly OutgoingMessage[]) {
        published.push(...messages);
        return [];
      },
    };
    createAnnounce({ broker, dispatchers: () => dispatchers })(deliveries.slice(0, count), "retry");
    return published;
  };

  for (const [count, dispatchers, told] of [
    [0, 3, ""],
    [1, 1, "a"],
    [5, 1, "abcd"],
    [1, 3, "aaa"],
    [2, 5, "abaaa"],
    [5, 2, "abcd"],
    [1, 100, "a".repeat(20)],
  ] as const)
    it(`announces ${count} deliveries to ${dispatchers} dispatchers by ${told.length} messages`, () => {
      expect(idsOf(announced(count, dispatchers)).join("")).to.equal(told);
    });

  it("writes them all to one lane, so that each dispatcher gets its turn", () => {
    expect(new Set(announced(2, 5).map(({ routingKey }) => routingKey))).to.deep.equal(new Set(["retry"]));
  });
});

describe("isDeliveryMessage", () => {
  it("recognises messages of deliveryMessage, up to the largest id", () => {
    const message = deliveryMessage({ id: "9223372036854775807", uuid }, "retry");

    expect(message).to.include({ exchange: "svc.deliveries", routingKey: "retry", messageId: uuid });
    expect(isDeliveryMessage(incoming(message))).to.equal(true);
    expect(isDeliveryMessage(incoming(deliveryMessage({ id: "1", uuid }, "first")))).to.equal(true);
  });

  for (const body of [
    "",
    "null",
    "[]",
    "7",
    '"text"',
    "{",
    "\0",
    Buffer.from([0xff, 0xfe]),
    ...[7, "0", "-1", "07", "1.5", "1e3", "99999999999999999999", "1; DROP TABLE x", null].map((id) =>
      JSON.stringify({ delivery_id: id }),
    ),
    JSON.stringify({ id: "7" }),
    `${JSON.stringify({ delivery_id: "7" })}${" ".repeat(100)}`,
  ]) {
    it(`does not recognise ${JSON.stringify(String(body))}`, () => {
      expect(isDeliveryMessage(of(body))).to.equal(false);
    });
  }
});

describe("deadDeliveryMessage", () => {
  const dead = {
    id: "1",
    uuid,
    eventId: "2",
    eventUuid: "7c9e6679-7425-40de-944b-e07fc1f90ae7",
    event: "on_create",
    resource: "notes",
    timestamp: "2026-03-28T14:30:00.123456Z",
    lastError: "HTTP 500",
    data: '{"text":"é"}',
  } as const;

  for (const [what, data] of [
    ["text", dead.data],
    ["bytes", Buffer.from(dead.data)],
  ] as const) {
    it(`has the payload as it was sent, and the reason, from ${what}`, () => {
      const { body, ...message } = deadDeliveryMessage({ ...dead, data });

      expect(body.toString()).to.equal(
        `{"event":"on_create","resource":"notes","event_id":"${dead.eventUuid}","delivery_id":"${uuid}",` +
          '"data":{"text":"é"},"timestamp":"2026-03-28T14:30:00.123456Z"}',
      );
      expect(message).to.deep.equal({
        exchange: "svc.dead",
        routingKey: "",
        messageId: uuid,
        headers: { "x-svc-reason": "HTTP 500", "x-svc-delivery": uuid, "x-svc-event": dead.eventUuid },
      });
    });
  }

  it("has a reason also when none was stored", () => {
    const message = deadDeliveryMessage({ ...dead, lastError: null });

    expect(message.headers).to.have.property("x-svc-reason", "failed");
  });
});

describe("deadMessage", () => {
  it("keeps a foreign message unchanged", () => {
    const body = Buffer.from([0, 255]);

    expect(
      deadMessage(incoming({ messageId: "theirs", routingKey: "x", body }), "not an event"),
    ).to.deep.equal({
      exchange: "svc.dead",
      routingKey: "",
      messageId: "theirs",
      body,
      headers: { "x-svc-reason": "not an event" },
    });
  });
});
