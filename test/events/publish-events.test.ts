import { expect } from "chai";
import type { OutgoingMessage, PublishOutcome } from "../../src/broker/broker.ts";
import { createSeal } from "../../src/broker/seal.ts";
import { publishEvents, type PresentedEvent, type Room } from "../../src/events/publish-events.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { noTracing, unsampledTraceparent } from "../../src/telemetry/tracing.ts";
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

/** Presented events with the ids 1, 2 and so on, each with a value as its record. */
function presentedOf(...data: readonly unknown[]): readonly PresentedEvent[] {
  return data.map((one, index) => ({ event: { ...event, id: String(index + 1) }, data: one }));
}

/** Publishes events. Returns the answer, with the calls of the broker, the room and the others. */
async function publishing(
  presented: readonly PresentedEvent[],
  {
    room = {},
    outcomeOf = () => ({ kind: "confirmed" }),
  }: {
    readonly room?: Partial<Room>;
    readonly outcomeOf?: (index: number) => PublishOutcome | undefined;
  } = {},
) {
  const portions: (readonly OutgoingMessage[])[] = [];
  const metrics = createMetrics();
  const { log, lines } = createMemoryLog();
  const [begun, ends]: [unknown[], unknown[]] = [[], []];
  const taken: string[] = [];
  const options = {
    broker: {
      async publish(messages: readonly OutgoingMessage[]) {
        portions.push(messages);
        return messages.flatMap((_, index) => outcomeOf(index) ?? []);
      },
    },
    seal: createSeal(Buffer.alloc(32, 1)),
    log,
    metrics: metrics.events,
    tracing: {
      ...noTracing,
      begin(start: Parameters<typeof noTracing.begin>[0]) {
        begun.push([start.parent, start.isSampled]);
        return { ...noTracing.begin(start), end: (error?: string) => void ends.push(error ?? "sent") };
      },
    },
    room: {
      has: () => true,
      hasForFirst: () => true,
      take: ({ id }: { readonly id: string }) => void taken.push(id),
      ...room,
    },
  };
  const { tooLarge, unconfirmed, left } = await publishEvents(options, "notes", presented);
  const text = await metrics.scrape();
  const counted = [
    /published_total\{resource="notes",trigger="on_update"\} (\d+)/,
    /postponed_total\{reason="refused"\} (\d+)/,
    /postponed_total\{reason="unconfirmed"\} (\d+)/,
  ].map((pattern) => Number(pattern.exec(text)?.[1] ?? 0));
  const answer = { tooLarge, unconfirmed, left: left.map(({ id }) => id) };
  return { answer, portions, lines, taken, begun, ends, counted };
}

describe("publishEvents", () => {
  for (const [fact, data, previous, published] of [
    ["publishes both rows of an update", "new", "old", [',"previous":"old"}']],
    ["leaves out an old row that makes the message too large", large, large, ['Z"}']],
    ["publishes none of an event that is too large by itself", large + large, undefined, []],
    ["publishes none that is too large with its envelope", "x".repeat(16 * 1024 ** 2 - 100), undefined, []],
  ] as const) {
    it(fact, async () => {
      const { answer, portions } = await publishing([{ event, data, previous }]);

      expect(
        portions.flat().map(({ body }) => body.toString("utf8", body.length - published[0]!.length)),
      ).to.deep.equal(published);
      expect(answer).to.deep.equal({
        tooLarge: published.length === 0 ? ["1"] : [],
        unconfirmed: [],
        left: [],
      });
    });
  }

  it("reports an event that is too large, and publishes the others", async () => {
    const { answer, portions, lines, taken, ends, counted } = await publishing(
      presentedOf(large + large, "b"),
    );

    expect(answer).to.deep.equal({ tooLarge: ["1"], unconfirmed: [], left: [] });
    expect(portions.map(({ length }) => length)).to.deep.equal([1]);
    expect(lines).to.have.length(1);
    expect(lines[0]).to.include({
      event: "relay.too_large",
      eventUuid: event.uuid,
      bytes: 18 * 1024 ** 2 + 2,
    });
    expect([taken, ends, counted]).to.deep.equal([["2"], ["too_large", "sent"], [1, 1, 0]]);
  });

  it("publishes about 1 MiB of messages at a time", async () => {
    const data = "x".repeat(600 * 1024);

    const { answer, portions } = await publishing(presentedOf(data, data, data, data, "e"));

    expect(answer).to.deep.equal({ tooLarge: [], unconfirmed: [], left: [] });
    expect(portions.map(({ length }) => length)).to.deep.equal([2, 2, 1]);
  });

  it("leaves the events without room, and asks for the first one's with its bytes", async () => {
    const asked: [string, number][] = [];
    const room = {
      has: ({ id }: { readonly id: string }) => id !== "1" && id !== "2",
      hasForFirst: ({ id }: { readonly id: string }, bytes: number) => asked.push([id, bytes]) > 0,
    };

    const { answer, portions, taken } = await publishing(presentedOf("a", "b", "c"), { room });

    expect(answer).to.deep.equal({ tooLarge: [], unconfirmed: [], left: ["2"] });
    expect(taken).to.deep.equal(["1", "3"]);
    expect(asked).to.deep.equal([["1", portions[0]?.[0]?.body.length]]);
  });

  it("leaves a first event without room, and publishes the others", async () => {
    const { answer, portions, taken, ends } = await publishing(presentedOf("a", "b"), {
      room: { hasForFirst: () => false },
    });

    expect(answer).to.deep.equal({ tooLarge: [], unconfirmed: [], left: ["1"] });
    expect(portions.map(({ length }) => length)).to.deep.equal([1]);
    expect([taken, ends]).to.deep.equal([["2"], ["no_room", "sent"]]);
  });

  it("returns and reports the events that the broker did not confirm", async () => {
    const outcomes: PublishOutcome[] = [{ kind: "confirmed" }, { kind: "unconfirmed", reason: "nacked" }];
    const outcomeOf = (index: number): PublishOutcome | undefined => outcomes[index];

    const two = await publishing(presentedOf("a", "b"), { outcomeOf });
    const unanswered = await publishing(presentedOf("a", "b", "c"), { outcomeOf: () => undefined });

    expect(two.answer).to.deep.equal({ tooLarge: [], unconfirmed: ["2"], left: [] });
    expect([two.ends, two.counted]).to.deep.equal([
      ["sent", "unconfirmed"],
      [1, 0, 1],
    ]);
    expect(two.lines).to.have.length(1);
    expect(two.lines[0]).to.include({
      event: "relay.unconfirmed",
      resource: "notes",
      reason: "nacked",
      events: 1,
    });
    expect(unanswered.answer.unconfirmed).to.deep.equal(["1", "2", "3"]);
    expect(unanswered.lines[0]).to.include({ reason: "no answer", events: 3 });
  });

  it("continues the writer's trace, also one that is not recorded", async () => {
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const [first, second, third] = presentedOf("a", "b", "c") as [
      PresentedEvent,
      PresentedEvent,
      PresentedEvent,
    ];

    const { begun } = await publishing([
      { ...first, event: { ...first.event, traceparent } },
      { ...second, event: { ...second.event, traceparent: unsampledTraceparent } },
      third,
    ]);

    expect(begun).to.deep.equal([
      [traceparent, undefined],
      [undefined, false],
      [undefined, undefined],
    ]);
  });
});
