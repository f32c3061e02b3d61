import { expect } from "chai";
import type { OutgoingMessage } from "../../src/broker/broker.ts";
import { createSeal } from "../../src/broker/seal.ts";
import { publishEvents } from "../../src/events/publish-events.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { createMemoryLog } from "../support/http.ts";

const event = {
  id: "1",
  uuid: "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
  resource: "notes",
  trigger: "on_update",
  recordId: "1",
  ownerId: null,
  snapshot: {},
  timestamp: "2026-03-28T14:30:00.123456Z",
  traceparent: null,
  bytes: 1,
  transaction: "1",
} as const;
const large = "x".repeat(9 * 1024 ** 2);

describe("publishEvents", () => {
  for (const [fact, data, previous, published] of [
    ["publishes both rows of an update", "new", "old", [',"previous":"old"}']],
    ["leaves out an old row that makes the message too large", large, large, ['Z"}']],
    ["publishes none of an event that is too large by itself", large + large, undefined, []],
    ["publishes none that is too large with its envelope", "x".repeat(16 * 1024 ** 2 - 100), undefined, []],
  ] as const) {
    it(fact, async () => {
      const sent: OutgoingMessage[] = [];
      const broker = {
        async publish(messages: readonly OutgoingMessage[]) {
          sent.push(...messages);
          return messages.map(() => ({ kind: "confirmed" }) as const);
        },
      };
      const options = {
        broker,
        seal: createSeal(Buffer.alloc(32, 1)),
        log: createMemoryLog().log,
        metrics: createMetrics().events,
        room: { has: () => true, hasForFirst: () => true, take: () => undefined },
      };

      const left = await publishEvents(options, "notes", [{ event, data, previous }]);

      expect(sent.map(({ body }) => body.toString("utf8", body.length - published[0]!.length))).to.deep.equal(
        published,
      );
      expect(left).to.deep.equal({
        tooLarge: published.length === 0 ? ["1"] : [],
        unconfirmed: [],
        left: [],
      });
    });
  }
});
