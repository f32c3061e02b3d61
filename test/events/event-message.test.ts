import { expect } from "chai";
import type { IncomingMessage, OutgoingMessage } from "../../src/broker/broker.ts";
import { createSeal } from "../../src/broker/seal.ts";
import { eventMessage, eventOf, holderOfMessage } from "../../src/events/event-message.ts";

const seal = createSeal(Buffer.alloc(32, 1));
const event = {
  id: "9223372036854775807",
  uuid: "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
  resource: "order-lines_2",
  trigger: "on_create",
  recordId: 'a/b "é" "data":',
  ownerId: "7",
  timestamp: "2026-03-28T14:30:00.123456Z",
} as const;
const data = '{"text":"é ☃ \\",\\"data\\":","n":1.50}';
const sealed = eventMessage({ event, data, traceparent: "00-1", seal });

/** Returns a message as the broker delivers it, with these changes. */
function incoming(changes: Partial<Pick<OutgoingMessage, "body" | "headers">> = {}): IncomingMessage {
  const { messageId, routingKey, body, headers } = { ...sealed, ...changes };
  return {
    messageId,
    routingKey,
    body,
    headers: headers ?? {},
    ack: () => undefined,
    requeue: () => undefined,
  };
}

/** Returns the holder of an event's message, with these changes of the event. */
function holderFor(changes: Partial<Parameters<typeof eventMessage>[0]["event"]>): string {
  return holderOfMessage({ ...incoming(), ...eventMessage({ event: { ...event, ...changes }, data, seal }) });
}

describe("eventMessage", () => {
  it("is the envelope of the contract, with the record's exact bytes", () => {
    expect(sealed).to.include({
      exchange: "svc.events",
      routingKey: "order-lines_2.on_create",
      messageId: event.uuid,
    });
    expect(sealed.headers).to.include({ "x-svc-id": event.id, traceparent: "00-1" });
    expect(sealed.body.toString()).to.equal(
      '{"event_id":"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11","event":"on_create","resource":"order-lines_2",' +
        `"record_id":"a/b \\"é\\" \\"data\\":","owner_id":"7","data":${data},"timestamp":"2026-03-28T14:30:00.123456Z"}`,
    );
  });
});

describe("the owner in the headers", () => {
  it("has few of its characters, and the body all of them", () => {
    const ownerId = "é".repeat(70_000);

    const long = eventMessage({ event: { ...event, ownerId }, data, seal });

    // The broker client writes all headers into 64 KiB.
    expect(Buffer.byteLength(JSON.stringify(long.headers))).to.be.below(4_096);
    expect(eventOf(incoming(long), seal)?.owner_id).to.equal(ownerId);
    expect(holderFor({ ownerId })).to.equal(holderFor({ ownerId, resource: "orders" }));
  });
});

describe("holderOfMessage", () => {
  it("is the owner, for any resource", () => {
    expect(holderOfMessage(incoming())).to.equal("7");
    expect(holderFor({ resource: "orders" })).to.equal("7");
    expect(holderFor({ ownerId: "8" })).to.equal("8");
  });

  it("is the resource when the event has no owner, for any trigger", () => {
    const holders = ["orders", "order-lines_2"].flatMap((resource) =>
      (["on_create", "on_update"] as const).map((trigger) => holderFor({ ownerId: null, resource, trigger })),
    );

    expect(holders[0]).to.equal(holders[1]);
    expect(holders[2]).to.equal(holders[3]);
    expect(new Set(holders)).to.have.property("size", 2);
    // Ids of owners may be names of resources as well.
    expect(holders).not.to.include(holderFor({ ownerId: "orders" }));
  });

  it("is the resource when the owner in the headers is not a string", () => {
    const without = holderFor({ ownerId: null });

    for (const owner of [7, true, null, ["7"], { id: "7" }])
      expect(holderOfMessage({ ...incoming(), headers: { "x-svc-owner": owner } })).to.equal(without);
  });
});

