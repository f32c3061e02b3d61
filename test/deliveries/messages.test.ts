import { expect } from "chai";
import type { IncomingMessage, OutgoingMessage } from "../../src/broker/broker.ts";
import {
  deadDeliveryMessage,
  deadMessage,
  deliveryIdOf,
  deliveryMessage,
  eventOf,
} from "../../src/deliveries/messages.ts";
import type { EventEnvelope } from "../../src/events/event.ts";

const uuid = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
const event: EventEnvelope = {
  event_id: uuid,
  event: "on_create",
  resource: "order-lines_2",
  record_id: "1",
  owner_id: "7",
  data: { text: "é" },
  timestamp: "2026-03-28T14:30:00.123456Z",
};

const nothing = (): void => undefined;

function incoming({
  messageId,
  routingKey,
  body,
}: Pick<OutgoingMessage, "messageId" | "routingKey" | "body">): IncomingMessage {
  return { messageId, routingKey, body, headers: {}, isRedelivered: false, ack: nothing, requeue: nothing };
}

const of = (body: string | Buffer): IncomingMessage =>
  incoming({ messageId: "m", routingKey: "k", body: Buffer.from(body) });

const notObjects = ["", "null", "[]", "7", '"text"', "{", "\0", Buffer.from([0xff, 0xfe])];

describe("deliveryIdOf", () => {
  it("reads what deliveryMessage wrote, up to the largest id", () => {
    const message = deliveryMessage({ id: "9223372036854775807", uuid }, "retry");

    expect(message).to.include({ exchange: "svc.deliveries", routingKey: "retry", messageId: uuid });
    expect(deliveryIdOf(incoming(message))).to.equal("9223372036854775807");
  });

  for (const body of [
    ...notObjects,
    ...[7, "0", "-1", "07", "1.5", "1e3", "99999999999999999999", "1; DROP TABLE x", null].map((id) =>
      JSON.stringify({ delivery_id: id }),
    ),
    JSON.stringify({ id: "7" }),
  ]) {
    it(`gives undefined for ${JSON.stringify(String(body))}`, () => {
      expect(deliveryIdOf(of(body))).to.equal(undefined);
    });
  }
});

describe("eventOf", () => {
  for (const [what, changes] of [
    ["an event", {}],
    ["an event without an owner", { owner_id: null }],
    ["an event with null for data", { data: null }],
    ["an event with more than this version knows", { version: 2 }],
  ] as const) {
    it(`reads ${what}`, () => {
      expect(eventOf(of(JSON.stringify({ ...event, ...changes })))).to.deep.equal({ ...event, ...changes });
    });
  }

  for (const body of notObjects) {
    it(`gives undefined for ${JSON.stringify(String(body))}`, () => {
      expect(eventOf(of(body))).to.equal(undefined);
    });
  }

  for (const [name, values] of Object.entries({
    event_id: ["", "7", uuid.toUpperCase(), `${uuid} `, 7],
    event: ["on_read", "", null],
    resource: ["", "Orders", "orders\0", "orders.lines", 7],
    record_id: [1, null],
    owner_id: [7, {}],
    timestamp: [null, 0],
    data: [undefined],
  })) {
    for (const value of values) {
      it(`gives undefined when ${name} is ${JSON.stringify(value) ?? "missing"}`, () => {
        expect(eventOf(of(JSON.stringify({ ...event, [name]: value })))).to.equal(undefined);
      });
    }
  }
});

describe("deadDeliveryMessage", () => {
  it("carries the payload as it was sent, and why it was given up", () => {
    const body = Buffer.from([0, 255, 10]);

    expect(
      deadDeliveryMessage({ id: "1", uuid, eventUuid: event.event_id, lastError: "HTTP 500", body }),
    ).to.deep.equal({
      exchange: "svc.dead",
      routingKey: "",
      messageId: uuid,
      body,
      headers: { "x-svc-reason": "HTTP 500", "x-svc-delivery": uuid, "x-svc-event": event.event_id },
    });
  });

  it("gives a reason also when none was kept", () => {
    const message = deadDeliveryMessage({
      id: "1",
      uuid,
      eventUuid: uuid,
      lastError: null,
      body: Buffer.alloc(0),
    });

    expect(message.headers).to.have.property("x-svc-reason", "failed");
  });
});

describe("deadMessage", () => {
  it("keeps a foreign message as it came", () => {
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