describe("eventOf", () => {
  const { id, uuid, trigger, recordId, ownerId, ...same } = event;

  it("reads the result of eventMessage, with the exact bytes of the record", () => {
    const read = eventOf(incoming(), seal);

    expect(read?.data.toString()).to.equal(data);
    expect({ ...read, data: undefined }).to.deep.equal({
      ...same,
      id,
      event_id: uuid,
      event: trigger,
      record_id: recordId,
      owner_id: ownerId,
      data: undefined,
    });
  });

  it("reads an old row with its exact bytes, and none when the record only looks like one", () => {
    const previous = '{"n":1.50,"text":"\\",\\"timestamp\\":","9":1}';
    const update = { ...event, trigger: "on_update" } as const;
    const both = eventMessage({ event: update, data, previous, seal });
    const odd = '{"a":{"b":1},"timestamp":"x","previous":{}}';

    expect(
      both.body.toString().endsWith(`,"timestamp":"${event.timestamp}","previous":${previous}}`),
    ).to.equal(true);
    const read = eventOf(incoming(both), seal);
    expect([String(read?.data), String(read?.previous)]).to.deep.equal([data, previous]);
    expect(read).to.include({ timestamp: event.timestamp, event: "on_update" });
    const plain = eventOf(incoming(eventMessage({ event: update, data: odd, seal })), seal);
    expect(plain).not.to.have.property("previous");
    expect(String(plain?.data)).to.equal(odd);
  });

  for (const [ownerIdOf, json] of [
    [null, "null"],
    ["7", '"text"'],
    ["7", "[]"],
  ] as const) {
    it(`reads an event of owner ${ownerIdOf} with ${json} for a record`, () => {
      const { body, headers } = eventMessage({ event: { ...event, ownerId: ownerIdOf }, data: json, seal });

      const read = eventOf(incoming({ body, headers: headers ?? {} }), seal);

      expect([read?.owner_id, read?.data.toString()]).to.deep.equal([ownerIdOf, json]);
    });
  }

  it("reads what was sealed with a previous key", () => {
    const rotated = createSeal(Buffer.alloc(32, 2), [Buffer.alloc(32, 1)]);

    expect(eventOf(incoming(), rotated)).to.have.property("id", event.id);
    expect(eventOf(incoming(), createSeal(Buffer.alloc(32, 2)))).to.equal(undefined);
  });

  const text = sealed.body.toString();
  const place = String(sealed.headers?.["x-svc-data"]);
  const [start = 0, length = 0] = place.split(":").map(Number);
  const tampered: Readonly<Record<string, Partial<Pick<OutgoingMessage, "body" | "headers">>>> = {
    "without headers": { headers: {} },
    "without a seal": { headers: { "x-svc-id": event.id, "x-svc-data": place } },
    "of another row": { headers: { ...sealed.headers, "x-svc-id": "1" } },
    "of a row without a number": { headers: { ...sealed.headers, "x-svc-id": "" } },
    "with another place": { headers: { ...sealed.headers, "x-svc-data": `${start - 1}:${length + 1}` } },
    "with another owner": { body: Buffer.from(text.replace('"owner_id":"7"', '"owner_id":"8"')) },
    "with another record": { body: Buffer.from(text.replace("1.50", "1.51")) },
    "that is cut": { body: sealed.body.subarray(0, -1) },
    "that is empty": { body: Buffer.alloc(0) },
    "with bytes behind it": { body: Buffer.concat([sealed.body, Buffer.from(" ")]) },
  };
  for (const [what, changes] of Object.entries(tampered)) {
    it(`does not accept a message ${what}`, () => {
      expect(eventOf(incoming(changes), seal)).to.equal(undefined);
    });
  }

  it("does not accept sealed bytes that were divided differently", () => {
    const bytes = `${event.id} ${place} ${text}`;
    for (let at = bytes.indexOf(" "); at !== -1; at = bytes.indexOf(" ", at + 1))
      for (let next = bytes.indexOf(" ", at + 1); next !== -1; next = bytes.indexOf(" ", next + 1)) {
        const headers = {
          ...sealed.headers,
          "x-svc-id": bytes.slice(0, at),
          "x-svc-data": bytes.slice(at + 1, next),
        };
        const read = eventOf(incoming({ headers, body: Buffer.from(bytes.slice(next + 1)) }), seal);
        expect(read?.data.toString(), JSON.stringify(headers)).to.equal(
          headers["x-svc-data"] === place ? data : undefined,
        );
      }
  });
});
